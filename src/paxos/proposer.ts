/**
 * The proposer of one log position (Paxos phases 1a and 2a): it counts answers, nothing more.
 *
 * PAX-5  After phase 1 it proposes the value accepted at the highest ballot among the answers of
 *        its majority; only if there is none, a value of its own.
 * PAX-7  Only voters' answers count, each once.
 */
import { assert } from '../base/assert.ts'
import type { NodeId } from '../base/ids.ts'
import type { BallotValue } from './acceptor.ts'
import { compareBallots, type Ballot } from './ballot.ts'

/** Waiting for promises. */
export interface Preparing {
  readonly kind: 'preparing'
  readonly ballot: Ballot
  readonly promises: ReadonlyMap<NodeId, BallotValue | undefined>
  readonly refusals: ReadonlySet<NodeId>
}

/** Waiting for acceptances of one value. */
export interface Accepting {
  readonly kind: 'accepting'
  readonly ballot: Ballot
  readonly value: Uint8Array
  readonly acceptances: ReadonlySet<NodeId>
  readonly refusals: ReadonlySet<NodeId>
}

export type Phase = Preparing | Accepting

/** Shared: a phase that changes gets sets of its own. */
const nobody: ReadonlySet<NodeId> = new Set<NodeId>()

export function prepare(ballot: Ballot): Preparing {
  assert(ballot.round >= 1, 'PAX-6: ballot zero is never prepared')
  return { kind: 'preparing', ballot, promises: new Map(), refusals: nobody }
}

export function accept(ballot: Ballot, value: Uint8Array): Accepting {
  return { kind: 'accepting', ballot, value, acceptances: nobody, refusals: nobody }
}

export function countPromise(
  phase: Preparing,
  from: NodeId,
  accepted: BallotValue | undefined,
): Preparing {
  if (accepted !== undefined) {
    assert(
      compareBallots(accepted.ballot, phase.ballot) <= 0,
      'PAX-3: a promise names an acceptance above it',
    )
  }
  return { ...phase, promises: new Map(phase.promises).set(from, accepted) }
}

export function countAcceptance(phase: Accepting, from: NodeId): Accepting {
  const { kind, ballot, value, refusals } = phase
  return { kind, ballot, value, acceptances: new Set(phase.acceptances).add(from), refusals }
}

export function countRefusal<P extends Phase>(phase: P, from: NodeId): P {
  return { ...phase, refusals: new Set(phase.refusals).add(from) }
}

/** Whether a majority of `voters` has answered what the phase waits for. */
export function isWon(phase: Phase, voters: readonly NodeId[]): boolean {
  const answered = phase.kind === 'preparing' ? phase.promises : phase.acceptances
  let count = 0
  for (const voter of voters) if (answered.has(voter)) count += 1
  return count > voters.length / 2
}

/** Whether too many voters refused: no majority can answer any more. */
export function isLost(phase: Phase, voters: readonly NodeId[]): boolean {
  const left = voters.filter((voter) => !phase.refusals.has(voter)).length
  return left <= voters.length / 2
}

/** The value that phase 2 must propose: the one accepted at the highest ballot, or undefined: free choice. */
export function valueToAdopt(phase: Preparing): BallotValue | undefined {
  let highest: BallotValue | undefined
  for (const accepted of phase.promises.values()) {
    if (accepted === undefined) continue
    if (highest === undefined || compareBallots(accepted.ballot, highest.ballot) > 0) {
      highest = accepted
    }
  }
  return highest
}
