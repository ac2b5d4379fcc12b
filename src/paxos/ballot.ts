/**
 * Ballots: a total order of (round, node, incarnation). Two ballots are equal only if all three are.
 *
 * Round 0 is *ballot zero*: the one a position's leader may use without a prepare (Megastore,
 * 4.4.2). A node draws each (position, round) at most once per incarnation, so a ballot stands for
 * at most one value (PAX-5).
 */
import { compareText } from '../base/bytes.ts'
import type { NodeId } from '../base/ids.ts'

export interface Ballot {
  readonly round: number
  readonly node: NodeId
  /** Of the node's store; raised and made durable at each start, so a restart never reuses one. */
  readonly incarnation: number
}

export function compareBallots(a: Ballot, b: Ballot): number {
  return a.round - b.round || compareText(a.node, b.node) || a.incarnation - b.incarnation
}

export function equalBallots(a: Ballot, b: Ballot): boolean {
  return compareBallots(a, b) === 0
}

export function describeBallot(ballot: Ballot): string {
  return `${ballot.round}.${ballot.node}.${ballot.incarnation}`
}
