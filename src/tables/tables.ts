/**
 * A program's handles on a schema's tables over many groups: the key of a root row says which group
 * a transaction or a read is of, and everything inside it stays there. `open.ts` opens them.
 */
import type { GroupId, Position, Timestamp } from '../base/ids.ts'
import type { IndexEntry, IndexNames, IndexQuery, Key, TableShape } from '../../schema/infer.ts'
import type { Table } from '../../schema/table.ts'
import type { SchemaVersion } from '../../schema/version.ts'
import type { Clock } from '../ports/clock.ts'
import type { Random } from '../ports/random.ts'
import type { QueueHandling, QueueSource } from '../queues/handle-call.ts'
import type { TransactionLimits } from '../txn/limits.ts'
import type { View } from '../group/group-port.ts'
import type { LockSource } from '../txn/locks.ts'
import type { TransactionScope } from '../txn/scope.ts'
import type { IntentSource } from '../txn/session.ts'
import type {
  CallOptions,
  GlobalIndexOptions,
  ReadLevel,
  RootKey,
  TransactionCallOptions,
} from './call-options.ts'
import type { IndexReport } from '../indexes/report.ts'
import type { Paged } from './paged.ts'
import type { Message, Queue, QueueCallOptions } from './queue-types.ts'
import { tableName } from './given.ts'
import type { SchemaWatch } from './schema-watch.ts'
import type { GroupReader, GroupTransaction, IndexPage } from './types.ts'

export type {
  CallOptions,
  GlobalIndexOptions,
  ReadLevel,
  RootKey,
  TransactionCallOptions,
} from './call-options.ts'

/** `rootKey(User, { user_id: 1n })`. */
export function rootKey<Root extends Table<TableShape, true>>(
  table: Root,
  key: Key<Root>,
): RootKey {
  return { table: tableName('rootKey', table), key }
}

export interface TablesOptions {
  readonly clock: Clock
  readonly random: Random
  /** The version that the cluster has, with its numbers; the schema's first one otherwise. */
  readonly version?: SchemaVersion
  /** Keeps to what becomes of the schema; without it the version is taken to stay. */
  readonly watch?: SchemaWatch
  /** Where intents come from, when other calls of this process share them. */
  readonly intents?: IntentSource
  /** Finds outer handles used inside a transaction; without it they are not found. */
  readonly scope?: TransactionScope
  /** Lends advisory locks; without it, transactions that ask for one go without. */
  readonly locks?: LockSource
  /** Starts handlers of queues. */
  readonly queues?: QueueSource
  readonly timeoutMs?: number
  /** Functions are an application's: one that does not end is given up when its time is over. */
  readonly isBounded?: boolean
  readonly limits?: TransactionLimits
  readonly rerunsMax?: number
}

export interface TransactionResult<Value> {
  readonly value: Value
  readonly group: GroupId
  readonly position: Position
  /** Absent when nothing was read or written. */
  readonly timestamp: Timestamp | undefined
  /** Rows inserted into tables with a sequence, with their numbers, in order. */
  readonly numbers: readonly { readonly table: string; readonly number: number }[]
  /** How often the function was run. */
  readonly runs: number
}

export interface ReadResult<Value> {
  readonly value: Value
  /** The view that was read; absent when nothing was read. */
  readonly view: View | undefined
}

export interface Tables<Of extends readonly Table[] = readonly Table[]> {
  /** The function may be run more than once: let it do nothing that counts but through `tx`. */
  transaction<Value>(
    key: RootKey,
    run: (tx: GroupTransaction<Of>) => Promise<Value>,
    options?: TransactionCallOptions,
  ): Promise<TransactionResult<Value>>
  /** Takes no locks and is never in conflict. */
  read<Value>(
    key: RootKey,
    level: ReadLevel,
    run: (rows: GroupReader<Of>) => Promise<Value>,
    options?: CallOptions,
  ): Promise<ReadResult<Value>>
  /** Compares entries and rows of a group. */
  checkIndexes(key: RootKey, options?: CallOptions): Promise<IndexReport>
  /**
   * Entries of a global index, over all groups: as they were a moment ago. `rows()` reads the rows, and
   * leaves out those that do not fit any more; `verify` does so with the entries. Awaited: a page, of
   * 1,000 entries at most. `for await`: all of them, each page with a time-out of its own.
   */
  index<Among extends Of[number], Name extends IndexNames<Among>>(
    table: Among,
    name: Name,
    query: IndexQuery<Among, Name>,
    options?: GlobalIndexOptions,
  ): Paged<IndexEntry<Among, Name>, IndexPage<Among, Name>>
  group(key: RootKey): GroupId
  /**
   * Handles the messages of a queue in all groups, until it is stopped: the function is called in the
   * transaction that takes them, whose commit is the acknowledgement, and may be run more than once.
   */
  consume<Root extends Table<TableShape, true>, Body>(
    queue: Queue<Root, Body>,
    run: (tx: GroupTransaction<Of>, messages: readonly Message<Root, Body>[]) => Promise<void>,
    options?: QueueCallOptions,
  ): QueueHandling
  /** The same for one group, whose key is looked at once. Throws `invalid` for what is no root's key. */
  of(key: RootKey): GroupTables<Of>
}

/** A schema's tables in one group. */
export interface GroupTables<Of extends readonly Table[] = readonly Table[]> {
  readonly group: GroupId
  transaction<Value>(
    run: (tx: GroupTransaction<Of>) => Promise<Value>,
    options?: TransactionCallOptions,
  ): Promise<TransactionResult<Value>>
  read<Value>(
    level: ReadLevel,
    run: (rows: GroupReader<Of>) => Promise<Value>,
    options?: CallOptions,
  ): Promise<ReadResult<Value>>
  checkIndexes(options?: CallOptions): Promise<IndexReport>
}
