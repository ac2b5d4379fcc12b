/**
 * The names that applications import from `trilithon`. A name that is not here is not part of the package.
 */

// A client, and the types of its calls.
export { connect, type ConnectOptions } from './client/connect.ts'
export type { Client } from './client/client.ts'

export type { GivenTime } from './base/given-time.ts'
/** `current`, `snapshot`, `inconsistent`, or a moment of the past. Cells are read by the first two. */
export type { ReadLevel } from './tables/tables.ts'
export type { Page } from './base/page.ts'

// Typed tables.
export {
  rootKey,
  type CallOptions,
  type GlobalIndexOptions,
  type GroupTables,
  type ReadResult,
  type RootKey,
  type Tables,
  type TransactionCallOptions,
  type TransactionResult,
} from './tables/tables.ts'
export type { ScanOptions } from './tables/read-rows.ts'
export type { Paged } from './tables/paged.ts'
export type {
  GroupReader,
  GroupTransaction,
  IndexPage,
  Inserted,
  Put,
  RowWith,
  TreeRow,
} from './tables/types.ts'
export type { AppliedSchema } from './tables/registry.ts'
export type { IntentName, IntentOutcome } from './group/replica-port.ts'
export type { GroupMove, Groups, MoveOptions } from './client/groups.ts'
export type { LockOptions } from './txn/locks.ts'

// Indexes of tables: building, comparing, dropping.
export type { TableIndexState, IndexAdmin } from './client/indexes.ts'
export type { BuiltIndexReport } from './tables/index-compare.ts'
export type { IndexReport, Progress } from './indexes/report.ts'
export type { BuildOptions } from './client/options.ts'

// Legal holds.
export type { Holds, HoldTarget } from './client/holds.ts'
export type { Hold } from './tables/holds.ts'

// Queues: messages from group to group.
export { queue, type Message, type Queue, type QueueCallOptions } from './tables/queue-types.ts'
export type { Queues } from './client/queues.ts'
export type { QueueHandling } from './queues/handle-call.ts'
export type { SendOptions } from './queues/send.ts'
export type { DeadLetter, DeadLetters } from './queues/dead-letters.ts'
export type { QueueSum } from './queues/queue-sum.ts'
export type { WaitingMessage } from './queues/inspect.ts'
export { consumeDefaults, type ConsumeOptions } from './queues/limits.ts'

// Cells.
export type { Cells } from './client/cells.ts'
export type {
  Datastores,
  DatastoreOptions,
  DatastorePlacement,
  DeclaredDatastore,
} from './client/datastores.ts'
export type { ColumnTtls } from './client/column-ttls.ts'
export type { ColumnTtl } from './cells/column-ttl.ts'
export type { Added, Buffered, Cell, CellName, NewCell, Written } from './cells/cell.ts'
export type { GetItem, LogPlace } from './cells/operation.ts'
export type { Json } from './cells/body.ts'
export type { Outcome, Problem } from './base/problem.ts'
export type {
  GivenPlace,
  LogOptions,
  LogPage,
  PageOptions,
  PurgedPage,
  PurgeOptions,
  PurgePageOptions,
  PurgeShardsOptions,
  ReadOptions,
  ShardLogOptions,
  VersionOptions,
  WriteOptions,
} from './client/options.ts'
export type { LoggedCell, TailOptions } from './client/tail.ts'
export type { RejectedPut } from './client/rejected.ts'
export { shardCountMax as shardCount } from './cells/datastore-form.ts'
export { findShard, shardCountOf, shardOf } from './client/row-shard.ts'

// Indexes over cells.
export type {
  CellBuildOptions,
  CellIndex,
  CellIndexAdmin,
  CellIndexEntry,
  IndexQueryOptions,
} from './client/cell-indexes.ts'
export type { CellIndexReport } from './cells/index-build.ts'
export type { KnownIndex } from './cells/index-registry.ts'
export type { GivenIndexValue, IndexWhere } from './client/filters.ts'

// Errors: one class, a closed list of codes, and whether the same call may be made again.
export {
  StoreError,
  type Retry,
  type StoreErrorCode,
  type StoreErrorDetail,
} from './base/errors.ts'

export { limits, type LibraryLimits } from './limits.ts'
