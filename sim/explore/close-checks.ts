/** The rules of each state in which a bucket is settled (MOVE-14). */
import { isListed, isSettled } from './bucket.ts'
import type { Book } from './book.ts'
import type { NodeState } from './node-state.ts'
import type { Breach } from './observation.ts'
import type { Setting } from './setting.ts'

const none: readonly Breach[] = []

/** Whether the node's disks hold the first entry as a chosen one. */
function holdsFirst({ disk, states }: NodeState): boolean {
  return (states[0]?.position ?? 0) > 0 || disk.get(1)?.chosen !== undefined
}

/**
 * Where the group is not listed the set chooses nothing for it; a value of before is with a majority of the nodes, since no
 * node votes for it any more.
 */
export function closingBreaches(
  setting: Setting,
  nodes: readonly NodeState[],
  { row, chosen }: Book,
): readonly Breach[] {
  if (!isSettled(row) || isListed(setting, row) || !chosen.has(1)) return none
  const holders = nodes.filter(holdsFirst).length
  if (holders > nodes.length / 2) return none
  const sentence =
    holders === 0
      ? 'A group begins in a set that has said that it does not.'
      : 'A first entry is chosen that fewer nodes than a majority hold as chosen, and the others can not end it.'
  return [{ rule: 'MOVE-14', sentence }]
}
