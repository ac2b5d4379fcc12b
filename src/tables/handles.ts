/** The typed handles on a group, over what reads and writes rows. */
import { assert } from '../base/assert.ts'
import { StoreError } from '../base/errors.ts'
import type { Table } from '../../schema/table.ts'
import type { RawTransaction } from '../txn/raw-transaction.ts'
import type { Turn } from '../txn/turn.ts'
import type { RowReads } from './read-rows.ts'
import { typed, type GroupReader, type GroupTransaction, type Inserted } from './types.ts'
import { RowWrites } from './write-rows.ts'

/** Each read comes after the writes called before it; writes come one after another. */
export function readerOf<Tables extends readonly Table[]>(
  rows: RowReads,
  turn: Turn,
): GroupReader<Tables> {
  const read = async <Type>(run: () => Promise<unknown>): Promise<Type> =>
    typed<Type>(await turn.read(run))
  return {
    get: (table, key) => read(async () => (await rows.getMany(rows.table(table.name), [key]))[0]),
    getMany: (table, keys) => read(() => rows.getMany(rows.table(table.name), keys)),
    scan: (table, range, options = {}) =>
      read(() => rows.scan(rows.table(table.name), range, options)),
    scanTree: (table, key, options = {}) =>
      read(() => rows.scanTree(rows.table(table.name), key, options)),
    index: (table, name, query, options = {}) =>
      read(async () => {
        const page = await rows.index(rows.table(table.name), name, query, options)
        return { ...page, rows: () => turn.read(() => page.rows()) }
      }),
    getWith: (into, key, table, name) =>
      read(() => rows.getWith(rows.table(into.name), key, rows.table(table.name), name)),
  }
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

export function transactionOf<Tables extends readonly Table[]>(
  rows: RowReads,
  raw: RawTransaction,
  inserted: InsertedRow[],
): GroupTransaction<Tables> {
  const { turn } = raw
  assert(raw.group === rows.context.group, 'TAB-5: a transaction reads and writes its group only')
  const writes = new RowWrites(raw, rows.context)
  return {
    ...readerOf<Tables>(rows, turn),
    insert: (table, row) =>
      turn.write(async () => {
        const allocation = await writes.insert(rows.table(table.name), row)
        const handle = new InsertedRow(table.name, allocation)
        inserted.push(handle)
        return handle
      }),
    put: (table, row) => turn.write(() => writes.put(rows.table(table.name), row)),
    update: (table, key, patch) =>
      turn.write(() => writes.update(rows.table(table.name), key, patch)),
    delete: (table, key) => turn.write(() => writes.delete(rows.table(table.name), key)),
  }
}
