/** Runs with hand-made lists of faults: each kind does to the store what it says. */
import { expect, test } from 'vitest'
import type { Fault } from '../../sim/faults/fault.ts'
import type { RunResult } from '../../sim/result.ts'
import { runPlan, type RunPlan } from '../../sim/run.ts'
import { drawSwarm, type HealingOptions } from '../../sim/swarm.ts'
import { noFaultRates } from '../../sim/faults/swarm-faults.ts'

const second = 1_000_000
const healing: HealingOptions = { isCoreFirst: false, coreOrder: ['n1', 'n2', 'n3'], rest: 'down' }

/**
 * A calm world of three nodes, with these faults in its first six seconds. Tables with their indexes, and queues,
 * are for the faults that data disks have: with them a run takes three times as long.
 */
function planOf(
  faults: readonly Fault[],
  more: Partial<RunPlan['options']> = {},
  tableSessionCount = 0,
): RunPlan {
  const options = drawSwarm(1, { only: [] })
  const { queues } = options.workload
  return {
    options: {
      ...{ ...options, nodeCount: 3, endsWithRestart: true, healing, inspections: 50_000 },
      faultRates: noFaultRates(6 * second),
      skews: Array.from({ length: 3 }, () => ({
        ...{ offsetMicros: 0, driftPpm: 0, timerLatenessMicros: 0 },
      })),
      relay: { lookMs: 500, patienceMs: 0 },
      workload: {
        ...{ ...options.workload, thinkMeanMicros: 60_000, operationsPerClient: 20 },
        // Later versions of the schema and reads of the past make most of the commits of such a run, and none of the
        // faults is about them.
        ...{ clientCount: 3, tableSessionCount, schemaChanges: 0, pastSessionCount: 0 },
        queues: { ...queues, sessionCount: tableSessionCount },
      },
      ...more,
    },
    faults,
  }
}

async function cleanRun(plan: RunPlan): Promise<RunResult> {
  const result = await runPlan(plan)
  expect(result.violations).toEqual([])
  expect(result.outcome).toBe('clean')
  return result
}

const at = 2 * second
const node = 'n2'

test('the nemesis skips faults that do not apply: a crash of a node that is down or unknown', async () => {
  const { coverage } = await cleanRun(
    planOf([
      { kind: 'crash', atMicros: at, node, downMicros: second },
      { kind: 'crash', atMicros: at + 1, node, downMicros: 0 },
      { kind: 'pause', atMicros: at + 1, node, lengthMicros: second },
      { kind: 'crash', atMicros: at, node: 'n9', downMicros: 0 },
    ]),
  )
  expect(coverage['crash']).toBe(1)
  expect(coverage['restart']).toBe(1)
  expect(coverage['pause']).toBeUndefined()
})

test('SNAP-3: a node crashes in the writes in which a snapshot takes over a group, and ends that when it starts', async () => {
  const { limits } = planOf([]).options
  // A node that was away lacks entries, and puts each snapshot down before it takes the group over.
  const snapshots = { snapshotAfterEntries: 0, snapshotBatchBytesMax: 1 }
  const { coverage } = await cleanRun(
    planOf(
      [
        { kind: 'crash', atMicros: second, node, downMicros: second },
        { kind: 'crash', atMicros: 0, node, downMicros: 0, inSwitch: 3, name: 'in switch' },
      ],
      { limits: { ...limits, ...snapshots } },
    ),
  )
  expect(coverage).toMatchObject({ crash: 1, 'in switch': 1 })
  expect(coverage['snapshot_switch_resumed']).toBeGreaterThan(0)
})

test('a node whose disk refuses stops, and comes back with what was durable', async () => {
  const { coverage } = await cleanRun(
    planOf([
      { kind: 'fsync-error', atMicros: at, node, downMicros: 0, disk: 'log' },
      { kind: 'fsync-error', atMicros: at, node: 'n1', downMicros: 0, disk: 'data' },
      { kind: 'no-space', atMicros: second, node: 'n3', lengthMicros: second, disk: 'log' },
    ]),
  )
  expect(coverage['fsync-error']).toBe(2)
  expect(coverage['node: start-again']).toBeGreaterThanOrEqual(3)
})

test('LIVE-2: a damaged data disk is made anew from the log, and its replica answers like the others', async () => {
  const bits = Array.from({ length: 40 }, (_, i): Fault => {
    const place = i * 25_000
    return { kind: 'bit-rot', atMicros: at + i, node, disk: 'data', place, bit: 77 + i }
  })
  const { coverage } = await cleanRun(planOf(bits, {}, 1))
  expect(coverage['bit-rot data']).toBeGreaterThan(10)
  expect(coverage['node: reset-data']).toBeGreaterThanOrEqual(1)
  const from = 100_000
  const moved: Fault = { kind: 'misdirected-write', atMicros: at, node, disk: 'data', from, to: 1 }
  expect(
    (await cleanRun(planOf([moved], {}, 1))).coverage['node: reset-data'],
  ).toBeGreaterThanOrEqual(1)
})

test('a log with a damaged header is refused by its node, and the others go on', async () => {
  const early = 1.5 * second
  const torn: Fault = {
    kind: 'torn-write',
    atMicros: early,
    node,
    downMicros: 1_000,
    kept: 100_000,
  }
  const { coverage, commits } = await cleanRun(planOf([torn]))
  expect(coverage['torn-write']).toBe(1)
  expect(coverage['node: retire']).toBe(1)
  expect(commits).toBeGreaterThan(20)
})

test('no peer admits a node with an old log or none, and the node ends itself', async () => {
  const downMicros = 1_000
  const old = { kind: 'stale-disk', node, downMicros, disk: 'both', imageAtMicros: second } as const
  const stale = await cleanRun(planOf([{ ...old, atMicros: 5 * second }]))
  expect(stale.coverage['stale-disk both']).toBe(1)
  expect(stale.coverage['node: retire']).toBe(1)
  const none = { kind: 'empty-disk', atMicros: 5 * second, node, downMicros, disk: 'both' } as const
  const empty = await cleanRun(planOf([none]))
  expect(empty.coverage['empty-disk both']).toBe(1)
  expect(empty.coverage['node: retire']).toBe(1)
})

test('a data disk that is old, or empty, is filled from the log', async () => {
  const downMicros = 1_000
  const old = { kind: 'stale-disk', node, downMicros, disk: 'data', imageAtMicros: second } as const
  const none = { kind: 'empty-disk', node: 'n3', downMicros, disk: 'data' } as const
  const { limits } = planOf([]).options
  const wholeLogs = { ...limits, truncateBytesMin: Number.MAX_SAFE_INTEGER }
  const { coverage } = await cleanRun(
    planOf(
      [
        { ...old, atMicros: 4 * second },
        { ...none, atMicros: 5 * second },
      ],
      { limits: wholeLogs },
      1,
    ),
  )
  expect([coverage['stale-disk data'], coverage['empty-disk data']]).toEqual([1, 1])
  expect(coverage['restoring_from_peers']).toBeUndefined()
  expect(coverage['node: retire']).toBeUndefined()
})

test('LOG-19: an empty data disk is filled by the peers, where the log has given up flushes', async () => {
  const none = { kind: 'empty-disk', node: 'n3', downMicros: 1_000, disk: 'data' } as const
  const { limits } = planOf([]).options
  const { coverage } = await cleanRun(
    planOf(
      [{ ...none, atMicros: 5 * second }],
      { limits: { ...limits, truncateBytesMin: 1, digestMs: 200 } },
      1,
    ),
  )
  expect([coverage['empty-disk data'], coverage['restored_from_peers']]).toEqual([1, 1])
})

test("two nodes with each other's disks refuse to start until that is put right", async () => {
  const nodes = ['n1', 'n3'] as const
  const { coverage } = await cleanRun(
    planOf([{ kind: 'swapped-disks', atMicros: at, nodes, lengthMicros: second }]),
  )
  expect(coverage['node: wait']).toBe(2)
  expect(coverage['node: retire']).toBeUndefined()
})

test('jumps, a strobe and a stall between reading and acting hurt nothing', async () => {
  const lengthMicros = second
  const { coverage } = await cleanRun(
    planOf([
      { kind: 'clock-jump', atMicros: at, node, wallMicros: 90 * second, monotonicMicros: second },
      {
        kind: 'clock-jump',
        atMicros: at,
        node: 'n1',
        wallMicros: -80 * second,
        monotonicMicros: 0,
      },
      {
        ...{ kind: 'clock-strobe', atMicros: at, node: 'n3', lengthMicros },
        ...{ wallMicros: 50 * second, everyMicros: 1_000 },
      },
      { kind: 'stall', atMicros: 4 * second, node, lengthMicros },
    ]),
  )
  expect(coverage['clock-jump']).toBe(2)
  expect([coverage['clock-strobe'], coverage['stall']]).toEqual([1, 1])
})

test('a client dies in the midst of its calls, and another takes its place', async () => {
  const deaths = [1, 2, 3].map((i): Fault => {
    return { kind: 'client-death', atMicros: i * second, client: 'c1', downMicros: 200_000 }
  })
  expect((await cleanRun(planOf(deaths))).coverage['client-death']).toBe(3)
})

test('LIVE-1: a majority goes on while the rest is down, cut off, deaf, mute or paused', async () => {
  for (const rest of ['down', 'cut', 'deaf', 'mute', 'paused'] as const) {
    const { coverage } = await cleanRun(
      planOf([], { endsWithRestart: false, healing: { ...healing, isCoreFirst: true, rest } }),
    )
    expect(coverage[`core while the rest is ${rest}`]).toBe(1)
  }
})

test('LIVE-1: nodes that are no majority do not go on alone, and that is noticed', async () => {
  const healed = { isCoreFirst: true, coreOrder: ['n1'], rest: 'cut' } as const
  const result = await runPlan(planOf([], { healing: healed }))
  expect(result.outcome).toBe('liveness')
  expect(result.violations.map(({ rule }) => rule)).toEqual(['LIVE-1'])
})
