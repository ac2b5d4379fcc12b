/** The options that the calls of `ClientCells` take beside the cells, and the pages they give. */
import type { GivenTime } from '../base/given-time.ts'
import type { Cell } from '../cells/cell.ts'
import type { LogPlace } from '../cells/operation.ts'
import type { Progress } from '../indexes/report.ts'
import type { ReplicaReadLevel } from '../group/replica-port.ts'

export interface WriteOptions {
  /** Retried until then; default 10 seconds. */
  readonly timeoutMs?: number
  /** Gives the call up: it rejects with `closed`, or `unknown-outcome` where it may have written. */
  readonly signal?: AbortSignal
}

export interface ReadOptions {
  /**
   * `current` (default): sees every cell whose put had returned, to any client. `snapshot`: what the node
   * that answers has, without asking others; never older than what this client has seen.
   */
  readonly read?: ReplicaReadLevel
  /**
   * Of a `snapshot` read, in milliseconds, from 100: everything acknowledged longer ago than this is seen. The node that
   * answers makes a current read where it cannot show that it has all of that. With it, `read` may be left out.
   */
  readonly maxStalenessMs?: number
  readonly timeoutMs?: number
  /** Gives the call up: it rejects with `closed`. */
  readonly signal?: AbortSignal
}

/** Which cells a purge takes out. */
export interface PurgeOptions extends WriteOptions {
  /** Those added before this time: a Date, or microseconds since 1970. */
  readonly before: GivenTime
  /** Of this column only. */
  readonly column?: string
  /** Unless it is false, the latest cell of each column stays, however old it is. */
  readonly keepLatest?: boolean
}

export interface PurgePageOptions extends PurgeOptions {
  /** Behind this added id; the `cursor` of the page before. */
  readonly after?: number
  /** Cells looked at. */
  readonly limit?: number
}

export interface PurgeShardsOptions extends PurgeOptions {
  /** Default: all. */
  readonly shards?: readonly number[]
}

/** One step of a purge: a page of a shard's log. */
export interface PurgedPage {
  /** Cells removed; none when it was repeated after they were. */
  readonly purged: number
  /** To be given as `after` next; absent at the shard's end. */
  readonly cursor?: number
}

export interface PageOptions<From> extends ReadOptions {
  /** Where to begin: the `cursor` of the page before. */
  readonly cursor?: From
  readonly limit?: number
}

export interface VersionOptions extends PageOptions<number> {
  /** Falling ref keys. */
  readonly reverse?: boolean
}

export interface LogOptions extends ReadOptions {
  /** Cells of one shard; default and maximum 1000. */
  readonly limit?: number
  /** How long the call waits for a cell when there is none. */
  readonly waitMs?: number
}

export interface ShardLogOptions extends LogOptions {
  /** Cells behind this added id: 0 when neither this nor `since` is there. */
  readonly after?: number
  /** Instead: cells of this time or later, a Date or microseconds since 1970. */
  readonly since?: GivenTime
}

/** A place in a shard's log as programs give it. */
export type GivenPlace =
  | (LogPlace & { readonly kind: 'after' })
  | { readonly kind: 'since'; readonly shard: number; readonly timestamp: GivenTime }

export interface LogPage {
  readonly shard: number
  readonly items: readonly Cell[]
  /** To be given as `after` next. */
  readonly cursor: number
  /** As of this position of the shard's log nothing is behind `next`; absent when there may be. */
  readonly asOf?: number
}

export interface IndexQueryOptions extends Omit<ReadOptions, 'maxStalenessMs'> {
  /** Of the entries these fields; all when absent. */
  readonly select?: readonly string[]
  /** Of each row found the latest cells of these columns, or of all. */
  readonly columns?: readonly string[] | 'all'
  /** By this field; by the second one when absent. */
  readonly order?: string
  readonly reverse?: boolean
  readonly cursor?: string
  readonly limit?: number
  /** Leaves out entries that their rows have no more. */
  readonly verify?: boolean
}

export interface BuildOptions {
  /** How long programs that do not know the index may still write; by default as long as is safe. */
  readonly graceMs?: number
  readonly onProgress?: (progress: Progress) => void
  /** Ends the work with `closed`; the same call again goes on with it. */
  readonly signal?: AbortSignal
  /**
   * Rows, cells or entries that one step looks at, from 1 to `rowsAtOnceMax`; absent: as many as is usual.
   * With fewer, a writer of the same group meets a step less often.
   */
  readonly rowsAtOnce?: number
}

export interface CellBuildOptions extends BuildOptions {
  /** These alone, one at least. A build of some shards fills those, and leaves the index unready. */
  readonly shards?: readonly number[]
}

export interface TailOptions {
  /** Default: all. */
  readonly shards?: readonly number[]
  /** The added id to begin after, for shards that have one here; the others begin at their first cell. */
  readonly after?: ReadonlyMap<number, number>
  /** Instead of the first cell, the first one of this time or later: a Date, or microseconds since 1970. */
  readonly since?: GivenTime
  /** How long one poll waits. */
  readonly waitMs?: number
  /** Ends the tail with `closed`. */
  readonly signal?: AbortSignal
}
