/** `replay`, `shrink` and `explain` as a user meets them: what they print, and how they end. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { obstacleTo, readScenario } from '../../sim/commands/scenario-file.ts'
import { scenario } from '../../sim/scenarios/scenario-builder.ts'
import {
  decodeScenario,
  encodeScenario,
  runScenario,
  buildScenario,
} from '../../sim/scenarios/scenario.ts'
import { sim } from './command.ts'

let folder = ''
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'trilithon-scenarios-'))
})
afterAll(async () => {
  await rm(folder, { recursive: true, force: true })
})

/** A session that sends an intent below its own floor: its run fails without a bug in the code. */
const failing = scenario('below the floor')
  .at(20)
  .put('c1')
  .at(40)
  .crash('n2', 20)
  .operation({ kind: 'blind', client: 'blind-1', atMicros: 60_000, group: 'x', sequence: 2 })
  .operation({ kind: 'blind', client: 'blind-1', atMicros: 90_000, group: 'x', sequence: 1 })
  .build()

test('a failing scenario is shrunk to a file, which replays step for step and is explained', async () => {
  const [given, shrunk] = [join(folder, 'given.json'), join(folder, 'shrunk.json')]
  const first = buildScenario('given', failing.plan, await runScenario(failing))
  await writeFile(given, encodeScenario(first))

  const shrink = await sim('shrink', '--file', given, '-o', shrunk, '--time', '60s', '--json')
  expect(shrink.code).toBe(0)
  const printed: unknown = JSON.parse(shrink.stdout)
  expect(printed).toMatchObject({
    file: shrunk,
    events: 2,
    faults: 0,
    operations: 2,
    isMinimal: true,
  })
  expect(decodeScenario(await readFile(shrunk, 'utf8'))).toMatchObject({ ok: true })

  const replay = await sim('replay', shrunk)
  expect(replay.code).toBe(13)
  expect(replay.stdout).toContain('as expected, step for step')
  const explained = await sim('explain', shrunk)
  expect(explained.code).toBe(13)
  expect(explained.stdout).toMatch(/^META-3: /)
  expect(explained.stdout).toContain('How it came about')
})

test('a clean scenario replays with 0, and there is nothing to shrink', async () => {
  const file = join(folder, 'calm.json')
  const calm = scenario('calm').at(20).put('c1').build()
  await writeFile(file, encodeScenario(calm))
  const [replay, shrink] = await Promise.all([
    sim('replay', file, '--json'),
    sim('shrink', '--file', file, '-o', join(folder, 'none.json')),
  ])
  expect(replay.code).toBe(0)
  const printed: unknown = JSON.parse(replay.stdout)
  expect(printed).toMatchObject({ outcome: 'clean', isAsExpected: true })
  expect(shrink).toMatchObject({ code: 2, stdout: '' })
  expect(shrink.stderr).toContain('does not fail: there is nothing to shrink')
})

test('a command used wrongly ends with 2 and one line that says what is wrong', async () => {
  const missing = join(folder, 'missing.json')
  const wrong: readonly (readonly [args: readonly string[], words: string])[] = [
    [['replay', missing], `${missing}: there is no such file or folder`],
    [
      ['shrink', '--seed', '1', '--rules', 'PAX-0', '-o', missing],
      `option '--rules <ids...>' argument 'PAX-0' is invalid. unknown rule "PAX-0"; did you mean "PAX-1"?`,
    ],
  ]
  const ended = await Promise.all(wrong.map(([args]) => sim(...args)))
  expect(ended).toEqual(
    wrong.map(([, words]) => ({ code: 2, stdout: '', stderr: `error: ${words}\n` })),
  )
})

test('unreadable scenarios and unwritable outputs are reported before any work', async () => {
  const broken = join(folder, 'broken.json')
  await writeFile(broken, '{"format":')
  expect(await readScenario(broken)).toEqual({ ok: false, reason: `${broken}: it is not JSON` })
  expect(await readScenario(folder)).toEqual({ ok: false, reason: `${folder}: it is a folder` })
  const nowhere = join(folder, 'nowhere', 'out.json')
  expect(await obstacleTo(nowhere)).toBe(`${nowhere}: there is no such file or folder`)
  expect(await obstacleTo(folder)).toBe(`${folder}: it is a folder`)
  expect(await obstacleTo(broken)).toBeUndefined()
  expect(await obstacleTo(join(folder, 'new.json'))).toBeUndefined()
})
