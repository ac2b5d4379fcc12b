/**
 * What can be asked of one entity group from outside, and what is answered, as plain data: the
 * client library sends it, `GroupService` carries it out at a node. A transaction is a few reads at
 * one timestamp and a commit; nodes keep nothing of it in between.
 */
import type { GroupId, NodeId, Position } from '../base/ids.ts'
import type { Problem } from '../base/problem.ts'
import type { Outcome, Row, RowRange, Submission } from '../replica/local-replica.ts'
import type { ReadFrom, RowPage, View } from './group-port.ts'

/** Rows by key, or a range of rows, or neither of them: where the group is. All of one view. */
export interface ReadGroup {
  readonly kind: 'read-group'
  readonly group: GroupId
  readonly from: ReadFrom
  /** What the session has seen of the group already; 0 for nothing. */
  readonly atLeast: Position
  readonly keys: readonly Uint8Array[]
  readonly range?: RowRange
}

/** The intent is in the submission, so a repetition is harmless. */
export interface CommitGroup {
  readonly kind: 'commit-group'
  readonly submission: Submission
}

export type GroupOperation = ReadGroup | CommitGroup

export type GroupAnswer =
  | {
      readonly kind: 'read-group'
      readonly view: View
      /** In the order of the keys; shorter when the answer is full: ask for the others again. */
      readonly rows: readonly (Row | undefined)[]
      /** Present when a range was asked for. */
      readonly page?: RowPage
    }
  | {
      readonly kind: 'commit-group'
      readonly outcome: Outcome
      /** Who leads the group, when that is not the node that answers. A hint. */
      readonly leader?: NodeId
    }
  | { readonly kind: 'problem'; readonly problem: Problem }
