/**
 * Ballots: a total order of (epoch, round, node, incarnation). Two ballots are equal only if all four are.
 *
 * The *epoch* says which nodes are the voters: a vote at a ballot is one among the voters of its epoch. So each
 * ballot of an epoch is above all those of the epochs before, and no promise of one epoch binds a node in the next.
 *
 * Round 0 is *ballot zero*: the one a position's leader may use without a prepare (Megastore,
 * 4.4.2). A node draws each (position, epoch, round) at most once per incarnation, so a ballot stands for
 * at most one value (PAX-5).
 */
import { assert } from '../base/assert.ts'
import { compareText } from '../base/bytes.ts'
import type { NodeId } from '../base/ids.ts'

export interface Ballot {
  /** Of the voters, from 1. */
  readonly epoch: number
  readonly round: number
  readonly node: NodeId
  /** Of the node's store; raised and made durable at each start, so a restart never reuses one. */
  readonly incarnation: number
}

export function compareBallots(a: Ballot, b: Ballot): number {
  return (
    a.epoch - b.epoch ||
    a.round - b.round ||
    compareText(a.node, b.node) ||
    a.incarnation - b.incarnation
  )
}

export function equalBallots(a: Ballot, b: Ballot): boolean {
  return compareBallots(a, b) === 0
}

/** `round.node.incarnation`; with `epoch/` before it where that is not the first. */
export function describeBallot({ epoch, round, node, incarnation }: Ballot): string {
  return `${epoch === 1 ? '' : `${epoch}/`}${round}.${node}.${incarnation}`
}

/** Rounds of one epoch. */
const roundsMax = 2 ** 32
/** So that both fit into a number that is counted exactly. */
export const epochMax: number = 2 ** 21
export const roundMax: number = roundsMax - 1
/** No proposer comes so far: a peer that tells of a higher round errs, and leaves no room for rounds above it. */
export const roundToldMax: number = 2 ** 31

/**
 * Epoch and round as one count, as disks and messages have them: it orders as they do, and in the first epoch it is the
 * round, as it was before there were epochs.
 */
export function packRound({ epoch, round }: Pick<Ballot, 'epoch' | 'round'>): number {
  assert(epoch >= 1 && epoch <= epochMax, 'PAX-2: an epoch that no record has room for')
  assert(round >= 0 && round <= roundMax, 'PAX-5: a round that no record has room for')
  return (epoch - 1) * roundsMax + round
}

/** The ballot whose epoch and round are packed so. */
export function unpackBallot(packed: number, node: NodeId, incarnation: number): Ballot {
  return {
    epoch: Math.floor(packed / roundsMax) + 1,
    round: packed % roundsMax,
    node,
    incarnation,
  }
}
