/**
 * Kills processes of a fleet at random for a while, by a seed: which one, when, and for how long.
 */
import { SeededRandom } from '../world/random.ts'
import { pause } from '../processes/workload.ts'
import type { Fleet, VictimKind } from './fleet.ts'

const upMeanMs = 700
const downMeanMs = 800

export type Kills = Readonly<Record<VictimKind, number>>

export interface KillingOptions {
  readonly seed: number
  readonly seconds: number
  readonly signal: AbortSignal
  readonly onKill: (kills: Kills) => void
}

export async function killAtRandom(fleet: Fleet, options: KillingOptions): Promise<Kills> {
  const { seconds, signal, onKill } = options
  const random = new SeededRandom(`${options.seed}/audit/kills`)
  const kills: Record<VictimKind, number> = { node: 0, gateway: 0, service: 0, worker: 0 }
  const endMs = performance.now() + seconds * 1000
  for (;;) {
    await pause(random.exponential(upMeanMs), signal)
    if (performance.now() >= endMs || signal.aborted) return kills
    const { victims } = fleet
    if (victims.length === 0) continue
    // A kind first: workers are many, nodes are few.
    const kind = random.pick([...new Set(victims.map((one) => one.kind))])
    const victim = random.pick(victims.filter((one) => one.kind === kind))
    await fleet.kill(victim, random.exponential(downMeanMs))
    kills[victim.kind] += 1
    onKill({ ...kills })
  }
}
