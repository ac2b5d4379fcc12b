/**
 * A node that is cut off from the others with a write that it alone has accepted, for longer than
 * an index that is declared meanwhile takes to be built: as drawn from a seed.
 */
import { nodeName } from '../cluster/endpoints.ts'
import type { Fault, Way } from '../faults/fault.ts'
import type { SeededRandom } from '../world/random.ts'
import { isOn, type FaultRates, type Switches } from '../faults/swarm-faults.ts'

export interface LoneOptions {
  readonly node: string
  /** From then on it hears no other node, and none hears it. */
  readonly atMicros: number
  readonly untilMicros: number
}

/** Of a workload, what it has to do with indexes. */
interface Indexed {
  readonly indexClientCount: number
  readonly tableSessionCount: number
  readonly hasGlobalIndexes: boolean
  readonly lone?: LoneOptions
}

/** Of the runs, if they have indexes. */
const loneRate = 160_000
/**
 * After this moment the client of the isolated node has put the write that only that node will
 * accept.
 */
export const loneMicros = 300_000

/**
 * Where it is drawn, no call takes long, and programs look soon at schemas again: their grace is
 * over before the world heals.
 */
export function withLone<Workload extends Indexed>(
  random: SeededRandom,
  workload: Workload,
  { quietMicros, lengthMicros }: FaultRates,
  switches: Switches,
): Workload {
  const { indexClientCount, tableSessionCount, hasGlobalIndexes } = workload
  const hasIndexes = indexClientCount > 0 || (tableSessionCount > 0 && hasGlobalIndexes)
  const isDrawn = random.chance(loneRate) && isOn('lone-write', switches)
  const atMicros = random.int(2_000_000, 3_500_000)
  const lone = { node: nodeName(random.int(0, 2)), atMicros, untilMicros: lengthMicros }
  if (!isDrawn || !hasIndexes || quietMicros > 0) return workload
  return { ...workload, schemaTrustMs: 1_000, timeoutMs: 1_000, schemaChanges: 1, lone }
}

/**
 * The node crashes this long before the cut ends: in memory it holds the write while an intent
 * lives.
 */
const forgetMicros = 1_000_000
const downMicros = 10_000

/**
 * The cut ends when the world heals, or with another cut of the same ways. What the node still has
 * of the write then stands on its disk alone: a program that sent it again could do so only until
 * its intent expires, and the grace that a build waits for is shorter in a run than an intent lives
 * (`schemaGraceMs`).
 */
export function loneCut(options: {
  readonly workload: Indexed
  readonly nodeCount: number
}): Fault[] {
  const { workload, nodeCount } = options
  if (workload.lone === undefined) return []
  const { node, atMicros, untilMicros } = workload.lone
  const others = Array.from({ length: nodeCount }, (_, i) => nodeName(i)).filter(
    (it) => it !== node,
  )
  const ways = others.flatMap((other): Way[] => [
    [node, other],
    [other, node],
  ])
  const lengthMicros = untilMicros - atMicros
  const name = 'lone-write'
  return [
    { kind: 'cut', name, atMicros, lengthMicros, ways, resets: false },
    { kind: 'crash', name, atMicros: untilMicros - forgetMicros, node, downMicros },
  ]
}

/** The nodes that still hear one another. The client that manages indexes meanwhile uses these. */
export function notAlone(
  nodes: readonly string[],
  lone: LoneOptions | undefined,
): readonly string[] {
  const others = nodes.filter((node) => node !== lone?.node)
  return others.length === 0 ? nodes : others
}
