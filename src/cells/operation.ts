/**
 * Operations on cells, and their answers, as plain data: the client library sends an operation, the gateway
 * makes it from HTTP, and `CellStore` carries it out. Batches are the general case; one cell is a batch of
 * one. Items of a batch succeed and fail on their own.
 */
import type { Position, Timestamp } from '../base/ids.ts'
import type { Outcome, Problem } from '../base/problem.ts'
import type { Pace } from '../ports/pace.ts'
import type { BoundedStaleness, ReplicaReadLevel } from '../group/replica-port.ts'
import type { Intents } from '../txn/intents.ts'
import type { DropProgress } from './index-drop.ts'
import type { FoundEntry, IndexQuery } from './index-query.ts'
import type { IndexType } from './index-values.ts'
import type { CellName, ShardLeader, ShardPosition, StoredCell, Written } from './cell.ts'

/** From which replica a read is answered. */
export interface ReadFrom {
  readonly level: ReplicaReadLevel
  /**
   * The positions of these shards that the session has seen already; a `snapshot` replica is not behind it.
   */
  readonly atLeast: readonly ShardPosition[]
  /** With the level `snapshot`: all that was acknowledged longer ago than this is seen; not for queries of indexes. */
  readonly maxStalenessMs?: number
}

/** The level at which a replica reads. */
export function replicaLevel({
  level,
  maxStalenessMs,
}: ReadFrom): ReplicaReadLevel | BoundedStaleness {
  return maxStalenessMs === undefined ? level : { maxStalenessMs }
}

export interface PutItem extends CellName {
  /** A packed body (`packBody`). */
  readonly body: Uint8Array
  /** Names the intent that the cell is to remember, when that is not the one it is put under. */
  readonly creator?: Uint8Array | undefined
}

export interface PutCells {
  readonly kind: 'put'
  readonly datastore: string
  readonly items: readonly PutItem[]
  /** Into the shards, or not at all: no node on the way takes a cell into a buffer. */
  readonly isDirect?: true
}

/** A cell, or without a ref key the latest of its column. */
export interface GetItem {
  readonly rowKey: string
  readonly column: string
  readonly refKey?: number
}

export interface GetCells {
  readonly kind: 'get'
  readonly datastore: string
  readonly read: ReadFrom
  readonly items: readonly GetItem[]
}

/** The latest cell of each column of a row, in the order of their names. */
export interface GetRow {
  readonly kind: 'row'
  readonly datastore: string
  readonly read: ReadFrom
  readonly rowKey: string
  /** The column to begin with. */
  readonly from?: string
  readonly limit: number
}

/** Versions of a column by ref key, rising or falling. */
export interface GetVersions {
  readonly kind: 'versions'
  readonly datastore: string
  readonly read: ReadFrom
  readonly rowKey: string
  readonly column: string
  /** The ref key to begin with. */
  readonly from?: number
  readonly limit: number
  readonly reverse: boolean
}

/** A place in a shard's log: behind an added id, or at the first cell of a time or later. */
export type LogPlace =
  | {
      readonly kind: 'after'
      readonly shard: number
      readonly addedId: number
      /**
       * As of this position of the shard's log nothing was behind it: a replica that has applied no more need
       * not look.
       */
      readonly asOf?: Position
    }
  | { readonly kind: 'since'; readonly shard: number; readonly timestamp: Timestamp }

export interface GetLog {
  readonly kind: 'log'
  readonly datastore: string
  readonly read: ReadFrom
  readonly items: readonly LogPlace[]
  /** Cells of one shard. */
  readonly limit: number
  /** How long the call waits for a cell when there is none in any of the shards. */
  readonly waitMs: number
}

/**
 * Takes old cells of a shard out for good: a page of its log, from a place on. Idempotent: sent again it
 * removes what is left.
 */
export interface PurgeCells {
  readonly kind: 'purge'
  readonly datastore: string
  readonly shard: number
  /** Cells added before this time. */
  readonly before: Timestamp
  /** Of this column only. */
  readonly column?: string
  /** The latest cell of each column stays, however old it is. */
  readonly keepLatest: boolean
  /** Cells after this added id. */
  readonly after: number
  /** Cells looked at. */
  readonly limit: number
  /** This cell of the shard alone, whatever its age: the members above say nothing then. */
  readonly cell?: CellName
}

/** Entries of an index over the datastore's cells, and cells of the rows found. */
export interface QueryIndex extends IndexQuery {
  readonly kind: 'index'
  readonly datastore: string
  readonly read: ReadFrom
  readonly name: string
  /** Of each row found the latest cells of these columns, or of all. */
  readonly columns?: readonly string[] | 'all'
}

/** Other replica sets hear of what was declared, or changed, at the datastore's own group. */
export interface SpreadIndexes {
  readonly kind: 'spread-indexes'
  readonly datastore: string
}

/** One step of dropping an index; sent again, it goes on from there. */
export interface DropIndex {
  readonly kind: 'drop-index'
  readonly datastore: string
  readonly name: string
  /** That of this number, as an earlier step has told it, and no later one of the name. */
  readonly number?: number
  /** How long nodes may still keep it after all sets know; by default as long as is safe. */
  readonly graceMs?: number
}

export interface IndexedCells extends FoundEntry {
  readonly cells?: readonly StoredCell[]
}

export interface IndexAnswer {
  readonly kind: 'index'
  /** The names of the fields, as `values` of the entries have them. */
  readonly fields: readonly string[]
  readonly types: readonly IndexType[]
  readonly entries: readonly IndexedCells[]
  readonly cursor?: string
}

export type IndexOperation = QueryIndex | SpreadIndexes | DropIndex

const indexKinds: ReadonlySet<string> = new Set<IndexOperation['kind']>([
  ...(['index', 'spread-indexes', 'drop-index'] as const),
])

/** Whichever node gets it carries it out. */
export function isIndexOperation(operation: {
  readonly kind: string
}): operation is IndexOperation {
  return indexKinds.has(operation.kind)
}

export type CellOperation =
  PutCells | GetCells | GetRow | GetVersions | GetLog | PurgeCells | IndexOperation

/** The cells asked for; `next` is where to go on, absent at the end. */
export interface CellPage<Next> {
  readonly cells: readonly StoredCell[]
  readonly next?: Next
}

export interface StoredLogPage {
  readonly shard: number
  readonly cells: readonly StoredCell[]
  /** The added id to read after next; the one given when there was nothing. */
  readonly next: number
  /** As of this position of the shard's log nothing is behind `next`; absent when there may be. */
  readonly asOf?: Position
}

export type Answer =
  | { readonly kind: 'put'; readonly items: readonly Outcome<Written>[] }
  | { readonly kind: 'get'; readonly items: readonly Outcome<StoredCell | undefined>[] }
  | { readonly kind: 'row'; readonly page: CellPage<string> }
  | { readonly kind: 'versions'; readonly page: CellPage<number> }
  | { readonly kind: 'log'; readonly items: readonly Outcome<StoredLogPage>[] }
  | {
      readonly kind: 'purge'
      /** Cells removed, as far as this try knows: one before it may have removed some too. */
      readonly purged: number
      /** Where to go on; absent at the end. */
      readonly next?: number
    }
  | IndexAnswer
  | { readonly kind: 'spread-indexes' }
  | ({ readonly kind: 'drop-index' } & DropProgress)
  | { readonly kind: 'problem'; readonly problem: Problem }

export interface Answered {
  readonly answer: Answer
  /** How far each shard concerned had come, where the answer is of it. */
  readonly positions: readonly ShardPosition[]
  /** Of the shards written: those led by another node than the one that answered. A hint. */
  readonly leaders?: readonly ShardLeader[]
}

export interface CallOptions {
  readonly timeoutMs: number
  /** For a put; without them the node that carries it out makes its own. */
  readonly intents?: Intents
  /** How it goes on among others, and until when; absent: at once, to its end. */
  readonly pace?: Pace | undefined
  /** Gives the call up, where it is a client's. */
  readonly signal?: AbortSignal | undefined
}

/** Carries out operations: a node's own `CellStore`, or a client over the network. */
export interface CellService {
  /** Resolves with the answer. Any failure is a problem in it, never a StoreError thrown. */
  execute(operation: CellOperation, options: CallOptions): Promise<Answered>
  /** The same answer, where it can be given in this call; undefined: `execute` finds it. */
  answerNow?(operation: CellOperation): Answered | undefined
}

/** Longer lists are looked through once, not for each of their shards: there may be 4,096. */
const listedMax = 16
const byShard = new WeakMap<readonly ShardPosition[], ReadonlyMap<number, Position>>()

/** The position of a shard among those of an answer, or of a session. */
export function findPosition(
  positions: readonly ShardPosition[],
  shard: number,
): Position | undefined {
  if (positions.length <= listedMax) return positions.find(([of]) => of === shard)?.[1]
  const known = byShard.get(positions) ?? new Map(positions.toReversed())
  byShard.set(positions, known)
  return known.get(shard)
}
