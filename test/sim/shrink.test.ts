/** Shrinking: the smaller run breaks the same rule, and no part of it can be spared. */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { describeExplanation, explain } from '../../sim/scenarios/explain.ts'
import { drawPlan, runPlan, type RunPlan } from '../../sim/run.ts'
import { scenario } from '../../sim/scenarios/scenario-builder.ts'
import {
  decodeScenario,
  encodeScenario,
  runScenario,
  buildScenario,
  measureScenario,
} from '../../sim/scenarios/scenario.ts'
import {
  compressed,
  until,
  withClientsAtWork,
  withNodes,
  withOptions,
} from '../../sim/scenarios/shrink-candidates.ts'
import { minimise } from '../../sim/scenarios/shrink-minimise.ts'
import { shrink } from '../../sim/scenarios/shrink.ts'

test('minimise ends with a list that fails and of which no single element can be spared', async () => {
  const needed = fc.subarray([3, 7, 8, 20, 31], { minLength: 1 })
  await fc.assert(
    fc.asyncProperty(needed, fc.boolean(), async (core, eitherHalf) => {
      // A run fails with all of the core; or, less simply, with its first or its last element.
      const fails = (kept: readonly number[]): boolean =>
        eitherHalf
          ? [core[0], core.at(-1)].some((one) => one !== undefined && kept.includes(one))
          : core.every((one) => kept.includes(one))
      let tried = 0
      const left = await minimise(
        Array.from({ length: 40 }, (_, i) => i),
        (kept) => {
          tried += 1
          return Promise.resolve(fails(kept))
        },
      )
      expect(fails(left)).toBe(true)
      for (const one of left) expect(fails(left.filter((other) => other !== one))).toBe(false)
      expect(left).toEqual([...left].sort((a, b) => a - b))
      expect(tried).toBeLessThan(200)
    }),
    { numRuns: 50 },
  )
})

test('minimise leaves everything out where nothing is needed, and nothing where all is', async () => {
  expect(await minimise([1, 2, 3], () => Promise.resolve(true))).toEqual([])
  expect(await minimise([1, 2, 3], (kept) => Promise.resolve(kept.length === 3))).toEqual([1, 2, 3])
})

/**
 * A failure that needs no bug in the code: a session that sends an intent below its own floor, as no
 * session may, gets the answer that it has expired, and says so. Two operations of these many bring
 * it about.
 */
function failing(): RunPlan {
  const builder = scenario('an intent below the floor').link({ drop: 1_000, tail: 900 })
  for (let i = 0; i < 12; i++) {
    builder.at(20 + 15 * i).put(i % 2 === 0 ? 'c1' : 'c2', { refKey: i })
    if (i % 3 === 0) builder.at(30 + 15 * i).pause('n1', 10)
    if (i % 4 === 0) builder.at(35 + 15 * i).latest('c3')
  }
  const blind = { kind: 'blind', client: 'blind-1', group: 'x' } as const
  builder.operation({ ...blind, atMicros: 60_000, sequence: 2 })
  builder.operation({ ...blind, atMicros: 150_000, sequence: 1 })
  const { plan } = builder.build()
  const priorities = { base: 3, changesAtMicros: [90_000, 120_000] }
  return withOptions(plan, { priorities })
}

const never = { isTimeUp: () => false, onProgress: () => undefined }

test('shrinking keeps the rule, leaves out what is not needed, and ends', async () => {
  const plan = failing()
  const before = await runPlan(plan)
  expect(before.violations[0]?.rule).toBe('META-3')
  const steps = new Set<string>()
  const shrunk = await shrink({ plan, ...never, onProgress: ({ step }) => void steps.add(step) })
  if (shrunk === undefined) throw new Error('it was to fail')
  expect(shrunk.result.violations[0]?.rule).toBe('META-3')
  expect(shrunk.isMinimal).toBe(true)
  expect(measureScenario(plan).events).toBeGreaterThan(20)
  expect(measureScenario(shrunk.plan)).toEqual({ faults: 0, operations: 2, knobs: 0, events: 2 })
  expect(steps).toContain('operations')

  const file = encodeScenario(buildScenario('shrunk', shrunk.plan, shrunk.result))
  const read = decodeScenario(file)
  if (!read.ok) throw new Error(read.reason)
  const replayed = await runScenario(read.scenario)
  expect(replayed.hash).toBe(read.scenario.expect.hash)
  expect(replayed.violations[0]).toMatchObject({ rule: 'META-3' })
})

test('a file that has been shrunk shrinks no further', async () => {
  const first = await shrink({ plan: failing(), ...never })
  if (first === undefined) throw new Error('it was to fail')
  const second = await shrink({ plan: first.plan, ...never })
  expect(second && measureScenario(second.plan)).toEqual(measureScenario(first.plan))
})

test('when the time is up at once, shrinking returns the plan itself, which fails', async () => {
  const plan = failing()
  const shrunk = await shrink({ plan, ...never, isTimeUp: () => true })
  expect(shrunk?.isMinimal).toBe(false)
  expect(shrunk && measureScenario(shrunk.plan)).toEqual(measureScenario(plan))
  expect(shrunk?.result.violations[0]?.rule).toBe('META-3')
})

test('a plan that does not fail, or not by the rules that count, is not shrunk', async () => {
  const { plan } = scenario('calm').at(20).put('c1').build()
  expect(await shrink({ plan, ...never })).toBeUndefined()
})

test('shrinking cuts off operations after a failure and closes the gaps of unrelated time', () => {
  const plan = scenario('times')
    .at(1_000)
    .crash('n1')
    .at(9_000)
    .crash('n2')
    .at(2_000)
    .put('c1')
    .at(8_000)
    .put('c2')
    .build().plan
  const early = until(plan, 5_000_000)
  expect(early.faults.map((fault) => fault.atMicros)).toEqual([1_000_000])
  expect(early.operations?.map((one) => one.client)).toEqual(['c1'])
  expect(early.options.faultRates.lengthMicros).toBe(5_000_000)
  const close = compressed(plan, 10_000)
  const moments = [...close.faults, ...(close.operations ?? [])].map((one) => one.atMicros)
  expect(moments).toEqual([10_000, 40_000, 20_000, 30_000])
})

test('with fewer nodes or clients no fault names who is gone', () => {
  const plan = scenario('fewer')
    .nodes(5)
    .client('c1', 'n1', 'n5')
    .at(10)
    .crash('n5')
    .partition(['n1', 'n4'], 100)
    .put('c1')
    .build().plan
  const three = withNodes(plan, 3)
  expect(three.options.skews).toHaveLength(3)
  expect(three.faults).toHaveLength(1)
  expect(JSON.stringify(three)).not.toMatch(/"n[45]"/)
  const alone = withClientsAtWork(three)
  expect(alone.options.workload.clientCount).toBe(1)
  expect(JSON.stringify(alone.faults)).not.toMatch(/"c[2-9]"/)
})

test('a drawn plan cut short has the faults of that time and no others', () => {
  const plan = drawPlan(3)
  const short = until(plan, 3_000_000)
  expect(short.faults).toEqual(plan.faults.filter(({ atMicros }) => atMicros <= 3_000_000))
  expect(short.faults.length).toBeGreaterThan(0)
  expect(short.faults.length).toBeLessThan(plan.faults.length)
})

test('the explanation of a shrunk failure is short, and ends with the rule', async () => {
  const shrunk = await shrink({ plan: failing(), ...never })
  if (shrunk === undefined) throw new Error('it was to fail')
  const explanation = await explain(buildScenario('shrunk', shrunk.plan, shrunk.result))
  if (explanation === undefined) throw new Error('it was to fail')
  const text = describeExplanation(explanation)
  expect(text.split('\n').length).toBeLessThan(100)
  expect(text).toContain('The run: 3 nodes; 2 events: 0 faults, 2 operations, 0 knobs.')
  expect(text).toContain('blind-1  blind write 1 to x')
})
