/**
 * Questions to a node's worklist from outside, as plain data: which groups have something under a topic,
 * which had something put there since, how much there is in all.
 */
import type { GroupId, NodeId, Timestamp } from '../base/ids.ts'
import type { Problem } from '../base/problem.ts'
import type { ListedGroup } from '../group/replica-port.ts'

/** Groups that have something under the topic, as far as this node has applied, behind `after`. */
export interface ListWorklist {
  readonly kind: 'list-worklist'
  readonly topic: string
  readonly after?: GroupId
  readonly limit: number
  /** Of the replica set of the answering node alone; absent: of all sets. */
  readonly isOfSet?: true
  /**
   * Other sets that do not answer are left out: the caller will ask again. Absent: then there is no answer.
   */
  readonly isPartial?: true
  /** Not sent: the client asks another node each turn, since one of them may be behind. */
  readonly turn?: number
}

/** Groups that had something put under the topic since `mark`; waits for the first one. */
export interface WatchWorklist {
  readonly kind: 'watch-worklist'
  readonly topic: string
  /** Names who asks, among those who share the work. */
  readonly member: string
  /** Of the answer before, if it was this node's. */
  readonly mark?: string
  readonly waitMs: number
  /** The last question: it shares the work no more. */
  readonly isLeaving: boolean
}

/** Asks for sums of the topics that begin with `prefix`, counted group by group. */
export interface SumWorklist {
  readonly kind: 'sum-worklist'
  readonly prefix: string
  /** Of the replica set of the answering node alone; absent: of all sets. */
  readonly isOfSet?: true
  readonly turn?: number
}

export type WorklistOperation = ListWorklist | WatchWorklist | SumWorklist

export interface TopicSum {
  readonly topic: string
  /** Groups and rows counted; not `isWhole`: there are more. */
  readonly groups: number
  readonly rows: number
  readonly isWhole: boolean
  /** When the oldest row was written, of those counted. */
  readonly oldest?: Timestamp
}

export type WorklistAnswer =
  | { readonly kind: 'list-worklist'; readonly groups: readonly ListedGroup[] }
  | {
      readonly kind: 'watch-worklist'
      readonly groups: readonly ListedGroup[]
      readonly mark: string
      /** Something may have been put before this answer and is not in it: list the groups. */
      readonly isGap: boolean
      /** All who asked lately, the one who asks too. */
      readonly members: readonly string[]
    }
  | { readonly kind: 'sum-worklist'; readonly node: NodeId; readonly topics: readonly TopicSum[] }
  | { readonly kind: 'problem'; readonly problem: Problem }

/** Sends a question to a node, or to another one, until there is an answer or the time is up. */
export type AskWorklist = (
  operation: WorklistOperation,
  timeoutMs: number,
  signal?: AbortSignal,
) => Promise<WorklistAnswer>

export const worklistKinds: readonly WorklistOperation['kind'][] = [
  'list-worklist',
  'watch-worklist',
  'sum-worklist',
]

export function isWorklistOperation(operation: {
  readonly kind: string
}): operation is WorklistOperation {
  return worklistKinds.some((kind) => kind === operation.kind)
}

/** The most members that ask, and the longest name of one. */
export const membersMax = 1_000
export const memberCharsMax = 64
export const markCharsMax = 64
/** Topics summed up in one answer. */
export const topicsMax = 1_000
export const worklistWaitMsMax = 60_000
