/**
 * The acceptor of one log position (Paxos phases 1b and 2b; Megastore, 4.6.3 steps 2 and 3).
 *
 * PAX-2  The promised ballot never goes down.
 * PAX-3  It accepts a ballot only at or above its promise, and has then promised it.
 * PAX-5  At one ballot it sees one value.
 * MOVE-5 An acceptance of an earlier epoch is kept whatever is promised, unless a higher one is here.
 *
 * Durability is the caller's: a reply may leave only when `next` is on the disk (PAX-4).
 */
import { assert } from '../base/assert.ts'
import { equalBytes } from '../base/bytes.ts'
import { compareBallots, equalBallots, type Ballot } from './ballot.ts'

/** A value with the ballot it was accepted or chosen at. The value is opaque here. */
export interface BallotValue {
  readonly ballot: Ballot
  readonly value: Uint8Array
}

/** An acceptor's memory of one position. Both absent: it never heard of it. */
export interface Acceptor {
  readonly promised?: Ballot
  readonly accepted?: BallotValue
}

export const freshAcceptor: Acceptor = {}

export type PrepareDecision =
  | { readonly kind: 'promised'; readonly next: Acceptor; readonly accepted?: BallotValue }
  | { readonly kind: 'refused'; readonly promised: Ballot }

export type AcceptDecision =
  | { readonly kind: 'accepted'; readonly next: Acceptor }
  | { readonly kind: 'refused'; readonly promised: Ballot }

/** Phase 1b. `next === acceptor` says that nothing new has to reach the disk. */
export function decidePrepare(acceptor: Acceptor, ballot: Ballot): PrepareDecision {
  const { promised, accepted } = acceptor
  if (promised !== undefined && compareBallots(ballot, promised) < 0) {
    return { kind: 'refused', promised }
  }
  const again = promised !== undefined && equalBallots(ballot, promised)
  const next = again ? acceptor : checked(acceptor, { ...acceptor, promised: ballot })
  return accepted === undefined ? { kind: 'promised', next } : { kind: 'promised', next, accepted }
}

/** Phase 2b. `next === acceptor` says that nothing new has to reach the disk. */
export function decideAccept(
  acceptor: Acceptor,
  ballot: Ballot,
  value: Uint8Array,
): AcceptDecision {
  const { promised, accepted } = acceptor
  if (promised !== undefined && compareBallots(ballot, promised) < 0) {
    return { kind: 'refused', promised }
  }
  if (accepted !== undefined && equalBallots(accepted.ballot, ballot)) {
    assert(equalBytes(accepted.value, value), 'PAX-5: two values at one ballot')
    return { kind: 'accepted', next: acceptor }
  }
  const next = checked(acceptor, { promised: ballot, accepted: { ballot, value } })
  return { kind: 'accepted', next }
}

/** An acceptance that another voter gave in an earlier epoch. `next === acceptor`: a higher one, or this one, is here. */
export function carry(acceptor: Acceptor, carried: BallotValue): Acceptor {
  const { promised, accepted } = acceptor
  const { ballot, value } = carried
  if (accepted !== undefined && equalBallots(accepted.ballot, ballot)) {
    assert(equalBytes(accepted.value, value), 'PAX-5: two values at one ballot')
  }
  if (accepted !== undefined && compareBallots(accepted.ballot, ballot) >= 0) return acceptor
  const isPromised = promised !== undefined && compareBallots(promised, ballot) > 0
  return checked(acceptor, { promised: isPromised ? promised : ballot, accepted: carried })
}

function checked(before: Acceptor, after: Acceptor): Acceptor {
  const { promised, accepted } = after
  assert(promised !== undefined, 'PAX-3: a decision leaves a promise')
  if (before.promised !== undefined) {
    assert(compareBallots(promised, before.promised) >= 0, 'PAX-2: the promise went back')
  }
  if (accepted !== undefined) {
    assert(compareBallots(accepted.ballot, promised) <= 0, 'PAX-3: accepted above the promise')
  } else {
    assert(before.accepted === undefined, 'PAX-2: an acceptance was forgotten')
  }
  return after
}
