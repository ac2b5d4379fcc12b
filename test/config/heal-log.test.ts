/** Whether a node with an unfit log begins anew: a setting as the others are. */
import { expect, test } from 'vitest'
import { buildConfig } from '../../src/config/config.ts'
import { parseYaml } from '../../src/config/source.ts'

const good = `cluster: trips
node: a
data: ./data/a
nodes: [{ id: a, url: "http://127.0.0.1:4700" }]
`

/** The value in force, and whence it comes; or the problems in words. */
function healLog(line: string, variable?: string, flag?: string): readonly unknown[] {
  const parsed = parseYaml(`${good}${line}`, 'a.yaml')
  if (!parsed.ok) return parsed.problems
  const built = buildConfig({
    file: { path: 'a.yaml', root: parsed.root },
    environment: { TRILITHON_HEAL_LOG: variable },
    flags: new Map(flag === undefined ? [] : [['heal_log', flag]]),
    workingFolder: '/here',
  })
  if (!built.ok) return built.problems.map(({ text }) => text)
  const setting = built.settings.find(({ name }) => name === 'heal_log')
  return [built.config.healLog, setting?.value, setting?.origin.kind]
}

test('a node heals its log unless the file, the environment or a flag says otherwise', () => {
  expect(healLog('')).toEqual([true, 'true', 'default'])
  expect(healLog('heal_log: false\n')).toEqual([false, 'false', 'file'])
  expect(healLog('heal_log: false\n', 'true')).toEqual([true, 'true', 'environment'])
  expect(healLog('', 'true', 'false')).toEqual([false, 'false', 'flag'])
  expect(healLog('heal_log: maybe\n')).toEqual([expect.stringMatching(/^heal_log: /)])
})
