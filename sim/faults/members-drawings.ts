/** How the changes of voters are drawn that an operator makes. */
import type { Fault } from './fault.ts'
import type { Draw, Drawing } from './fault-drawings.ts'
import type { FaultRates } from './swarm-faults.ts'

const second = 1_000_000

export const membersDrawings: ReadonlyMap<string, Drawing> = new Map<string, Drawing>([
  ['renew', drawRenewal],
  ['replace', drawReplacement],
  ['mistaken-replace', drawMistake],
  ['add', drawAddition],
  ['demote', drawDemotion],
  ['remove', drawRemoval],
])

function drawRenewal(atMicros: number, { random, nodes }: Draw): readonly Fault[] {
  return [{ kind: 'renew', atMicros, node: random.pick(nodes) }]
}

/** Of lost stores, in parts per million: they turn up again when others have their votes. */
const returnRate = 300_000

/** Of nodes that are added, in parts per million: they are read-only members at first. */
const readerRate = 500_000

/** The empty disks are at hand at once, or much later. */
function drawReplacement(atMicros: number, { random, nodes }: Draw): readonly Fault[] {
  const downMicros = random.exponential(random.pick([10_000, second / 2, 3 * second]))
  const node = random.pick(nodes)
  const backMicros = random.exponential(random.pick([10_000, second]))
  const back = random.chance(returnRate) ? { backMicros } : {}
  return [{ kind: 'replace', atMicros, node, downMicros, ...back }]
}

function drawAddition(atMicros: number, { random, spares }: Draw): readonly Fault[] {
  if (spares.length === 0) return []
  const downMicros = random.exponential(random.pick([10_000, second / 2]))
  const node = random.pick(spares)
  const readerMicros = random.exponential(random.pick([10_000, second]))
  const reader = random.chance(readerRate) ? { readerMicros } : {}
  return [{ kind: 'add', atMicros, node, downMicros, ...reader }]
}

function drawDemotion(atMicros: number, { random, nodes }: Draw): readonly Fault[] {
  const lengthMicros = random.exponential(random.pick([100_000, 2 * second, 5 * second]))
  return [{ kind: 'demote', atMicros, node: random.pick(nodes), lengthMicros }]
}

function drawRemoval(atMicros: number, { random, nodes, spares }: Draw): readonly Fault[] {
  return [{ kind: 'remove', atMicros, node: random.pick([...nodes, ...spares]) }]
}

function drawMistake(atMicros: number, { random, nodes }: Draw): readonly Fault[] {
  const lengthMicros = random.exponential(random.pick([100_000, 2 * second]))
  return [{ kind: 'mistaken-replace', atMicros, node: random.pick(nodes), lengthMicros }]
}

/** Nodes that may be added, in a run that adds any. */
export function drawSpares({ meanMicros }: Pick<FaultRates, 'meanMicros'>): {
  readonly spares?: number
} {
  return meanMicros['add'] === undefined ? {} : { spares: 2 }
}
