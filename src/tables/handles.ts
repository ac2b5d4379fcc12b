/** The typed handles on a group, over what reads and writes rows. */
import { readElements, isList } from '../base/readable.ts'
import {
  checkArgument,
  checkList,
  checkOptions,
  readGiven,
  text,
  wrongArgument,
} from '../base/arguments.ts'
import { assert } from '../base/assert.ts'
import { StoreError } from '../base/errors.ts'
import type { Timestamp } from '../base/ids.ts'
import type {
  IndexEntry,
  IndexNames,
  IndexQuery,
  Insert,
  Key,
  KeyRange,
  Patch,
  Row,
} from '../../schema/infer.ts'
import type { Table } from '../../schema/table.ts'
import { sendRules } from '../queues/rules.ts'
import { Sender, type SendOptions } from '../queues/send.ts'
import type { RawTransaction } from '../txn/raw-transaction.ts'
import type { Turn } from '../txn/turn.ts'
import { paged, type Paged } from './paged.ts'
import type { Queue } from './queue-types.ts'
import type { CompiledTable } from './compiled.ts'
import { nameOfQueue, tableName } from './given.ts'
import { linkRaw } from './notes.ts'
import { encodeBody, findReceiver, storedName } from './queues.ts'
import type { Page } from '../base/page.ts'
import type { RowReads, ScanOptions } from './read-rows.ts'
import { scanRules } from './rules.ts'
import {
  typed,
  type GroupReader,
  type GroupTransaction,
  type IndexPage,
  type Inserted,
  type Put,
  type RowWith,
  type TreeRow,
} from './types.ts'
import { RowWrites } from './write-rows.ts'

/** Each read comes after the writes called before it. */
export class Reader<Tables extends readonly Table[]> implements GroupReader<Tables> {
  protected readonly rows: RowReads
  protected readonly turn: Turn

  constructor(rows: RowReads, turn: Turn) {
    this.rows = rows
    this.turn = turn
  }

  timestampOf(given: object): Timestamp | undefined {
    return this.rows.timestampOf(given)
  }

  asOf(): Promise<Timestamp | undefined> {
    const { rows } = this
    return this.turn.read(() => rows.asOf())
  }

  get<Of extends Table>(table: Of, key: Key<Of>): Promise<Row<Of> | undefined> {
    const { rows } = this
    return this.#read(() => rows.get(tableIn(rows, 'get', table), key))
  }

  getMany<Of extends Table>(
    table: Of,
    keys: readonly Key<Of>[],
  ): Promise<readonly (Row<Of> | undefined)[]> {
    const { rows } = this
    return this.#read(() => rows.getMany(tableIn(rows, 'getMany', table), listOfKeys(keys)))
  }

  scan<Of extends Table>(
    table: Of,
    range: KeyRange<Of>,
    options: ScanOptions = {},
  ): Paged<Row<Of>> {
    const { rows } = this
    return this.#paged(options, (at) => {
      checkOptions('scan', at, scanRules)
      return rows.scan(tableIn(rows, 'scan', table), range, at)
    })
  }

  scanTree<Of extends Table>(
    table: Of,
    key: Key<Of>,
    options: ScanOptions = {},
  ): Paged<TreeRow<Tables>> {
    const { rows } = this
    return this.#paged(options, (at) => {
      checkOptions('scanTree', at, scanRules)
      return rows.scanTree(tableIn(rows, 'scanTree', table), key, at)
    })
  }

  index<Of extends Table, Name extends IndexNames<Of>>(
    table: Of,
    name: Name,
    query: IndexQuery<Of, Name>,
    options: ScanOptions = {},
  ): Paged<IndexEntry<Of, Name>, IndexPage<Of, Name>> {
    const { rows, turn } = this
    return this.#paged(options, async (at) => {
      checkArgument('index', 'the name of the index', name, text)
      checkOptions('index', at, scanRules)
      const page = await rows.index(tableIn(rows, 'index', table), name, query, at)
      return {
        get items() {
          return page.items
        },
        cursor: page.cursor,
        rows: (from?: number, to?: number) => turn.read(() => page.rows(from, to)),
      }
    })
  }

  getWith<Into extends Table, Of extends Table, Name extends IndexNames<Of>>(
    into: Into,
    key: Key<Into>,
    table: Of,
    name: Name,
  ): Promise<RowWith<Into, Of, Name> | undefined> {
    const { rows } = this
    return this.#read(() => {
      checkArgument('getWith', 'the name of the index', name, text)
      const [at, of] = [tableIn(rows, 'getWith', into), tableIn(rows, 'getWith', table)]
      return rows.getWith(at, key, of, name)
    })
  }

  #paged<Item, First extends Page<Item>>(
    options: ScanOptions,
    page: (options: ScanOptions) => Promise<unknown>,
  ): Paged<Item, First> {
    return paged((cursor) =>
      this.#read(() => page(cursor === undefined ? options : { ...options, cursor })),
    )
  }

  #read<Type>(run: () => Promise<unknown>): Promise<Type> {
    return typed<Promise<Type>>(this.turn.read(run))
  }
}

function tableIn(rows: RowReads, verb: string, table: Table): CompiledTable {
  return rows.table(tableName(verb, table))
}

/** Holes are undefined, which no row's key is. */
function listOfKeys<Item>(keys: readonly Item[]): readonly Item[] {
  const given: unknown = keys
  if (!isList(given)) throw wrongArgument('getMany', 'the keys', keys, 'a list')
  const elements = readGiven('getMany: the keys', () => readElements(keys))
  checkList('getMany: the keys', given)
  if (elements !== undefined) return elements
  throw wrongArgument('getMany', 'the length of the keys', keys.length, 'a whole number from 0')
}

/** A row inserted by a run of a transaction; its number comes with the commit of that run. */
export class InsertedRow implements Inserted {
  readonly table: string
  readonly #allocation: number | undefined
  #number: number | undefined

  constructor(table: string, allocation: number | undefined) {
    this.table = table
    this.#allocation = allocation
  }

  get number(): number {
    if (this.#number !== undefined) return this.#number
    const why =
      this.#allocation === undefined
        ? 'has no sequence'
        : 'gives its number when the transaction is committed; look after db.transaction has returned'
    throw new StoreError('invalid', `table ${this.table} ${why}`)
  }

  get isNumbered(): boolean {
    return this.#allocation !== undefined
  }

  settle(sequences: readonly number[]): void {
    if (this.#allocation !== undefined) this.#number = sequences[this.#allocation]
  }
}

/** Writes come one after another. */
export class Transaction<Tables extends readonly Table[]>
  extends Reader<Tables>
  implements GroupTransaction<Tables>
{
  readonly #writes: RowWrites
  readonly #inserted: InsertedRow[]
  readonly #sender: Sender

  /** `inserted` gets the rows inserted, in order. */
  constructor(rows: RowReads, raw: RawTransaction, inserted: InsertedRow[]) {
    super(rows, raw.turn)
    assert(raw.group === rows.context.group, 'TAB-5: a transaction reads and writes its group only')
    this.#writes = new RowWrites(raw, rows.context)
    linkRaw(this, raw)
    this.#inserted = inserted
    this.#sender = new Sender(raw)
  }

  insert<Of extends Table>(table: Of, row: Insert<Of>): Promise<Inserted> {
    return this.turn.write(async () => {
      const compiled = tableIn(this.rows, 'insert', table)
      const { name } = compiled
      const allocation = await this.#writes.insert(compiled, row)
      const handle = new InsertedRow(name, allocation)
      this.#inserted.push(handle)
      return handle
    })
  }

  put<Of extends Table>(table: Of, row: Put<Of>): Promise<void> {
    return this.turn.write(() => this.#writes.put(tableIn(this.rows, 'put', table), row))
  }

  update<Of extends Table>(table: Of, key: Key<Of>, patch: Patch<Of>): Promise<void> {
    return this.turn.write(() =>
      this.#writes.update(tableIn(this.rows, 'update', table), key, patch),
    )
  }

  delete<Of extends Table>(table: Of, key: Key<Of>): Promise<void> {
    return this.turn.write(() => this.#writes.delete(tableIn(this.rows, 'delete', table), key))
  }

  purge<Of extends Table>(table: Of, key: Key<Of>): Promise<void> {
    return this.turn.write(() => this.#writes.purge(tableIn(this.rows, 'purge', table), key))
  }

  send(queue: Queue, to: unknown, body: unknown, options?: SendOptions): Promise<void> {
    return this.turn.write(async () => {
      const { schema } = this.rows.context
      nameOfQueue('send', queue)
      checkOptions('send', options, sendRules)
      const receiver = findReceiver(schema, queue, to)
      this.#sender.send(storedName(schema, queue.name), receiver, encodeBody(queue, body), options)
    })
  }
}
