/**
 * The swarm: each seed draws its own topology, fault rates and knobs, and turns whole kinds of
 * fault off, since rare things meet more often where others do not happen at all.
 */
import { checkLimits, defaultLimits, leaseMsMin, type Limits } from '../src/base/limits.ts'
import { worklistBounds, type WorklistBounds } from '../src/worklist/worklist-worker.ts'
import type { ClockSkew } from './world/clock.ts'
import { pickCore, drawBehind } from './faults/behind-draw.ts'
import { drawPriorities, type PriorityOptions } from './world/priorities.ts'
import { SeededRandom } from './world/random.ts'
import { nodeName } from './cluster/endpoints.ts'
import { drawGateways, type GatewayOptions } from './cluster/gateway-draw.ts'
import { drawSnapshots } from './cluster/snapshot-draw.ts'
import { drawHeavy, type MuchOptions } from './workloads/heavy-draw.ts'
import { withLone, type LoneOptions } from './workloads/lone-draw.ts'
import { drawLater, noReplicaSessions, splitRate, type LaterOptions } from './sets-draw.ts'
import { drawSpares } from './faults/members-drawings.ts'
import { brokenKinds, type Broken } from './faults/nemesis.ts'
import { drawFaultRates, isOn, type FaultRates, type Switches } from './faults/swarm-faults.ts'
import { drawCellTtl, drawPurges } from './workloads/purge-draw.ts'
import { drawDisk, drawLogStore, type DiskConditions } from './disk-draw.ts'
import { drawErase } from './erase-draw.ts'
import { drawCheckpoints } from './checkpoint-draw.ts'
import { drawHistory } from './history-draw.ts'
import { drawLogEnd } from './log-end-draw.ts'
import { withLostData } from './lost-data-draw.ts'
import { drawTimes } from './times-draw.ts'
import type { TimeOptions } from './world/turn-costs.ts'
import type { LinkConditions } from './world/weather.ts'

/** Messages from group to group: their senders, their handlers, and their delivery. */
export interface QueueOptions {
  /** The number of sessions that send; 0: none. */
  readonly sessionCount: number
  /** Transactions of each, every one with some messages. */
  readonly operations: number
  readonly groupCount: number
  readonly handlerCount: number
  /** How long a handler's process lives; 0: to the end. */
  readonly lifeMeanMicros: number
  readonly hasPoison: boolean
  /** Between two times that all dead letters are brought back while handlers fail; 0: never. */
  readonly redriveMeanMicros?: number
  readonly batch: number
  readonly concurrency: number
  readonly attemptsMax: number
  readonly retryMs: number
  /** Rows of an outbox read at once, groups served side by side, messages received at once. */
  readonly pageRows: number
  readonly receiversAtOnce: number
  readonly receivedMax: number
  /** For each transaction of a delivery. */
  readonly deliveryTimeoutMs: number
}

export interface WorkloadOptions extends MuchOptions {
  readonly clientCount: number
  readonly operationsPerClient: number
  readonly thinkMeanMicros: number
  readonly shardCount: number
  readonly rowsPerShard: number
  /** Parts per million of operations that write; of writes, those that go where others may be. */
  readonly writes: number
  readonly contended: number
  /** Parts per million of reads that ask any replica instead of being current. */
  readonly anyReads: number
  /** Parts per million of acknowledged puts that another client looks for at once. */
  readonly lookedFor: number
  /** And of those that their own session reads at once, from any replica. */
  readonly readBack?: number
  /** Parts per million of operations that purge cells, of the last shard; absent: none. */
  readonly purges?: number
  /** Seconds that cells of one column live, in the last shard, where cells are also purged and held; or none. */
  readonly cellTtl?: number
  /** Sessions of tables purge rows, and holds forbid that for a while. */
  readonly erases?: true
  /** Sessions that write without reading, and their writes. */
  readonly blindSessionCount: number
  readonly blindWrites: number
  /** Sessions that append to lists and read them, and their transactions. */
  readonly listSessionCount: number
  readonly listOperations: number
  /** Sessions that write rows anew and delete them, as many that read their past; their snapshots. */
  readonly pastSessionCount: number
  readonly pastOperations: number
  /** Sessions on typed tables, their transactions and reads, and the groups that these are of. */
  readonly tableSessionCount: number
  readonly tableOperations: number
  readonly tableStoreCount: number
  /** Sessions that give the cluster the schema's next version, in the middle of their work. */
  readonly schemaChanges: number
  /** Workers of a service with a trigger on what clients write; with troubles, they meet some. */
  readonly triggerWorkerCount: number
  readonly triggerTroubles: number
  readonly queues: QueueOptions
  /** Whether the tables have global indexes; how long sessions go by a schema before they look again. */
  readonly hasGlobalIndexes: boolean
  readonly schemaTrustMs: number
  /** Clients of a datastore that has an index. */
  readonly indexClientCount: number
  readonly lone?: LoneOptions
  /** Absent: no client uses HTTP. */
  readonly gateways?: GatewayOptions
  /** How long a call is tried in all, and one node is given. */
  readonly timeoutMs: number
  readonly tryTimeoutMs: number
}

/** How the world heals: a core of nodes first, while the rest stays broken for good; then all. */
export interface HealingOptions {
  /** Whether there is a time for the core alone. */
  readonly isCoreFirst: boolean
  /** The first of these that make a majority, and have never had a damaged log, are the core. */
  readonly coreOrder: readonly string[]
  readonly rest: Broken
}

export interface SwarmOptions extends LaterOptions {
  readonly seed: number
  /** Parts per million of applied entries after which the replica's rows are compared. */
  readonly inspections: number
  /** Whether, at the end, all nodes are started again and compared once more. */
  readonly endsWithRestart: boolean
  readonly nodeCount: number
  /** Nodes that may be added to the first set; absent: none. */
  readonly spares?: number
  /** Replica sets, in which the nodes are in their order; absent: one. */
  readonly setCount?: number
  readonly workload: WorkloadOptions
  readonly link: LinkConditions
  readonly disk: DiskConditions
  /** The length of the segment files that logs are in; absent: logs are in LevelDB. */
  readonly segmentBytes?: number
  /** The time that turns cost and reads take; absent: none. */
  readonly times?: TimeOptions
  /** Absent: delays are as they are drawn. */
  readonly priorities?: PriorityOptions
  readonly faultRates: FaultRates
  readonly healing: HealingOptions
  /** How soon another node takes over what a relay of indexes leaves lying; absent: as usual. */
  readonly relay?: Pick<WorklistBounds, 'lookMs' | 'patienceMs'>
  /** One per node, in their order. */
  readonly skews: readonly ClockSkew[]
  readonly limits: Limits
}

const second = 1_000_000
/** On a way between nodes far apart, on average. */
const farDelayMicrosMax = 40_000

export function drawSwarm(seed: number, switches: Switches = {}): SwarmOptions {
  const random = new SeededRandom(`${seed}/swarm`)
  const isSplit = random.fork('sets').chance(splitRate) && isOn('sets', switches)
  const ofOneSet = random.chance(250_000) ? 5 : 3
  const nodeCount = isSplit ? 6 : ofOneSet
  const link = drawLink(random.fork('link'), switches)
  const disk = drawDisk(random.fork('disk'))
  const isTight = random.fork('tight').chance(300_000) && isOn('tight-timeouts', switches)
  const faultRates = drawFaultRates(random.fork('faults'), switches)
  const priorityRandom = random.fork('priorities')
  const isByPriority = priorityRandom.chance(250_000) && isOn('priorities', switches)
  const limits = drawLimits(random.fork('limits'), isTight ? 0 : estimatePhaseMs(link, disk), disk)
  const skews = Array.from({ length: nodeCount }, (_, i) =>
    drawSkew(random.fork(`skew ${i}`), switches),
  )
  drawBehind(random.fork('behind'), skews, switches)
  const leases = drawLeases(random.fork('leases'), skews, switches)
  const drawn = drawWorkload(random.fork('workload'))
  const workload = isSplit ? { ...drawn, ...noReplicaSessions } : drawn
  const drawnOptions = {
    ...{ seed, nodeCount, ...drawSpares(faultRates) },
    setCount: isSplit ? 2 : 1,
    ...(isSplit && drawLater(random.fork('later set'), switches)),
    inspections: random.pick([0, 5_000, 50_000]),
    endsWithRestart: random.chance(400_000),
    workload: withLone(random.fork('lone'), workload, faultRates, switches),
    link,
    disk,
    ...drawLogStore(random.fork('log store'), switches),
    times: drawTimes(random.fork('times'), switches),
    ...(isByPriority && {
      priorities: drawPriorities(priorityRandom, estimateUsualMicros(link, disk), faultRates),
    }),
    faultRates: leases.leaseMs === 0 ? faultRates : withHonestClocks(faultRates),
    healing: { ...drawHealing(random.fork('healing'), nodeCount), ...pickCore(skews) },
    relay: drawRelay(random.fork('relay')),
    skews,
    limits: {
      ...{ ...limits, ...leases, ...drawBatches(random) },
      ...{ ...drawLogEnd(random.fork('log end')), ...drawErase(random.fork('erase'), limits) },
    },
  }
  return withLostData(random.fork('lost data'), drawnOptions, switches)
}

/**
 * Leases stand on monotonic clocks that drift within a bound: clocks that drift more than that, or leap, are no part of what
 * they promise; nor is a suspension that a wall clock hides which is set back. So the bound is that of this world, and where
 * there are leases no clock leaps, and none is set back where machines are suspended (`withHonestClocks`).
 */
function drawLeases(
  random: SeededRandom,
  skews: readonly ClockSkew[],
  switches: Switches,
): Pick<Limits, 'leaseMs' | 'clockDriftPpm' | 'leaseGroupsMax' | 'leaseIdleMs' | 'invalidateMs'> {
  const { leaseMs, clockDriftPpm, leaseGroupsMax, leaseIdleMs, invalidateMs } = defaultLimits
  const drifts = skews.map(({ driftPpm }) => Math.abs(driftPpm))
  const driftPpm = Math.max(clockDriftPpm, ...drifts)
  const drawn = random.pick([0, leaseMsMin(driftPpm), 300, leaseMs, leaseMs, 3_000])
  return {
    leaseMs: isOn('leases', switches) ? drawn : 0,
    clockDriftPpm: driftPpm,
    leaseGroupsMax: random.pick([1, 2, leaseGroupsMax, leaseGroupsMax, leaseGroupsMax]),
    leaseIdleMs: random.pick([20, 500, leaseIdleMs]),
    invalidateMs: random.pick([1, invalidateMs, 50]),
  }
}

function withHonestClocks(rates: FaultRates): FaultRates {
  const isSuspended = rates.meanMicros['suspend'] !== undefined
  const left = new Set(['jump-forward', ...(isSuspended ? ['jump-back', 'strobe'] : [])])
  const kinds = Object.entries(rates.meanMicros).filter(([name]) => !left.has(name))
  return { ...rates, meanMicros: Object.fromEntries(kinds) }
}

/** A crash between batches needs more than one of them: also where that fault is switched off. */
function drawBatches(random: SeededRandom): Partial<Limits> {
  const { meanMicros } = drawFaultRates(random.fork('faults'), {})
  const own = random.fork('batches')
  if (meanMicros['crash-in-recovery'] === undefined || own.chance(150_000)) return {}
  return { applierBatchBytesMax: own.pick([1, 1_000]) }
}

/** Everything drawn, on one line. */
export function describeSwarm(options: SwarmOptions): string {
  const { limits, ...others } = options
  const usual = new Map<string, unknown>(Object.entries(defaultLimits))
  const knobs = Object.entries(limits).filter(([name, value]) => usual.get(name) !== value)
  return JSON.stringify({ ...others, limits: Object.fromEntries(knobs) })
}

function drawWorkload(random: SeededRandom): WorkloadOptions {
  const clientCount = random.int(3, 8)
  return {
    clientCount,
    operationsPerClient: Math.ceil(random.int(160, 280) / clientCount),
    thinkMeanMicros: random.pick([1_000, 10_000, 30_000]),
    shardCount: random.int(1, 4),
    rowsPerShard: random.int(1, 4),
    writes: random.pick([500_000, 650_000, 800_000]),
    contended: random.pick([150_000, 300_000, 500_000]),
    anyReads: random.pick([0, 200_000, 500_000]),
    lookedFor: random.pick([0, 200_000, 600_000]),
    blindSessionCount: random.int(0, 2),
    blindWrites: random.int(10, 40),
    timeoutMs: random.pick([1_000, 4_000, 10_000]),
    tryTimeoutMs: random.pick([100, 500, 2_000]),
    listSessionCount: random.pick([0, 2, 4, 6]),
    listOperations: random.int(15, 40),
    ...(random.fork('read back').chance(600_000) && { readBack: 500_000 }),
    ...drawPurges(random.fork('purges')),
    ...drawCellTtl(random.fork('cell ttl'), drawPurges(random.fork('purges'))),
    ...(random.fork('erases').chance(700_000) && { erases: true }),
    ...drawPast(random.fork('past')),
    ...drawTables(random.fork('tables')),
    ...drawTriggers(random.fork('triggers')),
    queues: drawQueues(random.fork('queues')),
    indexClientCount: random.fork('cell index').pick([0, 0, 2, 3]),
    ...drawGateways(random.fork('gateways'), clientCount),
    ...drawHeavy(random.fork('heavy')),
  }
}

/** In a part of the seeds only: heartbeats go on for as long as a run does. */
function drawTriggers(
  random: SeededRandom,
): Pick<WorkloadOptions, 'triggerWorkerCount' | 'triggerTroubles'> {
  return {
    triggerWorkerCount: random.pick([0, 0, 0, 0, 2, 3]),
    triggerTroubles: random.pick([0, 1, 1, 1]),
  }
}

type TableOptions = Pick<
  WorkloadOptions,
  | 'tableSessionCount'
  | 'tableOperations'
  | 'tableStoreCount'
  | 'schemaChanges'
  | 'hasGlobalIndexes'
  | 'schemaTrustMs'
>

function drawTables(random: SeededRandom): TableOptions {
  return {
    tableSessionCount: random.pick([0, 2, 3, 4]),
    tableOperations: random.int(6, 16),
    tableStoreCount: random.int(2, 3),
    schemaChanges: random.pick([0, 1, 1]),
    ...drawGlobals(random.fork('globals')),
  }
}

function drawGlobals(
  random: SeededRandom,
): Pick<TableOptions, 'hasGlobalIndexes' | 'schemaTrustMs'> {
  return {
    hasGlobalIndexes: random.chance(500_000),
    schemaTrustMs: random.pick([100, 1_000, 10_000, 30_000]),
  }
}

function drawQueues(random: SeededRandom): QueueOptions {
  return {
    sessionCount: random.pick([0, 0, 1, 2, 3]),
    operations: random.int(4, 10),
    groupCount: random.int(2, 4),
    handlerCount: random.int(1, 3),
    lifeMeanMicros: random.pick([0, second, 5 * second]),
    hasPoison: random.chance(500_000),
    redriveMeanMicros: random.fork('early').pick([0, 0, second / 2, 2 * second]),
    batch: random.pick([1, 2, 20]),
    concurrency: random.pick([1, 4]),
    attemptsMax: random.int(3, 4),
    retryMs: random.pick([1, 50]),
    pageRows: random.pick([1, 3, 1_000]),
    receiversAtOnce: random.pick([1, 2, 128]),
    receivedMax: random.pick([1, 2, 1_000]),
    deliveryTimeoutMs: random.pick([100, 1_000, 10_000]),
  }
}

function drawPast(
  random: SeededRandom,
): Pick<WorkloadOptions, 'pastSessionCount' | 'pastOperations'> {
  return { pastSessionCount: random.pick([0, 1, 2, 3]), pastOperations: random.int(3, 15) }
}

/** Where others take over at once, two serve a group as a rule. */
function drawRelay(random: SeededRandom): Pick<WorklistBounds, 'lookMs' | 'patienceMs'> {
  const { lookMs, patienceMs } = worklistBounds
  return random.pick([
    { lookMs, patienceMs },
    { lookMs: 50, patienceMs: 0 },
    { lookMs: 20, patienceMs: 100 },
  ])
}

function drawHealing(random: SeededRandom, nodeCount: number): HealingOptions {
  const nodes = Array.from({ length: nodeCount }, (_, i) => nodeName(i))
  return {
    isCoreFirst: random.chance(700_000),
    coreOrder: random.shuffle(nodes),
    rest: random.pick(brokenKinds),
  }
}

function drawLink(random: SeededRandom, switches: Switches): LinkConditions {
  const rate = (name: string, highest: number): number => {
    const drawn = sometimes(random, 650_000, () => random.int(1, highest))
    return isOn(name, switches) ? drawn : 0
  }
  const delayMinMicros = random.int(50, 2_000)
  const delayMeanMicros = random.pick([100, 1_000, 10_000])
  const farRandom = random.fork('far')
  const isFar = farRandom.chance(350_000) && isOn('far', switches)
  const far = isFar
    ? drawFar(farRandom, delayMinMicros + delayMeanMicros)
    : { far: 0, farFactor: 1 }
  return {
    delayMinMicros,
    delayMeanMicros,
    ...far,
    tail: rate('tail', 20_000),
    tailFactor: random.int(5, 50),
    reorder: rate('reorder', 200_000),
    drop: rate('drop', 50_000),
    duplicate: rate('duplicate', 100_000),
    late: rate('late-duplicate', 500_000),
    lateMeanMicros: random.pick([100_000, 5 * second, 60 * second]),
    survive: rate('survivor', 900_000),
    noticeMeanMicros: random.pick([1_000, 50_000, 500_000]),
    reconnectMeanMicros: random.pick([5_000, 100_000, 500_000]),
    framesUnderWayMax: random.chance(100_000) ? 20 : 5_000,
  }
}

/** Nodes far apart: some ways are slower than the others, within what calls have time for. */
function drawFar(
  random: SeededRandom,
  delayMicros: number,
): Pick<LinkConditions, 'far' | 'farFactor'> {
  const factorMax = Math.max(2, Math.floor(farDelayMicrosMax / delayMicros))
  const farFactor = Math.min(random.int(2, 20), factorMax)
  return { far: random.int(100_000, 600_000), farFactor }
}

function drawSkew(random: SeededRandom, switches: Switches): ClockSkew {
  const offset = random.pick([0, 0, 200_000, 5 * second])
  const drift = random.pick([0, 0, 1_000, 100_000])
  const lateness = random.pick([0, 200, 5_000])
  const own = { offset: random.int(-offset, offset), drift: random.int(-drift, drift), lateness }
  return {
    offsetMicros: isOn('offset', switches) ? own.offset : 0,
    driftPpm: isOn('drift', switches) ? own.drift : 0,
    timerLatenessMicros: isOn('lateness', switches) ? own.lateness : 0,
  }
}

/** The time that the slower of a way and a disk takes, on average. */
function estimateUsualMicros(link: LinkConditions, disk: DiskConditions): number {
  const delayMicros = (link.delayMinMicros + link.delayMeanMicros) * (link.farFactor ?? 1)
  return Math.max(delayMicros, disk.writeMinMicros + disk.writeMeanMicros)
}

/** How long a phase takes on this network and these disks, about. */
function estimatePhaseMs(link: LinkConditions, disk: DiskConditions): number {
  const delayMicros = (link.delayMinMicros + link.delayMeanMicros) * (link.farFactor ?? 1)
  return Math.ceil((2 * delayMicros + disk.writeMinMicros + disk.writeMeanMicros) / 1_000)
}

/** A turn's limits for background work. The defaults are more than most runs need. */
function drawSlices(
  random: SeededRandom,
): Pick<Limits, 'questionsMax' | 'fetchesMax' | 'slicePiecesMax' | 'sliceBytesMax'> {
  return {
    questionsMax: random.pick([1, 4, defaultLimits.questionsMax]),
    fetchesMax: random.pick([1, 2, defaultLimits.fetchesMax]),
    slicePiecesMax: random.pick([1, 4, defaultLimits.slicePiecesMax]),
    sliceBytesMax: random.pick([1, 1_000, defaultLimits.sliceBytesMax]),
  }
}

/**
 * Mostly the defaults; each knob is now and then 1 or tiny. What a proposer waits for at first stays
 * above `phaseMs`, what a phase takes; with 0, only its growing patience gets it through.
 */
function drawLimits(random: SeededRandom, phaseMs: number, disk: DiskConditions): Limits {
  const isDiskSlow = disk.writeMeanMicros > 1_000
  const tiny = random.pick([0, 150_000, 400_000])
  const knob = (usual: number, choices: readonly number[]): number =>
    random.chance(tiny) ? random.pick(choices) : usual
  // A start writes what it takes up of the log part by part, and is to be done in the healed world.
  const part = (usual: number, choices: readonly number[]): number => {
    const drawn = knob(usual, choices)
    return isDiskSlow ? usual : drawn
  }
  const usual = defaultLimits
  const heartbeatMs = knob(usual.heartbeatMs, [20, 50])
  const backoffMs = knob(usual.backoffMs, [1, 3, 50])
  const limits: Limits = {
    ...usual,
    groupsInMemoryMax: knob(usual.groupsInMemoryMax, [1, 1, 2]),
    groupQueueMax: knob(usual.groupQueueMax, [2, 8]),
    nodeQueueMax: knob(usual.nodeQueueMax, [4, 16]),
    entryTransactionsMax: knob(usual.entryTransactionsMax, [1, 2]),
    ...drawWindow(knob(usual.validationWindow, [1, 3])),
    overlayBytesMax: knob(usual.overlayBytesMax, [4_096, 65_536]),
    applierBatchBytesMax: knob(usual.applierBatchBytesMax, [1, 1_000]),
    applierDelayMs: knob(usual.applierDelayMs, [0, 1, 1_000]),
    ...drawCheckpoints(random),
    rowCacheBytesMax: random.fork('row cache').pick([0, 1_000, usual.rowCacheBytesMax]),
    ...drawHistory(random.fork('history')),
    // Few runs write as many flushes as the default says.
    carryAfterFlushes: random.fork('carry').pick([1, 5, 20, 100]),
    scrubPauseMs: random.fork('scrub').pick([2_000, 20_000, usual.scrubPauseMs]),
    compareMs: random.fork('compare').pick([3_000, 20_000, usual.compareMs]),
    flushBytesMax: isDiskSlow ? usual.flushBytesMax : knob(usual.flushBytesMax, [1, 1_000]),
    catchUpEntriesMax: part(usual.catchUpEntriesMax, [1, 2, 5]),
    catchUpBytesMax: part(usual.catchUpBytesMax, [1, 1_000]),
    digestGroupsMax: knob(usual.digestGroupsMax, [1, 2]),
    ...drawSlices(random.fork('slices')),
    ...drawSnapshots(random.fork('snapshots')),
    backoffMs,
    backoffMaxMs: Math.max(backoffMs, 20 * phaseMs, knob(usual.backoffMaxMs, [100, 300])),
    phaseTimeoutMs: Math.max(3 * phaseMs, knob(usual.phaseTimeoutMs, [60, 200, 1_500])),
    settleMs: knob(usual.settleMs, [1, 5, 100]),
    sweepMs: knob(usual.sweepMs, [20, 200, 3_000]),
    forwardMs: knob(usual.forwardMs, [60, 200, 3_000]),
    heartbeatMs,
    suspectMs: Math.max(3 * heartbeatMs, knob(usual.suspectMs, [60, 200, 3_000])),
    digestMs: knob(usual.digestMs, [50, 300, 5_000]),
  }
  checkLimits(limits)
  return limits
}

/** A tiny window stays tiny, however young the entries that it forgets. */
function drawWindow(entries: number): Partial<Limits> & Pick<Limits, 'validationWindow'> {
  const isTiny = entries < defaultLimits.validationWindow
  return isTiny
    ? { validationWindow: entries, validationWindowMax: entries }
    : { validationWindow: entries }
}

function sometimes(random: SeededRandom, rate: number, draw: () => number): number {
  return random.chance(rate) ? draw() : 0
}
