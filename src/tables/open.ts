/** Opens the tables of a schema over many groups (`tables.ts`). */
import { checkArgument, checkOptions, text } from '../base/arguments.ts'
import { asPromise } from '../base/as-promise.ts'
import { StoreError } from '../base/errors.ts'
import type { GroupId } from '../base/ids.ts'
import { unknownWord } from '../base/suggest.ts'
import type { DefinedSchema } from '../../schema/define.ts'
import type { IndexEntry, IndexNames, IndexQuery, TableShape } from '../../schema/infer.ts'
import type { Table } from '../../schema/table.ts'
import { firstVersion } from '../../schema/version.ts'
import type { QueueHandling } from '../queues/handle-call.ts'
import { consumeRules } from '../queues/rules.ts'
import type { GroupPort } from '../group/group-port.ts'
import { checkOutside } from '../txn/scope.ts'
import { Sessions } from '../txn/session.ts'
import type { IndexReport } from '../indexes/report.ts'
import { compiledVersion } from './compile.ts'
import type { CompiledSchema } from './compiled.ts'
import { GlobalIndexReads, type GroupReads } from './global-read.ts'
import { groupContext, type GroupContext } from './group-context.ts'
import { makeGate } from './index-gate.ts'
import { Transaction } from './handles.ts'
import { OpenGroup, type OpenOptions } from './open-group.ts'
import { paged, type Paged } from './paged.ts'
import { PortGroups } from './port-groups.ts'
import type { Message, Queue, QueueCallOptions } from './queue-types.ts'
import { checkRootKey, checkRun, nameOfQueue, tableName } from './given.ts'
import { contextOfGroup, handling, toMessage, storedName } from './queues.ts'
import { RowReads } from './read-rows.ts'
import { globalIndexRules } from './rules.ts'
import type {
  CallOptions,
  GlobalIndexOptions,
  GroupTables,
  ReadLevel,
  ReadResult,
  RootKey,
  Tables,
  TablesOptions,
  TransactionCallOptions,
  TransactionResult,
} from './tables.ts'
import { typed, type GroupReader, type GroupTransaction, type IndexPage } from './types.ts'

export function openTables<const Of extends readonly Table[]>(
  schema: DefinedSchema<Of>,
  port: GroupPort,
  options: TablesOptions,
): Tables<Of> {
  return new OpenTables<Of>(
    compiledVersion(options.version ?? firstVersion(schema.model), schema.model),
    port,
    options,
  )
}

class OpenTables<Of extends readonly Table[]> implements Tables<Of> {
  readonly #opened: CompiledSchema
  readonly #port: GroupPort
  readonly #options: OpenOptions

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
    return asPromise(() => this.of(key).transaction(run, call))
  }

  read<Value>(
    key: RootKey,
    level: ReadLevel,
    run: (rows: GroupReader<Of>) => Promise<Value>,
    call?: CallOptions,
  ): Promise<ReadResult<Value>> {
    return asPromise(() => this.of(key).read(level, run, call))
  }

  checkIndexes(key: RootKey, call?: CallOptions): Promise<IndexReport> {
    return asPromise(() => this.of(key).checkIndexes(call))
  }

  index<Among extends Of[number], Name extends IndexNames<Among>>(
    table: Among,
    name: Name,
    query: IndexQuery<Among, Name>,
    options: GlobalIndexOptions = {},
  ): Paged<IndexEntry<Among, Name>, IndexPage<Among, Name>> {
    return paged((cursor) => {
      const at = cursor === undefined ? options : { ...options, cursor }
      return this.#indexPage<Among, Name>(table, name, query, at)
    })
  }

  async #indexPage<Among extends Of[number], Name extends IndexNames<Among>>(
    table: Among,
    name: Name,
    query: IndexQuery<Among, Name>,
    options: GlobalIndexOptions,
  ): Promise<IndexPage<Among, Name>> {
    const call = 'db.index'
    const ofTable = tableName(call, table)
    checkArgument(call, 'the name of the index', name, text)
    checkOptions(call, options, globalIndexRules)
    const { scope, watch, clock } = this.#options
    checkOutside(scope, call)
    if (this.#schema.globals.has(name)) await watch?.asked(name)
    const { timeoutMs = this.#options.timeoutMs, level = 'current', signal } = options
    const reads = new PortGroups(this.#port, { kind: level }, { clock, timeoutMs, signal })
    const page = await indexReads(this.#schema, ofTable, name, reads).page(query, options)
    return typed<IndexPage<Among, Name>>(page)
  }

  group(key: RootKey): GroupId {
    return this.of(key).group
  }

  consume<Root extends Table<TableShape, true>, Body>(
    queue: Queue<Root, Body>,
    run: (tx: GroupTransaction<Of>, messages: readonly Message<Root, Body>[]) => Promise<void>,
    call: QueueCallOptions = {},
  ): QueueHandling {
    const name = nameOfQueue('db.consume', queue)
    checkRun('db.consume', run)
    checkOptions('db.consume', call, consumeRules)
    const root = tableName('db.consume', queue.to)
    if (!this.#schema.tables.has(root)) throw noTable(this.#schema, root)
    const { onFailed, ...options } = call
    const { scope, queues, watch } = this.#options
    return handling(queues).consume({
      ...options,
      queue: storedName(this.#opened, name),
      // Its writes are kept in all indexes that there are by then.
      prepare: () => watch?.trusted(),
      handle: async (raw, taken) => {
        const context = contextOfGroup(this.#schema, raw.group)
        const gate = watch && makeGate(watch, 'current')
        const tx = new Transaction<Of>(new RowReads(raw, context, gate), raw, [])
        const messages = taken.map((one) => toMessage<Root, Body>(context, one))
        await (scope === undefined ? run(tx, messages) : scope.inside(() => run(tx, messages)))
      },
      ...(onFailed && { onFailed: (group, error) => onFailed(error, group) }),
    })
  }

  of(key: RootKey): GroupTables<Of> {
    return new OpenGroup<Of>(
      findContext(this.#schema, checkRootKey(key)),
      this.#port,
      this.#options,
    )
  }
}

function findContext(schema: CompiledSchema, { table: name, key }: RootKey): GroupContext {
  const table = schema.tables.get(name)
  if (table !== undefined) return groupContext(schema, table, key)
  throw noTable(schema, name)
}

function noTable(schema: CompiledSchema, name: string): StoreError {
  return new StoreError('invalid', `schema ${schema.name} has no table ${name}`)
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
