/**
 * A fault drawn from a seed: a node loses its data disk, its log has given up the acceptances, and it then hears only
 * nodes that are behind (LOG-16, LOG-19).
 *
 * First the fault cuts some nodes off from the others of their set, and the others write. A node that is cut off soon holds
 * up more of the logs than their budget, so that it does not count any more. Then one of the others loses its data disk.
 * Together with the nodes that were cut off it is a majority. The fault cuts the rest off, which know the chosen values.
 */
import type { Limits } from '../src/base/limits.ts'
import { buildSets } from './cluster/endpoints.ts'
import type { Fault, Way } from './faults/fault.ts'
import { isOn, type FaultRates, type LostData, type Switches } from './faults/swarm-faults.ts'
import type { SeededRandom } from './world/random.ts'

interface Drawn {
  readonly nodeCount: number
  readonly setCount?: number
  readonly workload: {
    readonly lone?: unknown
    readonly operationsPerClient: number
    readonly thinkMeanMicros: number
  }
  readonly faultRates: FaultRates
  readonly limits: Limits
}

/** Of the runs. */
const lostDataRate = 250_000
const second = 1_000_000
const never = Number.MAX_SAFE_INTEGER

/** Where it is drawn, peers come to be behind soon, nodes look often at their logs, and clients work for longer. */
export function withLostData<Options extends Drawn>(
  random: SeededRandom,
  options: Options,
  switches: Switches,
): Options {
  const { nodeCount, setCount, workload, faultRates, limits } = options
  const isDrawn = random.chance(lostDataRate) && isOn('lost-data', switches)
  if (!isDrawn || workload.lone !== undefined || faultRates.quietMicros > 0) return options
  const set = random.shuffle(random.pick(buildSets(nodeCount, setCount)))
  const [node = '', ...others] = set
  const half = Math.floor(others.length / 2)
  const atMicros = random.int(second / 2, (3 * second) / 2)
  const lostAtMicros = atMicros + random.int(second, (5 * second) / 2)
  const lostData = {
    ...{ node, behind: others.slice(0, half), ahead: others.slice(half) },
    ...{ atMicros, lostAtMicros, untilMicros: lostAtMicros + random.int(second, 4 * second) },
  }
  const operationsPerClient = 2 * workload.operationsPerClient
  return {
    ...options,
    workload: { ...workload, operationsPerClient, thinkMeanMicros: 30_000 },
    faultRates: { ...faultRates, lostData },
    limits: { ...limits, ...drawSoonBehind(random) },
  }
}

function drawSoonBehind(random: SeededRandom): Partial<Limits> {
  const isByAge = random.chance(300_000)
  return {
    truncateBytesMin: random.pick([1, 1_000]),
    logRetainBytes: isByAge ? never : random.pick([2_000, 8_000, 30_000]),
    logRetainMs: isByAge ? random.pick([200, 700]) : never,
    digestMs: random.pick([50, 200]),
    carryAfterFlushes: random.pick([1, 5, 20]),
  }
}

/** A disk that is lost is there again, empty, after this. */
const downMicros = 10_000

export function lostDataFaults(drawn: LostData | undefined): readonly Fault[] {
  if (drawn === undefined) return []
  const { node, behind, ahead, atMicros, lostAtMicros, untilMicros } = drawn
  const name = 'lost-data'
  const cut = { kind: 'cut', name, resets: false } as const
  const isApart = { atMicros, lengthMicros: lostAtMicros - atMicros }
  const isAlone = { atMicros: lostAtMicros, lengthMicros: untilMicros - lostAtMicros }
  return [
    { ...cut, ...isApart, ways: waysBetween(behind, [node, ...ahead]) },
    { ...cut, ...isAlone, ways: waysBetween(ahead, [node, ...behind]) },
    { kind: 'empty-disk', name, atMicros: lostAtMicros, node, downMicros, disk: 'data' },
  ]
}

function waysBetween(some: readonly string[], others: readonly string[]): readonly Way[] {
  return some.flatMap((one) =>
    others.flatMap((other): Way[] => [
      [one, other],
      [other, one],
    ]),
  )
}
