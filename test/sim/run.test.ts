import { expect, test } from 'vitest'
import { drawPlan, runPlan, runSeed } from '../../sim/run.ts'
import type { RunResult } from '../../sim/result.ts'
import { faultNames } from '../../sim/faults/swarm-faults.ts'
import { describeSwarm, drawSwarm } from '../../sim/swarm.ts'

/** Seeds that take a second or two each. */
const [one, other] = [723_252, 54_789] as const
const more = [43_352]

/** Results that other runs of the same seeds are compared with. */
const known = new Map<number, RunResult>()

async function firstRun(seed: number): Promise<RunResult> {
  const result = known.get(seed) ?? (await runSeed(seed))
  known.set(seed, result)
  return result
}

test('META-1: a seed run twice takes the same course, event for event', async () => {
  const first = await firstRun(one)
  const second = await runSeed(one)
  expect(second.violations).toEqual([])
  expect(second.hash).toBe(first.hash)
  expect(second.events).toBe(first.events)
  expect(second.coverage).toEqual(first.coverage)
  expect((await firstRun(other)).hash).not.toBe(first.hash)
})

test('META-1: being watched changes nothing', async () => {
  const lines: string[] = []
  const watched = await runSeed(other, { watch: (line) => lines.push(line) })
  expect(watched.hash).toBe((await firstRun(other)).hash)
  expect(lines.length).toBeGreaterThan(1_000)
})

test('the code as it is comes through some seeds clean', async () => {
  for (const seed of [one, other, ...more]) {
    const result = await firstRun(seed)
    expect(result.violations, `seed ${seed}`).toEqual([])
    expect(result.outcome).toBe('clean')
    expect(result.commits).toBeGreaterThan(50)
  }
})

test('MOVE-6: a node is added to one of two replica sets', async () => {
  // With these faults alone the seed draws both, and takes four seconds.
  const result = await runSeed(46, {}, { only: ['add', 'sets'] })
  expect(result.swarm).toContain('"setCount":2')
  expect(result.coverage['add']).toBeGreaterThan(0)
  expect(result.coverage['change_done']).toBeGreaterThan(0)
  expect(result.violations).toEqual([])
})

test('META-1: a plan is plain data: its JSON copy takes the same course', async () => {
  const plan = drawPlan(one)
  expect(plan.faults.length).toBeGreaterThan(3)
  const copy: typeof plan = JSON.parse(JSON.stringify(plan))
  expect(copy).toEqual(plan)
  expect((await runPlan(copy)).hash).toBe((await firstRun(one)).hash)
})

test('the options of a seed are drawn from it alone, and told on one line', () => {
  const options = drawSwarm(42)
  expect(drawSwarm(42)).toEqual(options)
  expect(drawSwarm(43)).not.toEqual(options)
  expect(describeSwarm(options)).not.toContain('\n')
  expect(describeSwarm(options)).toContain('"seed":42')
})

test('swarms turn each kind of fault on in some seeds and off in others', () => {
  const plans = Array.from({ length: 400 }, (_, seed) => drawSwarm(seed))
  const kinds: readonly ((plan: (typeof plans)[number]) => number)[] = [
    ...faultNames.map(
      (name) =>
        ({ faultRates }: (typeof plans)[number]) =>
          faultRates.meanMicros[name] ?? 0,
    ),
    ({ link }) => link.drop,
    ({ link }) => link.duplicate,
    ({ link }) => link.reorder,
  ]
  for (const kind of kinds) {
    const on = plans.filter((plan) => kind(plan) > 0).length
    expect(on).toBeGreaterThan(12)
    expect(on).toBeLessThan(360)
  }
  expect(new Set(plans.map((plan) => plan.nodeCount))).toEqual(new Set([3, 5, 6]))
})
