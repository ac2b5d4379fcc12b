/** The seat of an empty folder that takes the place of a lost one: a setting as the others are. */
import { expect, test } from 'vitest'
import { buildConfig } from '../../src/config/config.ts'
import { parseYaml } from '../../src/config/source.ts'

const good = `cluster: trips
node: a
data: ./data/a
nodes: [{ id: a, url: "http://127.0.0.1:4700" }]
`

interface Given {
  /** A line of the file. */
  readonly line?: string
  readonly variable?: string
  readonly flag?: string
}

/** The seat, and whence it comes; or the problems in words. */
function seat({ line = '', variable, flag }: Given): readonly unknown[] {
  const parsed = parseYaml(`${good}${line}`, 'a.yaml')
  if (!parsed.ok) return parsed.problems
  const built = buildConfig({
    file: { path: 'a.yaml', root: parsed.root },
    environment: { TRILITHON_SEAT: variable },
    flags: new Map(flag === undefined ? [] : [['seat', flag]]),
    workingFolder: '/here',
  })
  if (!built.ok) return built.problems.map(({ where, text }) => `${where}: ${text}`)
  const setting = built.settings.find(({ name }) => name === 'seat')
  return [built.config.seat, setting?.value, setting?.origin.kind]
}

test('a flag wins over the environment, which wins over the file; there may be none', () => {
  expect(seat({})).toEqual([undefined, undefined, undefined])
  const line = 'seat: 4097\n'
  expect(seat({ line })).toEqual([4097, '4097', 'file'])
  expect(seat({ line, variable: '8193' })).toEqual([8193, '8193', 'environment'])
  expect(seat({ line, variable: '8193', flag: '12289' })).toEqual([12289, '12289', 'flag'])
})

test.for(['0', '-1', '1.5', 'n2', '0x10', '2147483648'])('%s is no seat', (word) => {
  const wrong = `seat: wants a whole number from 1 to 2147483647, not "${word}"`
  expect(seat({ flag: word })).toEqual([`--seat: ${wrong}`])
  expect(seat({ variable: word })).toEqual([`TRILITHON_SEAT: ${wrong}`])
  expect(seat({ line: `seat: "${word}"\n` })).toEqual([`a.yaml:5:7: ${wrong}`])
})

test('text in the file is no seat, though it has digits alone', () => {
  expect(seat({ line: 'seat: "4097"\n' })).toEqual([
    'a.yaml:5:7: seat: wants a whole number from 1 to 2147483647, not "4097"',
  ])
})
