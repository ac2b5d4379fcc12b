/** The ranges that a transaction reads, and its outcomes: the words that both wings share. */
import type { Position, Timestamp } from '../base/ids.ts'

/** Keys from `gte` on and below `lt`, relative to the group. */
export interface KeyRange {
  readonly gte: Uint8Array
  readonly lt: Uint8Array
}

/** Where a transaction took effect, and which of its attempts; `sequences`: the numbers that it was given. */
export interface CommittedOutcome {
  readonly kind: 'committed'
  readonly position: Position
  readonly timestamp: Timestamp
  readonly attempt: number
  readonly sequences: readonly number[]
}

/** The answer of a proposer to the node that forwarded a transaction to it. */
export type Verdict =
  | CommittedOutcome
  | {
      readonly kind: 'conflict'
      readonly position: Position
      /** The key that the transaction read and another one wrote since; absent when the proposer's window does not reach back to the read. */
      readonly key?: Uint8Array
      /** The intent that wrote it. */
      readonly by?: { readonly session: string; readonly sequence: number }
    }
  | { readonly kind: 'expired' }
  | Overloaded
  | Moved

/** There is no room: in its group, or at this node for any group, which other nodes are not told. */
export interface Overloaded {
  readonly kind: 'overloaded'
  readonly isOfNode?: true
}

/** The group has left the set. Nothing happened, and nothing will in this set: its last entry there is at `position`. */
export interface Moved {
  readonly kind: 'moved'
  /** The name of the set in which the log goes on. */
  readonly set: string
  readonly position: Position
}

/** The outcome of an intent. Kept until its session's floor passes it, or the session expires. */
export type RecordedOutcome = CommittedOutcome | { readonly kind: 'expired' }
