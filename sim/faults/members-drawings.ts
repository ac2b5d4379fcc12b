/** How the changes of voters are drawn that an operator makes. */
import type { Fault } from './fault.ts'
import type { Draw, Drawing } from './fault-drawings.ts'

const second = 1_000_000

export const membersDrawings: ReadonlyMap<string, Drawing> = new Map<string, Drawing>([
  ['renew', drawRenewal],
  ['replace', drawReplacement],
  ['mistaken-replace', drawMistake],
])

function drawRenewal(atMicros: number, { random, nodes }: Draw): readonly Fault[] {
  return [{ kind: 'renew', atMicros, node: random.pick(nodes) }]
}

/** The empty disks are at hand at once, or much later. */
function drawReplacement(atMicros: number, { random, nodes }: Draw): readonly Fault[] {
  const downMicros = random.exponential(random.pick([10_000, second / 2, 3 * second]))
  return [{ kind: 'replace', atMicros, node: random.pick(nodes), downMicros }]
}

function drawMistake(atMicros: number, { random, nodes }: Draw): readonly Fault[] {
  const lengthMicros = random.exponential(random.pick([100_000, 2 * second]))
  return [{ kind: 'mistaken-replace', atMicros, node: random.pick(nodes), lengthMicros }]
}
