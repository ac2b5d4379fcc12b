/** Messages on the link of a client and a node: requests of all kinds, and their answers. */
import type { NodeId } from '../../base/ids.ts'
import type { Answer, Answered, CellOperation } from '../../cells/operation.ts'
import type { WorklistAnswer, WorklistOperation } from '../../worklist/worklist-operation.ts'
import type { GroupAnswer, GroupOperation } from '../../txn/group-operation.ts'
import type { Intents } from '../../txn/intents.ts'

/** Asks for the node's status. */
export interface GetStatus {
  readonly kind: 'status'
}

/** The client no longer waits for an earlier request of the link. The node does not answer this. */
export interface CancelRequest {
  readonly kind: 'cancel'
  readonly request: number
}

export type Operation =
  CellOperation | GroupOperation | WorklistOperation | GetStatus | CancelRequest

export type Reply =
  Answer | GroupAnswer | WorklistAnswer | { readonly kind: 'status'; readonly status: Uint8Array }

export interface Request {
  /** Names the request among those of its link. */
  readonly id: number
  readonly timeoutMs: number
  /** For a put of cells. */
  readonly intents?: Intents
  readonly operation: Operation
}

/** A request of which no more can be read than its number: to be answered, and nothing else. */
export interface MalformedRequest {
  readonly id: number
  readonly reason: string
}

/** A reply, and beside it what the node says of the shards concerned. */
export interface Replied extends Omit<Answered, 'answer'> {
  readonly answer: Reply
}

export interface Response extends Replied {
  readonly id: number
}

/** Requests that came in, in order: each is unpacked when it is taken. */
export interface RequestSource {
  /** Not taken yet. */
  readonly count: number
  /** The memory that they hold, about. */
  readonly bytes: number
  /** The next one; undefined: that was all. */
  next(): Request | MalformedRequest | undefined
}

/** A node as another one knows it. */
export interface ListedNode {
  readonly node: NodeId
  /** Where clients reach it: scheme, host and port. */
  readonly url: string
  /** The address is the node's own word, which the address of a configuration gives way to. */
  readonly isOwnWord?: true
}

/** The nodes that vote in a replica set. */
export interface SetList {
  /** The number of the set, from 0. */
  readonly set: number
  /** The epoch of the set that they vote in: a list of a later epoch takes the place of an earlier one. */
  readonly epoch: number
  readonly nodes: readonly ListedNode[]
}

/** The messages that a client and a node send one another at once: those of one turn of the loop. */
export type ClientFrame =
  | {
      readonly kind: 'requests'
      readonly requests: readonly Request[]
      /** Of a frame that came in; absent when there are none, as a rule. */
      readonly malformed?: readonly MalformedRequest[]
    }
  | { readonly kind: 'responses'; readonly responses: readonly Response[] }
  /** Tells a client the nodes of the cluster, first those of the sender's own set. Only to a client that follows them. */
  | { readonly kind: 'nodes'; readonly sets: readonly SetList[] }
  /** Many requests, or large ones, that came in; never sent. */
  | { readonly kind: 'packed'; readonly requests: RequestSource }

/** Bytes that a request brings to be written: what queues of requests are bounded by. */
export function writtenBytes(operation: Operation): number {
  switch (operation.kind) {
    case 'put':
      return operation.items.reduce((sum, { body }) => sum + body.length, 0)
    case 'commit-group':
      return operation.submission.mutations.reduce(
        (sum, { key, value }) => sum + key.length + (value?.length ?? 0),
        0,
      )
    case 'pass-group':
      return writtenBytes(operation.operation)
    default:
      return 0
  }
}

/** Writes are what all replicas have work with: nodes take fewer of them at once than of the rest. */
export function isWrite(operation: Operation): boolean {
  if (operation.kind === 'pass-group') return isWrite(operation.operation)
  const { kind } = operation
  return kind === 'put' || kind === 'commit-group' || kind === 'purge'
}
