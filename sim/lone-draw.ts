/**
 * A node that is cut off from the others with a write that it alone has accepted, for longer than an
 * index that is declared meanwhile takes to be built: as drawn from a seed.
 */
import { nodeName } from './endpoints.ts'
import type { Fault, Way } from './fault.ts'
import type { SeededRandom } from './random.ts'
import { isOn, type FaultRates, type Switches } from './swarm-faults.ts'
import type { SwarmOptions, WorkloadOptions } from './swarm.ts'

export interface LoneOptions {
  readonly node: string
  /** From then on it hears no other node, and none hears it. */
  readonly atMicros: number
}

/** Of the runs, if they have indexes. */
const loneRate = 250_000
/** After that moment whoever asks the node alone has put what it alone will accept. */
export const loneMicros = 300_000

/** Where it is drawn, programs look soon at schemas again: their grace is over before the world heals. */
export function withLone(
  random: SeededRandom,
  workload: WorkloadOptions,
  { quietMicros }: FaultRates,
  switches: Switches,
): WorkloadOptions {
  const { indexClientCount, tableSessionCount, hasGlobalIndexes } = workload
  const hasIndexes = indexClientCount > 0 || (tableSessionCount > 0 && hasGlobalIndexes)
  const isDrawn = random.chance(loneRate) && isOn('lone-write', switches)
  const lone = { node: nodeName(random.int(0, 2)), atMicros: random.int(500_000, 1_500_000) }
  const schemaTrustMs = random.pick([100, 1_000])
  const timeoutMs = random.pick([1_000, 1_000, workload.timeoutMs])
  if (!isDrawn || !hasIndexes || quietMicros > 0) return workload
  return { ...workload, schemaTrustMs, timeoutMs, schemaChanges: 1, lone }
}

/** It ends when the world heals, or with another cut of the same ways. */
export function loneCut({ workload, faultRates, nodeCount }: SwarmOptions): Fault[] {
  if (workload.lone === undefined) return []
  const { node, atMicros } = workload.lone
  const others = Array.from({ length: nodeCount }, (_, i) => nodeName(i)).filter(
    (it) => it !== node,
  )
  const ways = others.flatMap((other): Way[] => [
    [node, other],
    [other, node],
  ])
  const lengthMicros = faultRates.lengthMicros - atMicros
  return [{ kind: 'cut', name: 'lone-write', atMicros, lengthMicros, ways, resets: false }]
}
