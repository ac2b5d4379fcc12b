import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { applyEdit, packageRoot } from '../../sim/mutants/mutant-copy.ts'
import { hunt } from '../../sim/mutants/mutant-hunt.ts'
import { mutants } from '../../sim/mutants/mutants.ts'

test('every planted bug fits the sources exactly once', async () => {
  const root = await packageRoot()
  for (const mutant of mutants) {
    for (const edit of mutant.edits) {
      const source = await readFile(join(root, edit.file), 'utf8')
      expect(applyEdit(source, edit), mutant.id).not.toBe(source)
    }
  }
})

test('a patch that does not fit, or fits twice, fails', () => {
  const edit = { file: 'a file', find: 'one', replace: 'two' }
  expect(applyEdit('just one here', edit)).toBe('just two here')
  expect(() => applyEdit('nothing', edit)).toThrow('not found in a file')
  expect(() => applyEdit('one and one', edit)).toThrow('twice in a file')
})

test('the bank has the bugs of what is built, a canary and a control', () => {
  const ids = mutants.map((mutant) => mutant.id)
  const banked = ['G01', 'G02', 'G03', 'G05', 'G07', 'G08', 'G10', 'G17', 'G18']
  const expected = ['control', 'canary', ...banked, 'G09-ranges', 'G09-absent']
  expect(ids).toEqual(expect.arrayContaining(expected))
  expect(new Set(ids).size).toBe(ids.length)
})

test('META-2: a planted failure is reported, with its seed and its rule', async () => {
  const canary = mutants.find((mutant) => mutant.id === 'canary')
  expect(canary).toBeDefined()
  if (canary === undefined) return
  // Both seeds are short.
  const found = await hunt(canary, {
    from: 168_699,
    to: 168_701,
    secondsMax: 600,
    shrinkSeconds: 0,
  })
  expect(found).toMatchObject({ isAsExpected: true, foundAtSeed: 168_700, foundBy: 'META-2' })
})

test('LOG-6: an applied position in a write of its own is found at once', async () => {
  const mutant = mutants.find((one) => one.id === 'G17')
  expect(mutant).toBeDefined()
  if (mutant === undefined) return
  const found = await hunt(mutant, { from: 1, to: 20, secondsMax: 600, shrinkSeconds: 0 })
  expect(found).toMatchObject({ isAsExpected: true, foundBy: 'LOG-6' })
})

test('LEASE-2: a mutant that no seed meets in time is found in its scope', async () => {
  const mutant = mutants.find((one) => one.id === 'L13')
  expect(mutant?.scopes).toEqual(['lease-restarts'])
  if (mutant === undefined) return
  const found = await hunt(mutant, { from: 1, to: 20, secondsMax: 600, shrinkSeconds: 0 })
  expect(found).toMatchObject({ isAsExpected: true, foundInScope: 'lease-restarts', events: 6 })
  expect(found).toMatchObject({
    foundBy: 'LEASE-2',
    seedsTried: 0,
    scopesTried: ['lease-restarts'],
  })
})

test('a hunt that is interrupted says what was not looked for, and leaves no copy behind', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'hunt-'))
  const words = ['dist/sim/main.js', 'mutants', '--only', 'control', 'L13', 'G17', '--jobs', '2']
  const child = spawn(process.execPath, words, {
    ...{ cwd: await packageRoot(), detached: true, stdio: ['ignore', 'pipe', 'inherit'] },
    env: { ...process.env, TMPDIR: folder },
  })
  const closed = once(child, 'close')
  let stdout = ''
  child.stdout?.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
  try {
    const copies = async (): Promise<void> => expect(await readdir(folder)).toHaveLength(2)
    await vi.waitFor(copies, { timeout: 20_000, interval: 20 })
    // To all of it, as a terminal does.
    process.kill(-(child.pid ?? expect.fail()), 'SIGINT')
    expect(await closed).toEqual([130, null])
    expect(stdout).toBe('0/0 as expected; ended before the others: --only control G17 L13\n')
    expect(await readdir(folder)).toEqual([])
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})
