/**
 * Draws a run's faults from its options, before the run begins: each kind at its own pace from a
 * stream of its own, so that a kind that is switched off moves no other.
 */
import {
  aroundNodes,
  gatewayNames,
  nodeName,
  buildSets,
  listLater,
  listSpares,
} from '../cluster/endpoints.ts'
import { inOrder, type Fault } from './fault.ts'
import { drawings, type Draw, type Drawing } from './fault-drawings.ts'
import { membersDrawings } from './members-drawings.ts'
import { loneCut } from '../workloads/lone-draw.ts'
import { lostDataFaults } from '../lost-data-draw.ts'
import { drawUpgrade } from '../upgrade-draw.ts'
import { SeededRandom } from '../world/random.ts'
import type { SwarmOptions } from '../swarm.ts'

/** By the names of faults. */
export const allDrawings: ReadonlyMap<string, Drawing> = new Map([...drawings, ...membersDrawings])

/** Moments at which a fault of one name strikes in a run, at most. */
const momentsMax = 200

/** Every fault of the run, in order. The same options give the same list. */
export function drawFaults(options: SwarmOptions): readonly Fault[] {
  const random = new SeededRandom(`${options.seed}/faults`)
  const first = Array.from({ length: options.nodeCount }, (_, i) => nodeName(i))
  const later = listLater(options)
  const clients = aroundNodes(options.workload)
  const gateways = gatewayNames(options.workload.gateways)
  const sets = [
    ...buildSets(options.nodeCount, options.setCount),
    ...(later.length > 0 ? [later] : []),
  ]
  const around = { spares: listSpares(options), sets, clients, gateways }
  // Where a node is to be alone with a write, all others go on.
  const kinds = options.workload.lone === undefined ? [...allDrawings] : []
  const faults = kinds.flatMap(([name, drawing]) =>
    drawKind(
      {
        ...around,
        nodes: membersDrawings.has(name) ? first : [...first, ...later],
        rates: options.faultRates,
        random: random.fork(name),
      },
      name,
      drawing,
    ),
  )
  return inOrder([
    ...[...faults, ...drawUpgrade(options)].map((fault) => afterQuiet(fault, options)),
    ...drawQuiet(options),
    ...loneCut(options),
    ...lostDataFaults(options.faultRates.lostData),
  ])
}

function drawKind(draw: Draw, name: string, drawing: Drawing): Fault[] {
  const { meanMicros, lengthMicros, quietMicros } = draw.rates
  const mean = meanMicros[name]
  const faults: Fault[] = []
  if (mean === undefined) return faults
  let atMicros = draw.random.exponential(mean)
  for (let count = 0; count < momentsMax && atMicros < lengthMicros - quietMicros; count++) {
    faults.push(...drawing(atMicros, draw).map((fault) => named(fault, name)))
    atMicros += 1 + draw.random.exponential(mean)
  }
  return faults
}

function named(fault: Fault, name: string): Fault {
  return fault.kind === name || fault.name !== undefined ? fault : { ...fault, name }
}

/** The quiet stretch is put in between: faults drawn for later come after it. */
function afterQuiet(fault: Fault, { faultRates }: SwarmOptions): Fault {
  const { quietAtMicros, quietMicros } = faultRates
  if (quietMicros === 0 || fault.atMicros < quietAtMicros) return fault
  return { ...fault, atMicros: fault.atMicros + quietMicros }
}

/** Clients send nothing, and one node may be away meanwhile; then all send at once. */
function drawQuiet(options: SwarmOptions): Fault[] {
  const { seed, faultRates, nodeCount } = options
  const { quietAtMicros: atMicros, quietMicros, meanMicros } = faultRates
  if (quietMicros === 0) return []
  const random = new SeededRandom(`${seed}/faults/quiet`)
  const node = nodeName(random.int(0, nodeCount - 1))
  const away = { kind: 'crash', atMicros, node, downMicros: quietMicros, name: 'away' } as const
  return [
    { kind: 'idle', atMicros, lengthMicros: quietMicros },
    ...(random.chance(600_000) ? [away] : []),
    ...(meanMicros['echo'] === undefined ? [] : drawEchoes(options)),
    { kind: 'storm', atMicros: atMicros + quietMicros, lengthMicros: 1_000_000, name: 'burst' },
  ]
}

/** After it, earlier frames arrive once more: of intents that are over, of forgotten sessions. */
function drawEchoes({ seed, faultRates, nodeCount }: SwarmOptions): Fault[] {
  const { quietAtMicros, quietMicros, lengthMicros } = faultRates
  const random = new SeededRandom(`${seed}/faults/quiet/echoes`)
  const nodes = Array.from({ length: nodeCount }, (_, i) => nodeName(i))
  // The later ones when groups have gone on: their time is that of their entries.
  const afterMicros = [200_000, 1_000_000, 4_000_000]
  const echoes = afterMicros.flatMap((after) =>
    nodes.map((node): Fault => {
      const atMicros = quietAtMicros + quietMicros + after + random.int(0, 500_000)
      return { kind: 'echo', atMicros, node, framesMax: 100 }
    }),
  )
  return echoes.filter(({ atMicros }) => atMicros < lengthMicros)
}
