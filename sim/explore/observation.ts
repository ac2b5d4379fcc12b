/**
 * One step of one node as an observer sees it from outside: messages that leave, records that become durable,
 * answers to clients. Checkers work on these alone.
 */
import type { Position } from '../../src/base/ids.ts'
import type { Ballot } from '../../src/paxos/ballot.ts'
import type { Verdict } from '../../src/group/outcome.ts'
import type { SharesRow } from '../../src/placement/shares.ts'
import type { GroupMessage } from '../../src/replication/message.ts'

export type Observation =
  /** A proposer asks for the acceptance of a value. */
  | Proposal<'proposed'>
  /** An acceptance is durable. */
  | Proposal<'accepted'>
  /** The node says that this ballot was chosen. */
  | { readonly kind: 'told'; readonly position: Position; readonly ballot: Ballot }
  | { readonly kind: 'applied'; readonly position: Position; readonly value: Uint8Array }
  /** A step ended with everything up to here applied, and this state record. */
  | { readonly kind: 'state'; readonly position: Position; readonly bytes: Uint8Array }
  | { readonly kind: 'submitted'; readonly request: number }
  | { readonly kind: 'verdict'; readonly request: number; readonly verdict: Verdict }
  | { readonly kind: 'read'; readonly read: number }
  | { readonly kind: 'served'; readonly read: number; readonly position: Position }
  /** The row of the buckets has changed. */
  | { readonly kind: 'row'; readonly row: SharesRow }

interface Proposal<Kind extends string> {
  readonly kind: Kind
  readonly position: Position
  readonly ballot: Ballot
  readonly value: Uint8Array
}

/** A rule that does not hold. */
export interface Breach {
  readonly rule: string
  readonly sentence: string
}

/** The proposals and decisions that a message tells of as it leaves. */
export function observedIn(message: GroupMessage): readonly Observation[] {
  switch (message.kind) {
    case 'accept': {
      const { position, ballot, value, previous } = message
      const proposed = { kind: 'proposed', position, ballot, value } as const
      if (previous === undefined) return [proposed]
      return [proposed, { kind: 'told', position: position - 1, ballot: previous }]
    }
    case 'committed':
      return [{ kind: 'told', position: message.position, ballot: message.ballot }]
    case 'entries':
      return message.entries.map(({ position, ballot }) => ({ kind: 'told', position, ballot }))
    default:
      return []
  }
}

/** The total order of ballots, written a second time: the code under test may have another. */
export function compare(a: Ballot, b: Ballot): number {
  if (a.epoch !== b.epoch) return a.epoch < b.epoch ? -1 : 1
  if (a.round !== b.round) return a.round < b.round ? -1 : 1
  if (a.node !== b.node) return a.node < b.node ? -1 : 1
  return Math.sign(a.incarnation - b.incarnation)
}

/** Whether `ballot` is at least `other`; an absent one is below all. */
export function isAtLeast(ballot: Ballot | undefined, other: Ballot | undefined): boolean {
  if (other === undefined) return true
  return ballot !== undefined && compare(ballot, other) >= 0
}
