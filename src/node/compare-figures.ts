/** The comparison of a node's groups with its peers', and what it mends, in figures and in words. */
import type { CompareFigures } from '../replica/comparing.ts'
import type { Figure } from './metrics.ts'

export function compareFigures(compare: CompareFigures | undefined): readonly Figure[] {
  if (compare === undefined) return []
  const told: readonly (readonly [name: string, help: string, value: number])[] = [
    [
      'rounds_total',
      'Rounds of comparing groups with a peer that came to their end.',
      compare.rounds,
    ],
    ['groups_total', 'Groups that were compared with a peer one by one.', compare.groups],
    [
      'differences_total',
      'Of these, groups with other rows at an equal position.',
      compare.differences,
    ],
    [
      'unequal_positions',
      'Groups whose positions were still unequal at the end of the last round with each peer.',
      compare.unequal,
    ],
    ['uncompared_peers', 'Peers with which the last round came to no end.', compare.uncompared],
    ['aside', 'Groups that are put aside here until a peer has mended them.', compare.aside],
    ['mended_total', 'Groups that a snapshot of a peer has mended here.', compare.mended],
    [
      'undecided',
      'Groups that take no write, since no majority has the same rows.',
      compare.undecided,
    ],
  ]
  return told.map(([name, help, value]) => ({ name: `trilithon_compare_${name}`, help, value }))
}

/** The faults and their remedies, in words; empty when there is none. */
export function describeCompare({ aside, undecided }: CompareFigures): readonly string[] {
  const messages: string[] = []
  if (aside > 0) {
    messages.push(
      `${countText(aside)} of this node has damaged rows: others serve it until one of them has sent it anew; check this disk`,
    )
  }
  if (undecided > 0) {
    messages.push(
      `${countText(undecided)} takes no write here: the replicas have different rows, and no majority has the same ones; start the nodes that are down, or see trilithon compare resolve --help`,
    )
  }
  return messages
}

function countText(count: number): string {
  return count === 1 ? '1 group' : `each of ${count} groups`
}
