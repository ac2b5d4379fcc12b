import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { unjudged } from '../../sim/judged-rules.ts'
import type { Switches } from '../../sim/faults/swarm-faults.ts'
import { compareRuns, type RunResult } from '../../sim/result.ts'
import { runSeed } from '../../sim/run.ts'
import { sim, simHere, simInterrupted } from './command.ts'

/** Under these faults alone this seed and the two from the next one on are short, a second or two each: the tests are of the command line, not of seeds. */
const short = 11_099
const faults = ['--faults', 'crash,clog']
const switches: Switches = { only: ['crash', 'clog'] }

/** Of those for which no faults can be named this seed and the next one are short. */
const shortWithAll = 13_188

/** The result that the command line's result is compared with. */
let shortAlone: RunResult | undefined

async function runShort(): Promise<RunResult> {
  shortAlone ??= await runSeed(short, {}, switches)
  return shortAlone
}

test('wrong usage ends with 2 and says what was expected', async () => {
  for (const args of [['run'], ['unknown']]) {
    const { code, stdout, stderr } = await sim(...args)
    expect(code, args.join(' ')).toBe(2)
    expect(stdout).toBe('')
    expect(stderr).toContain('error:')
  }
})

test('a flag that takes one value is refused where it is given twice', async () => {
  const { code, stdout, stderr } = await sim('run', '--seed', '1', '--seed', '2')
  expect({ code, stdout, stderr }).toEqual({
    code: 2,
    stdout: '',
    stderr: 'error: --seed is given twice; it takes one value\n',
  })
})

/** Lines that would leave a command with nothing to look at, or that it does not take at all. */
const refused: readonly (readonly [line: string, said: RegExp])[] = [
  ['run --seed 1 --rules nope', /unknown rule "nope"/],
  ['run --seed 1 --rules PAX-1 PAX1', /unknown rule "PAX1"; did you mean "PAX-1"\?/],
  // Of a campaign alone.
  ['run --seed 1 --rules META-2', /unknown rule "META-2"/],
  ['run --seed 1 --rules', /argument missing/],
  ['run --seed 1 --faults crahs', /unknown fault "crahs"; did you mean "crash"\?/],
  ['run --seed 1 --without crash,', /unknown fault ""/],
  ['run --seed x', /expected a whole number/],
  ['run --seeds 5..1', /expected a range/],
  ['run --seeds 1..', /expected a range/],
  ['run --seeds 0x1..0x2', /expected a range/],
  ['run --seeds abc', /expected a range/],
  ['run --seed 0x10', /expected a whole number/],
  ['run --seed 1 --seeds 1..2', /cannot be used with/],
  ['run --seed 1 --jobs 2', /cannot be used with/],
  ['run --seeds 1..2 --history x.jsonl', /cannot be used with/],
  ['run --seeds 1..2 --jobs 0', /expected 1 to 256/],
  ['run --seeds 1..2 --time 0s', /expected a time/],
  ['run --seed 1 --rule PAX-1', /unknown option '--rule'/],
  ['run 1', /too many arguments/],
  ['mutants --only M-none', /unknown mutant "M-none"/],
  ['mutants --seconds 0', /1 or more/],
  ['explore --scope nope', /unknown scope "nope"/],
  ['explore --seconds 0', /1 or more/],
  ['explore --walks 0', /1 or more/],
  ['explore --rules PAX-77', /unknown rule "PAX-77"/],
  ['explore --mutants nope', /unknown mutant "nope"/],
  ['shrink --seed 1 -o x.json --rules nope', /unknown rule "nope"/],
  ['check-determinism --seeds 3..1', /expected a range/],
  ['nightly --time 1s --keep /tmp/x --jobs many', /expected a whole number/],
  ['processes --mutant nope', /unknown mutant "nope"/],
  ['processes --seconds 0', /1 to/],
  ['audit /none.csv --mutant nope', /unknown mutant "nope"/],
  ['history /none.jsonl --promised best', /Allowed choices/],
  ['run --seed 1 --faults crash --without crash', /leaves none/],
  ['run --seed 1 --history /none/h.jsonl', /no such file or folder/],
  ['nightly --time 1s --keep package.json', /cannot be the folder of findings/],
  ['rum --seed 1', /Did you mean run\?/],
]

test('sim refuses an argument that a command cannot use with 2, and names the likely one', async () => {
  for (const [line, said] of refused) {
    const { code, stdout, stderr } = await simHere(...line.split(' '))
    expect({ line, code, stdout }).toEqual({ line, code: 2, stdout: '' })
    expect(stderr, line).toMatch(said)
  }
})

test('META-2: a seed whose events a rule has nothing to do with is no proof of that rule', async () => {
  const { judgements } = await runShort()
  expect(judgements['PAX-1']).toBeGreaterThan(0)
  const [rule = ''] = unjudged(judgements)
  expect(rule).not.toBe('')
  const line = ['run', '--seed', String(short), ...faults]
  const blind = await simHere(...line, '--rules', rule)
  expect(blind.code).toBe(13)
  expect(blind.stdout).toContain(`META-2: nothing was judged by ${rule}`)
  const seen = await simHere(...line, '--rules', rule, 'PAX-1')
  expect(seen.code).toBe(0)
})

test('a clean seed ends with 0 and prints its options and its hash', async () => {
  const { code, stdout } = await sim('run', '--seed', String(short), ...faults, '--check')
  expect(code).toBe(0)
  expect(stdout).toContain(`options {"seed":${short},`)
  expect(stdout).toMatch(new RegExp(`seed ${short}: clean, hash [0-9a-f]{16}`))
})

test('META-1: seeds spread over processes take the same course as one after another', async () => {
  const range = `${short}..${short + 1}`
  const { code, stdout } = await sim('run', '--seeds', range, ...faults, '--jobs', '2', '--json')
  expect(code).toBe(0)
  const summary: unknown = JSON.parse(stdout)
  let events = 0
  let commits = 0
  for (const seed of [short, short + 1]) {
    const alone = seed === short ? await runShort() : await runSeed(seed, {}, switches)
    events += alone.events
    commits += alone.commits
  }
  expect(summary).toMatchObject({
    seeds: 2,
    violations: 0,
    failed: [],
    failures: [],
    events,
    commits,
  })
})

test('a campaign that is interrupted lets its seeds end, sums up, and says where to go on', async () => {
  for (const [signal, asExitCode, jobs] of [
    ['SIGINT', 130, '2'],
    ['SIGHUP', 129, '1'],
  ] as const) {
    const many = ['run', '--seeds', `${short}..900000`, ...faults, '--json', '--json-lines']
    const { code, stdout } = await simInterrupted([signal], ...many, '--jobs', jobs)
    const lines = stdout.trim().split('\n')
    const { seeds, left, failed }: Record<string, unknown> = JSON.parse(lines.at(-1) ?? '')
    expect([code, left, failed]).toEqual([asExitCode, `${short + lines.length - 1}..900000`, []])
    // The line of each seed, those under way included, and the sum.
    expect(seeds).toBe(lines.length - 1)
  }
})

test('a campaign that is interrupted twice ends at once, and none of its processes is left', async () => {
  const many = ['run', '--seeds', `${short}..800000`, ...faults, '--json', '--json-lines']
  const { code, stdout } = await simInterrupted(['SIGINT', 'SIGTERM'], ...many, '--jobs', '2')
  // Whichever came first. This is known only when all that write to its output have ended.
  expect([130, 143]).toContain(code)
  expect(stdout).not.toContain('"left":')
})

test('META-1: two runs of a seed with different hashes are reported as such', async () => {
  const result = await runShort()
  expect(compareRuns(result, result)).toBe(result)
  const other = compareRuns(result, { ...result, hash: '0000000000000000' })
  expect(other.outcome).toBe('nondeterminism')
  expect(other.violations[0]?.rule).toBe('META-1')
})

test('nightly goes on with the seed after the last one, and refuses a note it did not write', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'trilithon-nightly-'))
  try {
    const night = ['nightly', '--time', '1s', '--keep', folder]
    const first = await sim(...night, '--from', String(shortWithAll))
    expect(first).toMatchObject({ code: 0 })
    const told = new RegExp(`^(\\d+) seeds from ${shortWithAll}, 0 failed`, 'm').exec(first.stdout)
    const next = Number(told?.[1]) + shortWithAll
    expect(await readFile(join(folder, 'next.json'), 'utf8')).toBe(`{"seed":${next}}\n`)
    expect((await sim(...night)).stdout).toContain(`seeds from ${next}, `)
    await writeFile(join(folder, 'next.json'), 'tomorrow')
    const refused = await sim(...night)
    expect(refused).toMatchObject({ code: 2, stdout: '' })
    expect(refused.stderr).toContain('next.json is not what nightly wrote')
  } finally {
    await rm(folder, { recursive: true })
  }
})
