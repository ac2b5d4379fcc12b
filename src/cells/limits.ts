/** Limits of requests for cells and of their answers. Those that users meet most are in `base/limits.ts`. */
import { assert } from '../base/assert.ts'
import { cellBytesMax, frameBytesMax } from '../base/limits.ts'
import { answerBytesMax } from '../txn/limits.ts'
import { packedBodyBytesMax } from './body.ts'

/** Bodies of one batch of puts, together. */
export const batchBytesMax: number = 8 * 1024 * 1024
/** The body of a request that holds no cells. */
export const requestBytesMax: number = 16 * 1024
/** Items of a batch that are at work at once. */
export const batchConcurrencyMax = 256
/**
 * Logs that one call reads at once: a call may be of all shards, and its unfinished reads live long in
 * memory.
 */
export const logsAtOnceMax = 64
/** Bodies that are read at once for one answer, however small they are. */
export const bodiesReadAtOnceMax = 256
/** How often a put that meets entries it has not seen is validated anew. */
export const putRerunsMax = 10
/** How often a read whose state is forgotten before it is done is begun anew. */
export const readRerunsMax = 20
/** Bodies that one transaction takes into a buffer; one alone may be larger. */
export const bufferedPartBytesMax: number = 512 * 1024
/** Buffered cells that are moved to their shard at once. */
export const drainCellsMax = 64
/** Characters of the name of an index, or of a field, in a query; of its cursor; and its filters. */
export const queryNameCharsMax = 256
export const queryCursorCharsMax = 2_048
export const queryFiltersMax = 100
/** Cells that one purge looks at, and removes, at once. */
export const purgeItemsMax = 200
/** Shards that calls at one node wait for, together. */
export const watchedShardsMax = 100_000

/**
 * The cost of steps, in units of about 10 µs (`ports/slices.ts`), as measured: a read of a shard at its
 * moment, one more cell of it, a row out of its bytes, a page of an index, a put, the bytes of a body checked
 * per unit, an item that is only looked at.
 */
export const shardReadWork = 8
export const cellReadWork = 3
/** Of a row: two scans. */
export const columnWork = 8
export const indexPageWork = 16
export const sortedEntryWork = 0.2
export const putWork = 8
export const checkedBytesPerWork = 384
export const packedPartWork = 0.1

assert(packedBodyBytesMax < answerBytesMax, 'limits: a cell does not fit an answer')
assert(
  answerBytesMax + packedBodyBytesMax < frameBytesMax,
  'limits: an answer does not fit a frame',
)
assert(batchBytesMax + cellBytesMax < frameBytesMax, 'limits: a batch does not fit a frame')
/** Indexes of one datastore. */
export const indexesMax = 100
/** Entries of one place looked at for one page of an index, and entries that one query sorts. */
export const indexScanMax = 5_000
export const indexSortMax = 10_000
/** Entries of one page within a query: as many rows are read in one step, where they are verified. */
export const indexPageRows = 250
/** Their values, together. */
export const indexSortBytesMax: number = 32 * 1024 * 1024
/** Shards that a build or a comparison works on together: most have few rows, or none. */
export const indexShardsAtOnceMax = 64
/** Shards that a drop clears together. */
export const clearedShardsAtOnceMax = 16
/** Rows whose entries one transaction clears off a dropped index. */
export const clearedRowsMax = 200
/** How long one may wait for those who still keep it. */
export const graceMsMax = 86_400_000
/** The longest time that one step of a drop goes on. */
export const dropStepMs = 1_000
/** Columns of a datastore that have a TTL. */
export const columnTtlsMax = 100
/** Of the removal of expired cells. */
export const cellExpiryBounds = {
  /** Cells that one transaction removes. */
  cellsAtOnce: 50,
  /** Of one look at a shard. */
  cellsAtLookMax: 5_000,
  /** Between two looks at a shard. */
  sweepMs: 5_000,
  /** No timer is set for longer. */
  sleepMsMax: 86_400_000,
  /** Shards of which is remembered when they are to be looked at next. */
  groupsKnownMax: 100_000,
  callMs: 5_000,
} as const
