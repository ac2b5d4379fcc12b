/**
 * A schema's tables over many groups: the key of a root row says which group a transaction or a read
 * is of, and everything inside it stays there.
 */
import { StoreError } from '../base/errors.ts'
import type { GroupId, Position, Timestamp } from '../base/ids.ts'
import type { DefinedSchema } from '../../schema/define.ts'
import type { Key, TableShape } from '../../schema/infer.ts'
import type { Table } from '../../schema/table.ts'
import { firstVersion, type SchemaVersion } from '../../schema/version.ts'
import type { Clock } from '../ports/clock.ts'
import type { Random } from '../ports/random.ts'
import { transactionTimeoutMs, type TransactionLimits } from '../txn/bounds.ts'
import type { GroupPort, ReadFrom, View } from '../txn/group-port.ts'
import type { LockOptions, LockSource } from '../txn/locks.ts'
import { runRead, runTransaction } from '../txn/run.ts'
import { checkOutside, type TransactionScope } from '../txn/scope.ts'
import { Sessions, type IntentSource } from '../txn/session.ts'
import { compareIndexes, type IndexReport } from './check-indexes.ts'
import { compileSchema, type CompiledSchema } from './compile.ts'
import { groupContext, type GroupContext } from './group-context.ts'
import { RowReads } from './read-rows.ts'
import { keyInWords } from './row-key.ts'
import { readerOf, transactionOf, type InsertedRow } from './handles.ts'
import type { GroupReader, GroupTransaction } from './types.ts'

/** Names a group by the key of its root row. */
export interface RootKey {
  readonly table: string
  readonly key: unknown
}

/** `rootKey(User, { user_id: 1n })`. */
export function rootKey<Root extends Table<TableShape, true>>(
  table: Root,
  key: Key<Root>,
): RootKey {
  return { table: table.name, key }
}

export interface TablesOptions {
  readonly clock: Clock
  readonly random: Random
  /** The version that the cluster has, with its numbers; the schema's first one otherwise. */
  readonly version?: SchemaVersion
  /** Where intents come from, when other calls of this process share them. */
  readonly intents?: IntentSource
  /** Finds outer handles used inside a transaction; without it they are not found. */
  readonly scope?: TransactionScope
  /** Lends advisory locks; without it, transactions that ask for one go without. */
  readonly locks?: LockSource
  readonly timeoutMs?: number
  readonly limits?: TransactionLimits
  readonly rerunsMax?: number
}

export interface TransactionCallOptions extends CallOptions {
  /**
   * A lock to be taken first, by its name: of those who change the same rows of a hot group, one at a
   * time. Who cannot have it goes on without.
   */
  readonly lock?: string
}

export interface CallOptions {
  readonly timeoutMs?: number
  /** A position of the group that has been seen already: nothing before it is shown. */
  readonly atLeast?: Position
}

/** 'current', 'snapshot', 'inconsistent', or a moment of the past. */
export type ReadLevel = 'current' | 'snapshot' | 'inconsistent' | { readonly at: Timestamp }

export interface TransactionResult<Value> {
  readonly value: Value
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
  /** What was read at; absent when nothing was. */
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
  group(key: RootKey): GroupId
}

export function openTables<const Of extends readonly Table[]>(
  schema: DefinedSchema<Of>,
  port: GroupPort,
  options: TablesOptions,
): Tables<Of> {
  const compiled = compileSchema(options.version ?? firstVersion(schema.model))
  const { clock, random, scope } = options
  const intents = options.intents ?? new Sessions(clock, random)
  const settings = { ...options, intents }
  return {
    transaction: async <Value>(
      key: RootKey,
      run: (tx: GroupTransaction<Of>) => Promise<Value>,
      call?: TransactionCallOptions,
    ) => {
      checkOutside(scope, 'db.transaction')
      const context = contextOf(compiled, key)
      const work = (): Promise<TransactionResult<Value>> =>
        transact(port, context, { ...settings, ...call }, run)
      return call?.lock === undefined || options.locks === undefined
        ? work()
        : options.locks.withLock(context.group, lockOf(call.lock, settings, call), work)
    },
    read: async (key, level, run, call) => {
      checkOutside(scope, 'db.read')
      const context = contextOf(compiled, key)
      return runRead(port, context.group, fromOf(level), { ...settings, ...call }, (reads) =>
        run(readerOf<Of>(new RowReads(reads, context), reads.turn)),
      )
    },
    checkIndexes: async (key, call) => {
      const context = contextOf(compiled, key)
      const read = { ...settings, ...call }
      const { value } = await runRead(port, context.group, { kind: 'current' }, read, (reads) =>
        compareIndexes(reads, context),
      )
      return value
    },
    group: (key) => contextOf(compiled, key).group,
  }
}

/** As long as the transaction may take: it is waited for in half of that. */
function lockOf(name: string, settings: TablesOptions, call: CallOptions): LockOptions {
  const timeoutMs = call.timeoutMs ?? settings.timeoutMs ?? transactionTimeoutMs
  return { name, holdMs: timeoutMs, waitMs: Math.ceil(timeoutMs / 2) }
}

type Settings = TablesOptions & CallOptions & { readonly intents: IntentSource }

async function transact<Of extends readonly Table[], Value>(
  port: GroupPort,
  context: GroupContext,
  settings: Settings,
  run: (tx: GroupTransaction<Of>) => Promise<Value>,
): Promise<TransactionResult<Value>> {
  const { scope } = settings
  const nameKey = (key: Uint8Array): string => keyInWords(context, key)
  const committed = await runTransaction(
    port,
    context.group,
    { ...settings, nameKey },
    async (raw) => {
      const inserted: InsertedRow[] = []
      const tx = transactionOf<Of>(new RowReads(raw, context), raw, inserted)
      const value = await (scope === undefined ? run(tx) : scope.inside(() => run(tx)))
      return { value, inserted }
    },
  )
  const { position, timestamp, sequences, runs } = committed
  const { value, inserted } = committed.value
  for (const row of inserted) row.settle(sequences)
  const numbers = inserted
    .filter(({ isNumbered }) => isNumbered)
    .map(({ table, number }) => ({ table, number }))
  return { value, position, timestamp, numbers, runs }
}

function contextOf(schema: CompiledSchema, { table: name, key }: RootKey): GroupContext {
  const table = schema.tables.get(name)
  if (table !== undefined) return groupContext(schema, table, key)
  throw new StoreError('invalid', `schema ${schema.name} has no table ${name}`)
}

function fromOf(level: ReadLevel): ReadFrom {
  return typeof level === 'string' ? { kind: level } : { kind: 'at', timestamp: level.at }
}
