/** What applications import from `trilithon`. A name that is not here is not part of the package. */

// A client, and what it gives.
export { connect, type ConnectOptions } from './client/connect.ts'
export type { Client } from './client/client.ts'
export type { ClientCells } from './client/cells.ts'
export type {
  CellIndexEntry,
  CellIndexPage,
  ClientCellIndex,
  ClientCellIndexes,
  IndexQueryOptions,
} from './client/cell-indexes.ts'
export type { GivenIndexValue, IndexWhere } from './client/filters.ts'
export type { ClientIndexes, TableIndexState } from './client/indexes.ts'
export type {
  GivenPlace,
  LogOptions,
  LogPage,
  Page,
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

export type { GivenTime } from './base/given-time.ts'

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
export type { ReadLevel as TableReadLevel } from './tables/tables.ts'
export type { Page as TablePage, ScanOptions } from './tables/read-rows.ts'
export type {
  GroupReader,
  GroupTransaction,
  IndexPage,
  Inserted,
  Put,
  RowWith,
  TreeRow,
} from './tables/types.ts'
export type { IndexReport } from './tables/check-indexes.ts'
export type { AppliedSchema } from './tables/registry.ts'
export type { IntentName, IntentOutcome } from './group/replica-port.ts'

// Queues: messages from group to group.
export { queue, type Message, type Queue, type QueueCallOptions } from './tables/queue-types.ts'
export type { QueueHandling } from './queues/handle-call.ts'
export type { SendOptions } from './queues/send.ts'
export {
  batchMessagesMax,
  delayMsMax,
  handleDefaults,
  messageBytesMax,
  sentMessagesMax,
  type HandleOptions,
} from './queues/bounds.ts'

// Cells.
export type { Added, Buffered, Cell, CellName, NewCell, Written } from './cells/cell.ts'
export type { RejectedPut } from './client/rejected.ts'
export type { Json } from './cells/body.ts'
export type { GetItem, LogPlace } from './cells/operation.ts'
export type { Outcome, Problem } from './base/problem.ts'
export type { ReadLevel } from './group/replica-port.ts'
export { shardCount } from './cells/shard.ts'
export { shardOf } from './client/row-shard.ts'

// Errors: one class, a closed list of codes, and whether the same call may be made again.
export {
  StoreError,
  type Retry,
  type StoreErrorCode,
  type StoreErrorDetail,
} from './base/errors.ts'

// Limits.
export {
  batchItemsMax,
  cellBytesMax,
  columnNameCharsMax,
  datastoreNameCharsMax,
  pageItemsMax,
  tailWaitSecondsMax,
} from './base/limits.ts'
export { batchBytesMax } from './cells/bounds.ts'
export { answerBytesMax, callTimeoutMsMax } from './txn/bounds.ts'
export { bodyDepthMax } from './cells/body.ts'
