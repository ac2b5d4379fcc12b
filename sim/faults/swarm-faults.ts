/**
 * How often which fault strikes in a run: rates, drawn from the seed, each of which may be off; and
 * the names by which a kind of fault is switched off, or all others are.
 */
import { firstVersion } from '../../src/base/cluster-version.ts'
import type { SeededRandom } from '../world/random.ts'

/** In how many seeds of a million, and the range of the mean time between two, in seconds. */
type Rarity = readonly [name: string, share: number, lowest: number, highest: number]

/** Faults that strike at moments of their own. */
const rarities: readonly Rarity[] = [
  // of processes
  ['crash', 600_000, 1, 12],
  ['crash-in-write', 500_000, 1, 12],
  ['crash-majority', 250_000, 4, 25],
  ['crash-all', 250_000, 4, 25],
  ['crash-loop', 250_000, 4, 25],
  ['crash-in-recovery', 400_000, 1, 8],
  ['set-down', 600_000, 2, 10],
  ['stop', 400_000, 2, 15],
  ['pause', 600_000, 1, 10],
  ['stall', 300_000, 1, 8],
  ['stall-in-read', 300_000, 1, 8],
  ['suspend', 150_000, 1, 8],
  // of the network
  ['clog', 600_000, 1, 6],
  ['swizzle', 250_000, 4, 20],
  ['split', 500_000, 1, 10],
  ['one-way', 400_000, 1, 10],
  ['bridge', 250_000, 3, 15],
  ['ring', 200_000, 3, 15],
  ['isolate-leader', 300_000, 2, 12],
  ['isolate-client', 200_000, 2, 12],
  ['reset', 600_000, 1, 5],
  ['lose-reply', 400_000, 1, 4],
  ['echo', 400_000, 1, 4],
  ['slow-node', 300_000, 2, 12],
  // of disks
  ['slow-disk', 300_000, 2, 12],
  ['slow-read', 400_000, 1, 8],
  ['fsync-error', 200_000, 3, 15],
  ['no-space', 200_000, 4, 20],
  ['torn-write', 90_000, 4, 20],
  ['bit-rot', 150_000, 2, 15],
  ['rot-in-outage', 150_000, 2, 12],
  ['journal-rot', 300_000, 2, 10],
  ['rot-of-keys', 250_000, 2, 10],
  ['misdirected-write', 120_000, 3, 15],
  ['stale-disk', 150_000, 2, 15],
  ['empty-disk', 150_000, 3, 15],
  ['swapped-disks', 80_000, 5, 20],
  // of clocks
  ['jump-forward', 200_000, 3, 15],
  ['jump-back', 200_000, 3, 15],
  ['wall-jump', 200_000, 3, 15],
  ['strobe', 150_000, 3, 15],
  // of an operator
  ['renew', 350_000, 2, 15],
  ['replace', 300_000, 4, 20],
  ['mistaken-replace', 200_000, 4, 20],
  ['add', 250_000, 3, 10],
  ['remove', 250_000, 3, 10],
  ['demote', 250_000, 3, 12],
  // of the load, and of gateways
  ['storm', 250_000, 3, 15],
  ['huge', 150_000, 3, 20],
  ['client-death', 250_000, 2, 12],
  ['gateway-death', 600_000, 1, 10],
  ['gateway-pause', 400_000, 1, 8],
]

export const faultNames: readonly string[] = rarities.map(([name]) => name)

/** Conditions that hold all the time, and may be switched off like a fault. */
export const conditionNames: readonly string[] = [
  // of all ways of the network
  ...['drop', 'duplicate', 'late-duplicate', 'reorder', 'tail', 'far', 'survivor'],
  // Ways and disks by rank, in a share of the seeds
  'priorities',
  // clocks that drift, and timers that are late
  ...['offset', 'clock-behind', 'drift', 'lateness'],
  // Waits shorter than what they wait for takes: in a share of the seeds
  'tight-timeouts',
  // A node is alone with a write while an index is built
  'lone-write',
  // Nodes that begin with an earlier build, and an upgrade
  'two-builds',
  // A node whose log has given up flushes loses its data disk
  'lost-data',
  // Turns that take time, and reads that wait for their disk
  ...['turn-costs', 'read-waits'],
  'sets',
  'later-set',
  // Sessions that read with bounded staleness, in a part of the seeds
  'bounded-reads',
  // Logs in segment files, in a third of the seeds; else in LevelDB
  'segments',
  // Reads without asking, and with them all that can go wrong with leases
  'leases',
  // The clients are idle for long, and a node may be away meanwhile
  'quiet',
]

export interface FaultRates {
  /** Faults strike for this long; then everything heals. */
  readonly lengthMicros: number
  /** Time between two faults of one name, on average. Absent: the kind is off. */
  readonly meanMicros: Readonly<Record<string, number>>
  readonly downMeanMicros: number
  readonly cutLengthMeanMicros: number
  /** Parts per million of cuts that also break the links they cut. */
  readonly cutResets: number
  readonly clogLengthMeanMicros: number
  readonly pauseLengthMeanMicros: number
  /** Of slow nodes, slow disks, full disks, storms. */
  readonly spellMeanMicros: number
  /** How far clocks jump, at most. */
  readonly jumpMicrosMax: number
  /** Clients are idle for this long from this moment; 0: that does not happen. */
  readonly quietAtMicros: number
  readonly quietMicros: number
  /** Absent: no node loses its data disk to be alone with nodes that are behind. */
  readonly lostData?: LostData
  /**
   * The last cluster version that the first build of each node knows, but of spares, before an upgrade; absent: all nodes run this build
   * all the time.
   */
  readonly firstBuild?: number
}

/** A node that loses its data disk, and the others of its set (`lost-data-draw.ts`). */
export interface LostData {
  readonly node: string
  /** With the node a majority. */
  readonly behind: readonly string[]
  /** The same. */
  readonly ahead: readonly string[]
  /** From then on those behind hear no other node. */
  readonly atMicros: number
  /** The disk is lost, and those behind hear the node, and no other. */
  readonly lostAtMicros: number
  readonly untilMicros: number
}

/** The faults that remain in a run, by names. An unknown name is the caller's mistake. */
export interface Switches {
  /** These faults alone; all that were drawn when absent. */
  readonly only?: readonly string[] | undefined
  readonly without?: readonly string[] | undefined
}

/** Whether the fault or condition of this name is left in. */
export function isOn(name: string, { only, without }: Switches): boolean {
  return (only === undefined || only.includes(name)) && without?.includes(name) !== true
}

/** All names that can be switched. */
export const switchNames: readonly string[] = [...faultNames, ...conditionNames]

/** The flags that make a command run with these switches. */
export function toFlags({ only, without }: Switches): string {
  return [
    ...(only === undefined ? [] : [`--faults ${only.join(',')}`]),
    ...(without === undefined ? [] : [`--without ${without.join(',')}`]),
  ].join(' ')
}

const second = 1_000_000

export function drawFaultRates(random: SeededRandom, switches: Switches): FaultRates {
  const lengthMicros = random.int(5, 30) * second
  const quiet = random.fork('quiet')
  // Intents and sessions live for ten minutes: some stretches are longer than that.
  const isQuiet = quiet.chance(60_000) && isOn('quiet', switches)
  const quietMicros = isQuiet ? quiet.pick([60, 600, 1_800]) * second + quiet.int(0, second) : 0
  return {
    lengthMicros: lengthMicros + quietMicros,
    meanMicros: drawMeans(random, switches),
    downMeanMicros: random.pick([10_000, 500_000, 3 * second]),
    cutLengthMeanMicros: random.pick([50_000, second, 4 * second]),
    cutResets: random.pick([0, 500_000, 1_000_000]),
    clogLengthMeanMicros: random.pick([50_000, 500_000, 3 * second]),
    pauseLengthMeanMicros: random.pick([20_000, 300_000, 2 * second]),
    spellMeanMicros: random.pick([300_000, second, 3 * second]),
    jumpMicrosMax: random.pick([100_000, 5 * second, 90 * second]),
    quietAtMicros: isQuiet ? quiet.int(second, lengthMicros - second) : 0,
    quietMicros,
    ...drawFirstBuild(random.fork('two builds'), switches),
  }
}

/** Of the runs, in which nodes begin with the build before. */
const upgradeRate = 150_000

function drawFirstBuild(random: SeededRandom, switches: Switches): Pick<FaultRates, 'firstBuild'> {
  const isDrawn = random.chance(upgradeRate) && isOn('two-builds', switches)
  return isDrawn ? { firstBuild: firstVersion } : {}
}

function drawMeans(random: SeededRandom, switches: Switches): Readonly<Record<string, number>> {
  const means = rarities.flatMap(([name, share, lowest, highest]) => {
    const own = random.fork(name)
    if (!own.chance(share) || !isOn(name, switches)) return []
    return [[name, Math.round(own.int(lowest * second, highest * second) / 2)] as const]
  })
  return Object.fromEntries(means)
}

/** The rates of a run in which no fault is drawn: the caller makes the list of faults himself. */
export function noFaultRates(lengthMicros: number): FaultRates {
  return {
    lengthMicros,
    meanMicros: {},
    downMeanMicros: 0,
    cutLengthMeanMicros: 0,
    cutResets: 0,
    clogLengthMeanMicros: 0,
    pauseLengthMeanMicros: 0,
    spellMeanMicros: 0,
    jumpMicrosMax: 0,
    quietAtMicros: 0,
    quietMicros: 0,
  }
}
