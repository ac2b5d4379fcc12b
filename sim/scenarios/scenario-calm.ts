/**
 * The calm world: the value of every option when a scenario does not set it. A scenario starts from
 * it, and its size counts the options that differ from it.
 */
import { defaultLimits } from '../../src/base/limits.ts'
import { noFaultRates } from '../faults/swarm-faults.ts'
import { noPriorities } from '../world/priorities.ts'
import type { SwarmOptions, WorkloadOptions } from '../swarm.ts'
import { noTimes } from '../world/turn-costs.ts'
import type { LinkConditions } from '../world/weather.ts'

const second = 1_000_000

export function calmOptions(seed: number): SwarmOptions {
  return {
    seed,
    inspections: 0,
    endsWithRestart: false,
    nodeCount: 3,
    setCount: 1,
    workload: calmWorkload,
    link: calmLink,
    disk: { writeMinMicros: 100, writeMeanMicros: 0 },
    times: noTimes,
    priorities: noPriorities,
    faultRates: noFaultRates(10 * second),
    healing: { isCoreFirst: false, coreOrder: [], rest: 'down' },
    skews: Array.from({ length: 3 }, () => calmSkew),
    // Stories are short: the data stores have their commits before they end.
    limits: { ...defaultLimits, checkpointMs: 50, eraseWithinMs: 0 },
  }
}

export const calmSkew: SwarmOptions['skews'][number] = {
  offsetMicros: 0,
  driftPpm: 0,
  timerLatenessMicros: 0,
}

const calmWorkload: WorkloadOptions = {
  clientCount: 2,
  operationsPerClient: 0,
  thinkMeanMicros: 10_000,
  shardCount: 1,
  rowsPerShard: 1,
  writes: 500_000,
  contended: 0,
  anyReads: 0,
  lookedFor: 0,
  blindSessionCount: 0,
  blindWrites: 0,
  timeoutMs: 4_000,
  tryTimeoutMs: 500,
  listSessionCount: 0,
  listOperations: 0,
  pastSessionCount: 0,
  pastOperations: 0,
  tableSessionCount: 0,
  tableOperations: 0,
  tableStoreCount: 1,
  schemaChanges: 0,
  triggerWorkerCount: 0,
  triggerTroubles: 0,
  queues: {
    sessionCount: 0,
    operations: 0,
    groupCount: 2,
    handlerCount: 1,
    lifeMeanMicros: 0,
    hasPoison: false,
    batch: 20,
    concurrency: 4,
    attemptsMax: 3,
    retryMs: 50,
    pageRows: 1_000,
    receiversAtOnce: 128,
    receivedMax: 1_000,
    deliveryTimeoutMs: 10_000,
  },
  hasGlobalIndexes: false,
  schemaTrustMs: 10_000,
  indexClientCount: 0,
}

/** One millisecond each way, always. */
const calmLink: LinkConditions = {
  delayMinMicros: 1_000,
  delayMeanMicros: 0,
  tail: 0,
  tailFactor: 1,
  far: 0,
  farFactor: 1,
  reorder: 0,
  drop: 0,
  duplicate: 0,
  late: 0,
  lateMeanMicros: second,
  survive: 0,
  noticeMeanMicros: 1_000,
  reconnectMeanMicros: 5_000,
  framesUnderWayMax: 5_000,
}

/**
 * Options that say how things were drawn, or how much there is of what a scenario lists itself:
 * with faults and operations listed they change nothing that could be called an event.
 */
const uncounted: readonly string[] = [
  ...['seed', 'faultRates', 'workload.clientCount', 'workload.operationsPerClient'],
  ...['workload.thinkMeanMicros', 'workload.shardCount', 'workload.rowsPerShard'],
  ...['workload.writes', 'workload.contended', 'workload.anyReads', 'workload.lookedFor'],
  ...['workload.purges', 'workload.readBack', 'workload.cellTtl'],
  ...['workload.erases'],
  ...['workload.blindSessionCount', 'workload.blindWrites'],
  ...['workload.listSessionCount', 'workload.listOperations'],
]

/** Options by the path of their name that differ from those of the calm world. */
export function listKnobs(options: SwarmOptions): readonly string[] {
  const calm = listLeaves(calmFor(options.nodeCount))
  const set = listLeaves(options)
  return [...set.keys()].filter(
    (path) =>
      !uncounted.some((one) => path === one || path.startsWith(`${one}.`)) &&
      set.get(path) !== calm.get(path),
  )
}

/** The option at a path that `listKnobs` names, as text. */
export function optionAt(options: SwarmOptions, path: string): string {
  const leaf = listLeaves(options).get(path)
  return typeof leaf === 'string' ? leaf : JSON.stringify(leaf)
}

/** `nodeCount` of its own: five nodes have five calm clocks. */
export function calmFor(nodeCount: number): SwarmOptions {
  return { ...calmOptions(0), skews: Array.from({ length: nodeCount }, () => calmSkew) }
}

/** Members that go together: half of them would mean nothing. */
const wholes: readonly string[] = [
  'faultRates.lostData',
  'healing',
  'priorities',
  'relay',
  'times',
  'workload.gateways',
  'workload.heavy',
  'workload.lone',
  'workload.openLoad',
]

function listLeaves(value: unknown, path = ''): Map<string, unknown> {
  if (wholes.includes(path)) return new Map([[path, JSON.stringify(value)]])
  if (typeof value !== 'object' || value === null) return new Map([[path, value]])
  const leaves = new Map<string, unknown>()
  for (const [name, inner] of Object.entries(value)) {
    const innerPath = path === '' ? name : `${path}.${name}`
    for (const [at, leaf] of listLeaves(inner, innerPath)) leaves.set(at, leaf)
  }
  return leaves
}

/** The options with some of them, named by their paths, as in the calm world. */
export function calmed(options: SwarmOptions, paths: readonly string[]): SwarmOptions {
  const calm = calmFor(options.nodeCount)
  return mixed(options, calm, new Set(paths), '')
}

/** `own`, but what `paths` name taken from `other`, which has the same members. */
function mixed<T>(own: T, other: T, paths: ReadonlySet<string>, path: string): T {
  if (paths.has(path)) return other
  // Options that belong together are all there or all absent: the calm world may have none of them.
  if (typeof own !== 'object' || own === null || wholes.includes(path)) return own
  const clone: T = structuredClone(own)
  for (const name in own) {
    const innerPath = path === '' ? name : `${path}.${name}`
    clone[name] = mixed(own[name], other[name], paths, innerPath)
  }
  return clone
}
