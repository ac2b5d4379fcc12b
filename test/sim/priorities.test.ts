/** Schedules by priority: who draws them, what they do to ways and disks, and that they end. */
import { expect, test } from 'vitest'
import { Coverage } from '../../sim/coverage.ts'
import { noPriorities, Priorities, type PriorityOptions } from '../../sim/world/priorities.ts'
import { drawPlan, runPlan, runSeed } from '../../sim/run.ts'
import { scenario } from '../../sim/scenarios/scenario-builder.ts'
import { calmOptions, listKnobs } from '../../sim/scenarios/scenario-calm.ts'
import { compressed, withCalm } from '../../sim/scenarios/shrink-candidates.ts'
import { describeSwarm, drawSwarm } from '../../sim/swarm.ts'
import { Weather } from '../../sim/world/weather.ts'
import { World } from '../../sim/world/world.ts'

const seeds = Array.from({ length: 200 }, (_, i) => i + 1)
const ways = ['n1>n2', 'n2>n1', 'n1>n3', 'n3>n1', 'n2>n3', 'n3>n2', 'write n1 log', 'write n2 log']
const slowest = 3 ** 4

interface Place {
  readonly world: World
  readonly coverage: Coverage
  readonly priorities: Priorities
}

function place(options: PriorityOptions, seed = 1): Place {
  const world = new World(seed, 1_000)
  const coverage = new Coverage()
  return { world, coverage, priorities: new Priorities(options, world, coverage) }
}

/** A small run shows as much as a large one. */
function callsOf(seed: number): number {
  const { clientCount, operationsPerClient, tableSessionCount } = drawSwarm(seed).workload
  return clientCount * operationsPerClient + 100 * tableSessionCount
}

test('a quarter of the seeds go by priority, with changes in the phase of faults, and say so', () => {
  const plans = seeds.map((seed) => drawSwarm(seed))
  const drawn = plans.filter(({ priorities }) => priorities !== undefined)
  expect(drawn.length).toBeGreaterThan(30)
  expect(drawn.length).toBeLessThan(70)
  for (const options of drawn) {
    const { base, changesAtMicros } = options.priorities ?? noPriorities
    expect([2, 3]).toContain(base)
    expect([1, 2, 3, 4]).toContain(changesAtMicros.length)
    expect(changesAtMicros).toEqual(changesAtMicros.toSorted((a, b) => a - b))
    expect(changesAtMicros.at(-1)).toBeLessThan(options.faultRates.lengthMicros)
    expect(describeSwarm(options)).toContain(`"priorities":{"base":${base},`)
  }
})

test('nothing else of a seed moves when its priorities are switched off', () => {
  for (const seed of seeds) {
    const { priorities, ...others } = drawSwarm(seed)
    expect(drawSwarm(seed, { without: ['priorities'] })).toEqual(others)
    expect(drawSwarm(seed, { only: ['crash'] }).priorities).toBeUndefined()
    expect(drawSwarm(seed, { only: ['priorities'] }).priorities === undefined).toBe(
      priorities === undefined,
    )
  }
})

test('each way and disk keeps a rank from the seed, in any order of first use', () => {
  const options = { base: 3, changesAtMicros: [] }
  const { priorities } = place(options)
  const factors = ways.map((way) => priorities.take(way))
  expect(new Set(factors).size).toBeGreaterThan(1)
  for (const factor of factors) expect([1, 3, 9, 27]).toContain(factor)
  expect(ways.map((way) => priorities.take(way))).toEqual(factors)
  const backwards = place(options).priorities
  expect(ways.toReversed().map((way) => backwards.take(way))).toEqual(factors.toReversed())
  const other = place(options, 2).priorities
  expect(ways.map((way) => other.take(way))).not.toEqual(factors)
})

test('at each change the next to act falls to the slowest rank, and none falls twice', async () => {
  const { world, coverage, priorities } = place({ base: 3, changesAtMicros: [500, 1_000] })
  const [first = '', second = ''] = ways
  expect(priorities.take(first)).toBeLessThan(slowest)
  world.schedule(1_000, 'later', () => {
    expect(priorities.computeFactor(first)).toBeLessThan(slowest)
    expect(priorities.take(first)).toBe(slowest)
    expect(priorities.take(first)).toBe(slowest)
    expect(priorities.take(second)).toBe(slowest)
    for (const way of ways.slice(2)) expect(priorities.take(way)).toBeLessThan(slowest)
  })
  await world.run(() => false, 2_000)
  expect(coverage.counts()['demoted']).toBe(2)
})

test('when the world heals all ways and disks are alike again', () => {
  const { priorities } = place({ base: 3, changesAtMicros: [0] })
  const weather = new Weather(calmOptions(1).link, priorities)
  expect(weather.takeTurn('n1', 'n2')).toBe(slowest)
  expect(weather.slownessOf('n1~2', 'n2')).toBe(slowest)
  weather.heal()
  expect(weather.takeTurn('n1', 'n2')).toBe(1)
  expect(priorities.take('write n1 log')).toBe(1)
})

test('META-1: a seed by priority takes the same course twice, and another one without', async () => {
  const [seed = 0] = seeds
    .filter((one) => drawSwarm(one).priorities !== undefined)
    .toSorted((a, b) => callsOf(a) - callsOf(b))
  const first = await runPlan(drawPlan(seed), { endsAtHealing: true })
  const again = await runPlan(drawPlan(seed), { endsAtHealing: true })
  expect(again.hash).toBe(first.hash)
  expect(first.coverage['priorities']).toBeGreaterThan(0)
  expect(first.coverage['demoted']).toBeGreaterThan(0)
  const even = await runSeed(seed, { endsAtHealing: true }, { without: ['priorities'] })
  expect(even.hash).not.toBe(first.hash)
  expect(even.coverage['priorities']).toBeUndefined()
})

test('priorities are one knob, which shrinking can drop, and their changes close up like all else', () => {
  const { plan } = scenario('by priority').at(2_000).put('c1').build()
  const priorities = { base: 3, changesAtMicros: [1_000_000, 9_000_000] }
  const slow = { ...plan, options: { ...plan.options, priorities } }
  expect(listKnobs(slow.options)).toEqual([...listKnobs(plan.options), 'priorities'])
  expect(withCalm(slow, ['priorities']).options.priorities).toEqual(noPriorities)
  const close = compressed(slow, 10_000)
  expect(close.options.priorities).toEqual({ base: 3, changesAtMicros: [10_000, 30_000] })
  expect(close.operations?.map((one) => one.atMicros)).toEqual([20_000])
})
