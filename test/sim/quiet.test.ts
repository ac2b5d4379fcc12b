/**
 * No client asks for anything for long: the messages of the nodes in that time, their cost, and the work
 * after it.
 */
import { expect, test } from 'vitest'
import { computeEventsMax } from '../../sim/cluster/event-bound.ts'
import type { StoryLine } from '../../sim/cluster/narrator.ts'
import { makeCluster, nobody } from '../../sim/run-setup.ts'
import { runPlan } from '../../sim/run.ts'
import { calmOptions } from '../../sim/scenarios/scenario-calm.ts'
import type { SwarmOptions } from '../../sim/swarm.ts'

const second = 1_000_000

/** A calm world with clients of an index over cells; they have this much to do before the world heals. */
function indexed(lengthMicros: number): SwarmOptions {
  const calm = calmOptions(1)
  const faultRates = { ...calm.faultRates, lengthMicros }
  // A service with hands that pause and resume it, too.
  const troubled = { triggerWorkerCount: 2, triggerTroubles: 1 }
  const workload = { ...calm.workload, ...troubled, indexClientCount: 3, schemaTrustMs: 1_000 }
  return { ...calm, faultRates, workload }
}

test('in a quiet stretch nothing is said about groups, and leases come to an end', async () => {
  const [quietAtMicros, quietMicros] = [2 * second, 100 * second]
  const options = indexed(quietAtMicros + quietMicros + 2 * second)
  const faultRates = { ...options.faultRates, quietAtMicros, quietMicros }
  // The index is declared before, and would be built late in the stretch.
  const workload = { ...options.workload, schemaTrustMs: 60_000, boundedSessionCount: 1 }
  const limits = { ...options.limits, leaseIdleMs: 500 }
  const [before, within]: [StoryLine[], StoryLine[]] = [[], []]
  const story = (line: StoryLine): void => {
    const isOfNoGroup = ['clock', 'durable-mark'].includes(line.kind)
    if (line.verb !== 'sends' || line.kind.startsWith('digest') || isOfNoGroup) return
    if (line.timeMicros < quietAtMicros) before.push(line)
    // Work that was begun before has ended a minute later.
    const sinceMicros = line.timeMicros - quietAtMicros
    if (sinceMicros > 60 * second && sinceMicros < quietMicros) within.push(line)
  }
  const idle = { kind: 'idle', atMicros: quietAtMicros, lengthMicros: quietMicros } as const
  const plan = { options: { ...options, faultRates, workload, limits }, faults: [idle] }
  const { violations } = await runPlan(plan, { story, endsAtHealing: true })
  expect(violations).toEqual([])
  for (const asked of ['renew', 'reach-request']) {
    expect(before.some(({ kind }) => kind === asked)).toBe(true)
  }
  expect(within).toEqual([])
})

test('LIVE-1: an index over cells is built and compared where the clocks of nodes are minutes ahead', async () => {
  const options = indexed(5 * second)
  const skews = options.skews.map((skew) => ({ ...skew, offsetMicros: 200 * second }))
  const { violations, coverage } = await runPlan({ options: { ...options, skews }, faults: [] })
  expect(violations).toEqual([])
  expect(coverage['cells: an index compared']).toBe(3)
})

test('LIVE-5: a quiet stretch adds to the bound of events what its heartbeats cost', async () => {
  const calm = calmOptions(1)
  const limits = { ...calm.limits, heartbeatMs: 20 }
  const skews = Array.from({ length: 5 }, () => calm.skews[0] ?? expect.fail())
  const faultRates = { ...calm.faultRates, quietMicros: 60 * second }
  const busy = { ...calm, limits, skews, nodeCount: 5 }
  const cluster = makeCluster({ options: busy, faults: [] }, {}, nobody)
  const { world } = cluster
  cluster.start()
  expect(await world.run(() => cluster.programs.length === 5, 5 * second)).toBe('done')
  const before = world.eventCount
  await world.run(() => false, world.nowMicros + faultRates.quietMicros)
  const cost = world.eventCount - before
  const added = computeEventsMax({ ...busy, faultRates }) - computeEventsMax(busy)
  expect(cost).toBeGreaterThan(60_000)
  expect(added / cost).toBeGreaterThan(0.95)
  expect(added / cost).toBeLessThan(1.2)
})
