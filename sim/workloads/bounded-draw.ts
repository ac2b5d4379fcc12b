/** Sessions that read with bounded staleness, as drawn from a seed. */
import { isOn, type FaultRates, type Switches } from '../faults/swarm-faults.ts'
import { SeededRandom } from '../world/random.ts'

export interface BoundedOptions {
  /** Absent: none. */
  readonly boundedSessionCount?: number
}

/** Of a run's options, those that the draw needs. */
interface Drawn {
  readonly seed: number
  readonly faultRates: FaultRates
  readonly workload: BoundedOptions
}

/**
 * A suspension that the monotonic clock does not show, and that the wall clock hides because it is set back, is no part of
 * the promise: there are no such sessions where both may happen.
 */
export function withBounded<Options extends Drawn>(options: Options, switches: Switches): Options {
  const random = new SeededRandom(`${options.seed}/bounded`)
  const boundedSessionCount = random.pick([0, 0, 0, 1, 2])
  const isDrawn = boundedSessionCount > 0 && isOn('bounded-reads', switches)
  const { meanMicros } = options.faultRates
  const isSetBack = meanMicros['jump-back'] !== undefined || meanMicros['strobe'] !== undefined
  const areHonest = meanMicros['suspend'] === undefined || !isSetBack
  if (!isDrawn || !areHonest) return options
  return { ...options, workload: { ...options.workload, boundedSessionCount } }
}
