/**
 * The draws of a run on real processes from its seed: the simulator's faults, of the kinds that can
 * strike processes and their connections from outside. Disks and clocks are not among them: the
 * operating system still writes the data that a kill leaves unwritten.
 */
import type { Fault } from '../faults/fault.ts'
import { drawFaults } from '../faults/fault-draw.ts'
import { SeededRandom } from '../world/random.ts'
import { calmOptions } from '../scenarios/scenario-calm.ts'
import { noFaultRates } from '../faults/swarm-faults.ts'

export interface ProcessPlan {
  readonly seed: number
  readonly seconds: number
  readonly clientCount: number
  readonly faults: readonly Fault[]
}

const second = 1_000_000
const clientCount = 6

/** Names of faults, and the mean time between two of one name in seconds. */
const means: readonly (readonly [name: string, seconds: number])[] = [
  ['crash', 12],
  ['crash-majority', 50],
  ['crash-all', 60],
  ['crash-loop', 60],
  ['stop', 40],
  ['pause', 12],
  ['clog', 12],
  ['swizzle', 40],
  ['split', 12],
  ['one-way', 12],
  ['bridge', 30],
  ['ring', 40],
  ['isolate-client', 30],
  ['reset', 8],
  ['lose-reply', 8],
  ['slow-node', 20],
  ['storm', 30],
  ['client-death', 30],
]

/** The name under which a fault is counted. */
export function nameFault(fault: Fault): string {
  return fault.name ?? fault.kind
}

export function drawProcessPlan(seed: number, seconds: number): ProcessPlan {
  const random = new SeededRandom(`${seed}/processes`)
  const calm = calmOptions(seed)
  const lengthMicros = Math.round(seconds * second)
  const faults = drawFaults({
    ...calm,
    seed,
    workload: { ...calm.workload, clientCount },
    faultRates: {
      ...noFaultRates(lengthMicros),
      meanMicros: Object.fromEntries(means.map(([name, mean]) => [name, mean * second])),
      downMeanMicros: random.pick([100_000, 2 * second]),
      cutLengthMeanMicros: random.pick([300_000, 2 * second, 5 * second]),
      cutResets: random.pick([0, 500_000, 1_000_000]),
      clogLengthMeanMicros: random.pick([300_000, 2 * second]),
      pauseLengthMeanMicros: random.pick([300_000, 2 * second, 5 * second]),
      spellMeanMicros: random.pick([second, 3 * second]),
    },
  })
  return { seed, seconds, clientCount, faults }
}
