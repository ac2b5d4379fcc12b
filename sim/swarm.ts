/**
 * The swarm: each seed draws its own topology, fault rates and knobs, and turns whole kinds of
 * fault off, since rare things meet more often where others do not happen at all.
 */
import { checkLimits, defaultLimits, type Limits } from '../src/base/limits.ts'
import type { ClockSkew } from './clock.ts'
import { SeededRandom } from './random.ts'
import type { LinkConditions } from './weather.ts'

/** Faults that strike now and then. A mean of 0 turns the kind off; others are times between two. */
export interface FaultPlan {
  /** Faults strike for this long; then everything heals. */
  readonly lengthMicros: number
  readonly crashMeanMicros: number
  readonly restartMeanMicros: number
  /** Parts per million of crashes that are orderly stops instead. */
  readonly orderlyStops: number
  /** Parts per million of crashes that wait for a write of their victim to be under way. */
  readonly crashInWrite: number
  /** Parts per million of crashes that take all nodes at once. */
  readonly crashAll: number
  readonly partitionMeanMicros: number
  readonly partitionLengthMeanMicros: number
  /** Parts per million of partitions that cut one direction only. */
  readonly oneWay: number
  /** Parts per million of partitions that also break the links they cut. */
  readonly partitionResets: number
  readonly resetMeanMicros: number
  readonly clogMeanMicros: number
  readonly clogLengthMeanMicros: number
  readonly pauseMeanMicros: number
  readonly pauseLengthMeanMicros: number
}

export interface DiskConditions {
  readonly writeMinMicros: number
  readonly writeMeanMicros: number
}

export interface WorkloadOptions {
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
  /** Sessions that write without reading, and their writes. */
  readonly blindSessionCount: number
  readonly blindWrites: number
  /** How long a call is tried in all, and one node is given. */
  readonly timeoutMs: number
  readonly tryTimeoutMs: number
}

export interface SwarmOptions {
  readonly seed: number
  /** Parts per million of applied entries after which the replica's rows are compared. */
  readonly inspections: number
  /** Whether, at the end, all nodes are started again and compared once more. */
  readonly endsWithRestart: boolean
  readonly nodeCount: number
  readonly workload: WorkloadOptions
  readonly link: LinkConditions
  readonly disk: DiskConditions
  readonly faults: FaultPlan
  /** One per node, in their order. */
  readonly skews: readonly ClockSkew[]
  readonly limits: Limits
}

const second = 1_000_000

export function drawSwarm(seed: number): SwarmOptions {
  const random = new SeededRandom(`${seed}/swarm`)
  const nodeCount = random.chance(250_000) ? 5 : 3
  const link = drawLink(random.fork('link'))
  const disk = drawDisk(random.fork('disk'))
  return {
    ...{ seed, nodeCount },
    inspections: random.pick([0, 5_000, 50_000]),
    endsWithRestart: random.chance(400_000),
    workload: drawWorkload(random.fork('workload')),
    ...{ link, disk },
    faults: drawFaults(random.fork('faults')),
    skews: Array.from({ length: nodeCount }, (_, i) => drawSkew(random.fork(`skew ${i}`))),
    limits: drawLimits(random.fork('limits'), link, disk),
  }
}

/** Everything drawn, on one line. */
export function describeSwarm(options: SwarmOptions): string {
  const { limits, ...others } = options
  const knobs = Object.entries(limits).filter(
    ([name, value]) =>
      !Object.entries(defaultLimits).some((row) => row[0] === name && row[1] === value),
  )
  return JSON.stringify({ ...others, limits: Object.fromEntries(knobs) })
}

function drawWorkload(random: SeededRandom): WorkloadOptions {
  const clientCount = random.int(3, 8)
  return {
    clientCount,
    operationsPerClient: Math.ceil(random.int(400, 700) / clientCount),
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
  }
}

function drawLink(random: SeededRandom): LinkConditions {
  const rate = (highest: number): number => sometimes(random, 650_000, () => random.int(1, highest))
  return {
    delayMinMicros: random.int(50, 2_000),
    delayMeanMicros: random.pick([100, 1_000, 10_000]),
    tail: rate(20_000),
    tailFactor: random.int(5, 50),
    reorder: rate(200_000),
    drop: rate(50_000),
    duplicate: rate(100_000),
    late: rate(500_000),
    lateMeanMicros: random.pick([100_000, 5 * second, 60 * second]),
    survive: rate(900_000),
    noticeMeanMicros: random.pick([1_000, 50_000, 500_000]),
    reconnectMeanMicros: random.pick([5_000, 100_000, 500_000]),
    framesUnderWayMax: random.chance(100_000) ? 20 : 5_000,
  }
}

function drawDisk(random: SeededRandom): DiskConditions {
  return {
    writeMinMicros: random.int(20, 200),
    writeMeanMicros: random.pick([50, 1_000, 10_000, 50_000]),
  }
}

function drawFaults(random: SeededRandom): FaultPlan {
  const mean = (lowest: number, highest: number): number =>
    sometimes(random, 700_000, () => random.int(lowest, highest))
  return {
    lengthMicros: random.int(5, 30) * second,
    crashMeanMicros: mean(second / 2, 8 * second),
    restartMeanMicros: random.pick([10_000, 500_000, 3 * second]),
    orderlyStops: random.pick([0, 100_000, 300_000]),
    crashInWrite: random.pick([0, 500_000, 900_000]),
    crashAll: sometimes(random, 500_000, () => random.int(50_000, 400_000)),
    partitionMeanMicros: mean(second / 2, 8 * second),
    partitionLengthMeanMicros: random.pick([50_000, second, 4 * second]),
    oneWay: sometimes(random, 600_000, () => random.int(100_000, 1_000_000)),
    partitionResets: random.pick([0, 500_000, 1_000_000]),
    resetMeanMicros: mean(200_000, 4 * second),
    clogMeanMicros: mean(300_000, 5 * second),
    clogLengthMeanMicros: random.pick([50_000, 500_000, 3 * second]),
    pauseMeanMicros: mean(second / 2, 8 * second),
    pauseLengthMeanMicros: random.pick([20_000, 300_000, 2 * second]),
  }
}

function drawSkew(random: SeededRandom): ClockSkew {
  return {
    offsetMicros: sometimes(random, 500_000, () => random.int(-200_000, 200_000)),
    driftPpm: sometimes(random, 500_000, () => random.int(-1_000, 1_000)),
    timerLatenessMicros: random.pick([0, 200, 5_000]),
  }
}

/**
 * Mostly the defaults; each knob is now and then 1 or tiny. What a proposer waits for stays above
 * what a phase takes on this network and these disks: below that, all would only ever start anew.
 */
function drawLimits(random: SeededRandom, link: LinkConditions, disk: DiskConditions): Limits {
  const phaseMicros =
    2 * (link.delayMinMicros + link.delayMeanMicros) + disk.writeMinMicros + disk.writeMeanMicros
  const phaseMs = Math.ceil(phaseMicros / 1_000)
  const isDiskSlow = disk.writeMeanMicros > 1_000
  const tiny = random.pick([0, 150_000, 400_000])
  const knob = (usual: number, choices: readonly number[]): number =>
    random.chance(tiny) ? random.pick(choices) : usual
  const usual = defaultLimits
  const heartbeatMs = knob(usual.heartbeatMs, [20, 50])
  const backoffMs = knob(usual.backoffMs, [1, 3, 50])
  const limits: Limits = {
    ...usual,
    groupsInMemoryMax: knob(usual.groupsInMemoryMax, [1, 1, 2]),
    groupQueueMax: knob(usual.groupQueueMax, [2, 8]),
    nodeQueueMax: knob(usual.nodeQueueMax, [4, 16]),
    entryTransactionsMax: knob(usual.entryTransactionsMax, [1, 2]),
    validationWindow: knob(usual.validationWindow, [1, 3]),
    overlayBytesMax: knob(usual.overlayBytesMax, [4_096, 65_536]),
    applierBatchBytesMax: knob(usual.applierBatchBytesMax, [1, 1_000]),
    applierDelayMs: knob(usual.applierDelayMs, [0, 1, 1_000]),
    flushBytesMax: isDiskSlow ? usual.flushBytesMax : knob(usual.flushBytesMax, [1, 1_000]),
    catchUpEntriesMax: knob(usual.catchUpEntriesMax, [1, 2, 5]),
    catchUpBytesMax: knob(usual.catchUpBytesMax, [1, 1_000]),
    digestGroupsMax: knob(usual.digestGroupsMax, [1, 2]),
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

function sometimes(random: SeededRandom, rate: number, draw: () => number): number {
  return random.chance(rate) ? draw() : 0
}
