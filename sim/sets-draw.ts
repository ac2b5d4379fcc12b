/** Draws runs with several replica sets: two, and one that an operator may add. */
import { isOn, type Switches } from './faults/swarm-faults.ts'
import type { SeededRandom } from './world/random.ts'

/** Of the runs, with six nodes in two replica sets. */
export const splitRate = 80_000
/** Sessions straight on the replicas: in one set they meet all that there is for them. */
export const noReplicaSessions = {
  blindSessionCount: 0,
  listSessionCount: 0,
  pastSessionCount: 0,
} as const

export interface LaterOptions {
  /** Of a set that an operator may add; absent: none. */
  readonly laterNodes?: number
}

/** Of the runs with two sets. */
const laterRate = 500_000

export function drawLater(random: SeededRandom, switches: Switches): LaterOptions {
  if (!random.chance(laterRate) || !isOn('later-set', switches)) return {}
  return { laterNodes: random.pick([1, 3, 3]) }
}
