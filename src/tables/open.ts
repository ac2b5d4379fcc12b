/**
 * A schema's tables over many groups: the key of a root row says which group a transaction or a read
 * is of, and everything inside it stays there.
 */
import { assert, present } from '../base/assert.ts'
import { begun } from '../base/begun.ts'
import { StoreError } from '../base/errors.ts'
import type { GroupId, Position, Timestamp } from '../base/ids.ts'
import { unknownWord } from '../base/suggest.ts'
import type { DefinedSchema } from '../../schema/define.ts'
import type { IndexNames, IndexQuery, Key, TableShape } from '../../schema/infer.ts'
import type { Table } from '../../schema/table.ts'
import { firstVersion, type SchemaVersion } from '../../schema/version.ts'
import type { Clock } from '../ports/clock.ts'
import type { Random } from '../ports/random.ts'
import type { QueueHandling, QueueSource } from '../queues/handle-call.ts'
import { transactionTimeoutMs, type TransactionLimits } from '../txn/bounds.ts'
import type { GroupPort, ReadFrom, View } from '../txn/group-port.ts'
import type { LockOptions, LockSource } from '../txn/locks.ts'
import { runRead, type ReadOptions } from '../txn/run-read.ts'
import { runTransaction, type TransactionOptions } from '../txn/run.ts'
import { checkOutside, type TransactionScope } from '../txn/scope.ts'
import { Sessions, type IntentSource } from '../txn/session.ts'
import { compareIndexes, type IndexReport } from './check-indexes.ts'
import { compiledVersion, type CompiledSchema } from './compile.ts'
import { GlobalIndexReads, type GlobalOptions, type GroupReads } from './global-read.ts'
import { PortGroups } from './port-groups.ts'
import type { SchemaWatch } from './schema-watch.ts'
import { groupContext, type GroupContext } from './group-context.ts'
import { RowReads } from './read-rows.ts'
import { keyInWords } from './row-key.ts'
import { Reader, Transaction, type InsertedRow } from './handles.ts'
import type { Message, Queue, QueueCallOptions } from './queue-types.ts'
import { contextOfGroup, handling, messageOf, storedName } from './queues.ts'
import { typed, type GroupReader, type GroupTransaction, type IndexPage } from './types.ts'

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
  readonly limits?: TransactionLimits
  readonly rerunsMax?: number
}

export interface TransactionCallOptions
  extends CallOptions, Pick<TransactionOptions, 'from' | 'intent' | 'rerunsMax'> {
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

export interface GlobalIndexOptions extends GlobalOptions {
  readonly timeoutMs?: number
  /** Of the index's groups and of the rows: the newest, or what the replica asked has. */
  readonly level?: 'current' | 'snapshot'
}

/** 'current', 'snapshot', 'inconsistent', or a moment of the past. */
export type ReadLevel = 'current' | 'snapshot' | 'inconsistent' | { readonly at: Timestamp }

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
  /**
   * Entries of a global index, over all groups: as they were a moment ago. `rows()` reads the rows, and
   * leaves out those that do not fit any more; `verify` does so with the entries.
   */
  index<Among extends Of[number], Name extends IndexNames<Among>>(
    table: Among,
    name: Name,
    query: IndexQuery<Among, Name>,
    options?: GlobalIndexOptions,
  ): Promise<IndexPage<Among, Name>>
  group(key: RootKey): GroupId
  /**
   * Handles the messages of a queue in all groups, until it is stopped: the function is called in the
   * transaction that takes them, whose commit is the acknowledgement, and may be run more than once.
   */
  handle<Root extends Table<TableShape, true>, Body>(
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

export function openTables<const Of extends readonly Table[]>(
  schema: DefinedSchema<Of>,
  port: GroupPort,
  options: TablesOptions,
): Tables<Of> {
  return new OpenTables<Of>(
    compiledVersion(options.version ?? firstVersion(schema.model)),
    port,
    options,
  )
}

class OpenTables<Of extends readonly Table[]> implements Tables<Of> {
  readonly #opened: CompiledSchema
  readonly #port: GroupPort
  readonly #options: Options

  constructor(schema: CompiledSchema, port: GroupPort, options: TablesOptions) {
    this.#opened = schema
    this.#port = port
    const intents = options.intents ?? new Sessions(options.clock, options.random)
    this.#options = { ...options, intents }
  }

  get #schema(): CompiledSchema {
    return this.#options.watch?.compiled ?? this.#opened
  }

  transaction<Value>(
    key: RootKey,
    run: (tx: GroupTransaction<Of>) => Promise<Value>,
    call?: TransactionCallOptions,
  ): Promise<TransactionResult<Value>> {
    return begun(() => this.of(key).transaction(run, call))
  }

  read<Value>(
    key: RootKey,
    level: ReadLevel,
    run: (rows: GroupReader<Of>) => Promise<Value>,
    call?: CallOptions,
  ): Promise<ReadResult<Value>> {
    return begun(() => this.of(key).read(level, run, call))
  }

  checkIndexes(key: RootKey, call?: CallOptions): Promise<IndexReport> {
    return begun(() => this.of(key).checkIndexes(call))
  }

  async index<Among extends Of[number], Name extends IndexNames<Among>>(
    table: Among,
    name: Name,
    query: IndexQuery<Among, Name>,
    options: GlobalIndexOptions = {},
  ): Promise<IndexPage<Among, Name>> {
    const { scope, watch, clock } = this.#options
    checkOutside(scope, 'db.index')
    if (watch?.isBuilding(name) === true) await watch.lookAgain()
    if (watch?.isBuilding(name) === true) throw stillBuilding(name)
    assert(watch?.isBuilding(name) !== true, 'IDX-6: what is asked has all rows')
    const { timeoutMs = this.#options.timeoutMs, level = 'current' } = options
    const reads = new PortGroups(this.#port, { kind: level }, { clock, timeoutMs })
    const page = await indexReads(this.#schema, table.name, name, reads).page(query, options)
    return typed<IndexPage<Among, Name>>(page)
  }

  group(key: RootKey): GroupId {
    return this.of(key).group
  }

  handle<Root extends Table<TableShape, true>, Body>(
    { name }: Queue<Root, Body>,
    run: (tx: GroupTransaction<Of>, messages: readonly Message<Root, Body>[]) => Promise<void>,
    { onFailed, ...options }: QueueCallOptions = {},
  ): QueueHandling {
    const { scope, queues, watch } = this.#options
    return handling(queues).handle({
      ...options,
      queue: storedName(this.#opened, name),
      // What it writes is kept in all indexes that there are by then.
      prepare: () => watch?.trusted(),
      handle: async (raw, taken) => {
        const context = contextOfGroup(this.#schema, raw.group)
        const tx = new Transaction<Of>(new RowReads(raw, context), raw, [])
        const messages = taken.map((one) => messageOf<Root, Body>(context, one))
        await (scope === undefined ? run(tx, messages) : scope.inside(() => run(tx, messages)))
      },
      ...(onFailed && { onFailed: (group, error) => onFailed(error, group) }),
    })
  }

  of(key: RootKey): GroupTables<Of> {
    return new OpenGroup<Of>(contextOf(this.#schema, key), this.#port, this.#options)
  }
}

type Options = TablesOptions & Required<Pick<TablesOptions, 'intents'>>

class OpenGroup<Of extends readonly Table[]> implements GroupTables<Of> {
  #context: GroupContext
  readonly #port: GroupPort
  readonly #options: Options

  constructor(context: GroupContext, port: GroupPort, options: Options) {
    this.#context = context
    this.#port = port
    this.#options = options
  }

  get group(): GroupId {
    return this.#context.group
  }

  transaction<Value>(
    run: (tx: GroupTransaction<Of>) => Promise<Value>,
    call: TransactionCallOptions = {},
  ): Promise<TransactionResult<Value>> {
    return begun(() => {
      const { scope, locks } = this.#options
      checkOutside(scope, 'db.transaction')
      if (call.lock === undefined || locks === undefined) return this.#transact(call, run)
      const lock = lockOf(call.lock, call.timeoutMs ?? this.#options.timeoutMs)
      return locks.withLock(this.group, lock, () => this.#transact(call, run))
    })
  }

  read<Value>(
    level: ReadLevel,
    run: (rows: GroupReader<Of>) => Promise<Value>,
    call: CallOptions = {},
  ): Promise<ReadResult<Value>> {
    return begun(() => {
      checkOutside(this.#options.scope, 'db.read')
      return runRead(this.#port, this.group, fromOf(level), this.#readOf(call), (reads) =>
        run(new Reader<Of>(new RowReads(reads.rows, this.#context), reads.turn)),
      )
    })
  }

  async checkIndexes(call: CallOptions = {}): Promise<IndexReport> {
    const from = { kind: 'current' } as const
    const read = await runRead(this.#port, this.group, from, this.#readOf(call), (reads) =>
      compareIndexes(reads, this.#context),
    )
    return read.value
  }

  #readOf({ timeoutMs, atLeast }: CallOptions): ReadOptions {
    const { clock } = this.#options
    return { clock, timeoutMs: timeoutMs ?? this.#options.timeoutMs, atLeast }
  }

  async #transact<Value>(
    call: TransactionCallOptions,
    run: (tx: GroupTransaction<Of>) => Promise<Value>,
  ): Promise<TransactionResult<Value>> {
    const { scope } = this.#options
    const { group } = this
    const committed = await runTransaction(
      this.#port,
      group,
      this.#optionsOf(call),
      async (raw) => {
        const inserted: InsertedRow[] = []
        // Of a schema that stays there is nothing to wait for.
        const keptUp = this.#keepUp()
        if (keptUp !== undefined) await keptUp
        const tx = new Transaction<Of>(new RowReads(raw, this.#context), raw, inserted)
        const value = await (scope === undefined ? run(tx) : scope.inside(() => run(tx)))
        return { value, inserted }
      },
    )
    const { position, timestamp, sequences, runs } = committed
    const { value, inserted } = committed.value
    for (const row of inserted) row.settle(sequences)
    return { value, group, position, timestamp, numbers: numbersOf(inserted), runs }
  }

  /** What is written is kept in all indexes that there are by now. */
  #keepUp(): Promise<void> | undefined {
    const { watch } = this.#options
    if (watch === undefined) return undefined
    const take = (): void => {
      if (this.#context.schema === watch.compiled) return
      const { values, root } = this.#context
      const table = present(watch.compiled.tables.get(root.name), 'TAB-6: a table stays')
      this.#context = { schema: watch.compiled, root: table, values, group: this.group }
    }
    const looking = watch.trusted()
    if (looking !== undefined) return looking.then(take)
    take()
    return undefined
  }

  #optionsOf(call: TransactionCallOptions): TransactionOptions {
    const { clock, random, intents, limits, timeoutMs, rerunsMax } = this.#options
    const { atLeast, from, intent } = call
    const nameKey = (key: Uint8Array): string => keyInWords(this.#context, key)
    // Spelled out: of all that a transaction makes, spreading objects took the longest.
    return {
      clock,
      random,
      limits,
      intents,
      atLeast,
      from,
      intent,
      nameKey,
      timeoutMs: call.timeoutMs ?? timeoutMs,
      rerunsMax: call.rerunsMax ?? rerunsMax,
    }
  }
}

/** As long as the transaction may take: it is waited for in half of that. */
function lockOf(name: string, holdMs: number = transactionTimeoutMs): LockOptions {
  return { name, holdMs, waitMs: Math.ceil(holdMs / 2) }
}

function numbersOf(inserted: readonly InsertedRow[]): TransactionResult<unknown>['numbers'] {
  return inserted
    .filter(({ isNumbered }) => isNumbered)
    .map(({ table, number }) => ({ table, number }))
}

function contextOf(schema: CompiledSchema, { table: name, key }: RootKey): GroupContext {
  const table = schema.tables.get(name)
  if (table !== undefined) return groupContext(schema, table, key)
  throw new StoreError('invalid', `schema ${schema.name} has no table ${name}`)
}

function stillBuilding(name: string): StoreError {
  const message = `index ${name} is being built: not all rows are in it yet; trilithon index status shows how far it is`
  return new StoreError('unavailable', message, { index: 'building' })
}

function indexReads(
  schema: CompiledSchema,
  tableName: string,
  name: string,
  reads: GroupReads,
): GlobalIndexReads {
  const table = schema.tables.get(tableName)
  const index = schema.globals.get(name)
  if (table !== undefined && index?.table === tableName) {
    return new GlobalIndexReads(schema, table, index, reads)
  }
  const isLocal = schema.indexes.get(name)?.table === tableName
  const known = [...schema.globals.values()].filter((one) => one.table === tableName)
  const message = isLocal
    ? `index ${name} lies in the groups of its rows; read it there: db.read(key, 'current', (rows) => rows.index(…))`
    : `table ${tableName}: ${unknownWord(
        'global index',
        name,
        known.map((one) => one.name),
      )}`
  throw new StoreError('invalid', message)
}

function fromOf(level: ReadLevel): ReadFrom {
  return typeof level === 'string' ? { kind: level } : { kind: 'at', timestamp: level.at }
}
