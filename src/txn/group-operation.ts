/**
 * The requests that a client may send to one entity group, and their answers, as plain data: the
 * client library sends it, `GroupService` carries it out at a node. A transaction is a few reads at
 * one timestamp and a commit; nodes keep nothing of it in between.
 */
import type { GroupId, NodeId, Position } from '../base/ids.ts'
import type { Problem } from '../base/problem.ts'
import type {
  IntentName,
  IntentOutcome,
  Outcome,
  Row,
  RowRange,
  Submission,
} from '../group/replica-port.ts'
import type { ReadFrom, RowPage, View } from '../group/group-port.ts'
import type { AfterRow, MovedPage } from '../group/moving-port.ts'

/** Rows by key, or a range of rows, or neither of them: where the group is. All of one view. */
export interface ReadGroup {
  readonly kind: 'read-group'
  readonly group: GroupId
  readonly from: ReadFrom
  /** The position of the group that the session has seen already; 0 for nothing. */
  readonly atLeast: Position
  readonly keys: readonly Uint8Array[]
  readonly range?: RowRange
}

/** The intent is in the submission, so a repetition is harmless. */
export interface CommitGroup {
  readonly kind: 'commit-group'
  readonly submission: Submission
}

/** A question about the outcome of an intent, from any sender and sent to any node. */
export interface GetOutcome {
  readonly kind: 'outcome-group'
  readonly group: GroupId
  readonly intent: IntentName
}

/** An advisory lock, at the node that leads the group. */
export interface LockGroup {
  readonly kind: 'lock-group'
  readonly group: GroupId
  readonly name: string
  readonly holdMs: number
  readonly waitMs: number
}

export interface UnlockGroup {
  readonly kind: 'unlock-group'
  readonly group: GroupId
  readonly name: string
  readonly token: number
}

/** Names of groups that begin like `group`, in their order, as far as the answering node has them. */
export interface ListGroups {
  readonly kind: 'list-groups'
  readonly group: GroupId
  readonly after?: GroupId
  readonly limit: number
  /** Only the answering node's own replica set; absent: all sets. */
  readonly isOfSet?: true
}

/** The requests that are about the rows of one group. */
export type RowsOperation = ReadGroup | CommitGroup | GetOutcome | LockGroup | UnlockGroup

/**
 * A request about a group that has left its set, from a node there: the nodes of this set take the group up if they do not have it yet.
 * Its answer is that of the request.
 */
export interface PassGroup {
  readonly kind: 'pass-group'
  /** The name of the set that the group has left, and the position of its last entry there. */
  readonly from: string
  readonly position: Position
  /** The set has given the bucket away in that term, and has nothing of the group: the position is 0. */
  readonly term?: number
  readonly operation: RowsOperation | MoveGroup | LocateGroup
}

/** A page of all that this set has of a group that has left it. */
export interface ExportGroup {
  readonly kind: 'export-group'
  readonly group: GroupId
  readonly after?: AfterRow
}

/** The group leaves its set, and goes on in the set of that name. */
export interface MoveGroup {
  readonly kind: 'move-group'
  readonly group: GroupId
  readonly to: string
  /** Only to see whether it would be refused. */
  readonly isTrial?: true
}

/** Whether this set takes the group up, which is about to leave the set of that name. */
export interface AdmitGroup {
  readonly kind: 'admit-group'
  readonly group: GroupId
  readonly from: string
}

/** Which set has the group now. */
export interface LocateGroup {
  readonly kind: 'locate-group'
  readonly group: GroupId
}

/** This set opens buckets that the set of that name has given to it. `group`: the own group of this set. */
export interface OpenBuckets {
  readonly kind: 'open-buckets'
  readonly group: GroupId
  readonly from: string
  readonly term: number
  readonly buckets: readonly number[]
}

/** The requests by which groups go from set to set. */
export type MovingOperation =
  PassGroup | ExportGroup | MoveGroup | AdmitGroup | LocateGroup | OpenBuckets

export type GroupOperation = RowsOperation | ListGroups | MovingOperation

export type GroupAnswer =
  | {
      readonly kind: 'read-group'
      readonly view: View
      /** In the order of the keys; shorter when the answer is full: ask for the others again. */
      readonly rows: readonly (Row | undefined)[]
      /** Present when the request named a range. */
      readonly page?: RowPage
    }
  | {
      readonly kind: 'commit-group'
      readonly outcome: Outcome
      /** The node that leads the group, when that is not the node that answers. A hint. */
      readonly leader?: NodeId
    }
  | { readonly kind: 'outcome-group'; readonly outcome: IntentOutcome }
  | {
      readonly kind: 'lock-group'
      /** Absent: the lock was not to be had in time, or not here. */
      readonly token?: number
      /** The node that leads the group, when that is not the node that answers: locks are taken there. */
      readonly leader?: NodeId
    }
  | { readonly kind: 'unlock-group'; readonly wasHeld: boolean }
  | { readonly kind: 'list-groups'; readonly groups: readonly GroupId[] }
  | { readonly kind: 'export-group'; readonly page: MovedPage }
  | { readonly kind: 'move-group' }
  | { readonly kind: 'admit-group' }
  | { readonly kind: 'open-buckets' }
  /** The name of the set. */
  | { readonly kind: 'locate-group'; readonly set: string }
  | { readonly kind: 'problem'; readonly problem: Problem }

const groupKinds: ReadonlySet<string> = new Set<GroupOperation['kind']>([
  'read-group',
  'commit-group',
  'outcome-group',
  'lock-group',
  'unlock-group',
  'list-groups',
  'pass-group',
  'export-group',
  'move-group',
  'admit-group',
  'open-buckets',
  'locate-group',
])

export function isGroupOperation(operation: {
  readonly kind: string
}): operation is GroupOperation {
  return groupKinds.has(operation.kind)
}

export function readGroup(operation: GroupOperation): GroupId {
  if (operation.kind === 'pass-group') return readGroup(operation.operation)
  return operation.kind === 'commit-group' ? operation.submission.group : operation.group
}
