/**
 * The handles of an application on one group, typed by the declarations of tables. Types only, and
 * the one place where values that were decoded by a declaration are taken for what its type says.
 */
import { assert } from '../base/assert.ts'
import type { Timestamp } from '../base/ids.ts'
import type {
  Flat,
  IndexEntry,
  IndexNames,
  IndexQuery,
  Insert,
  Key,
  KeyRange,
  Patch,
  Row,
  TableShape,
} from '../../schema/infer.ts'
import type { Table } from '../../schema/table.ts'
import type { SendOptions } from '../queues/send.ts'
import type { Paged } from './paged.ts'
import type { Queue } from './queue-types.ts'
import type { Page } from '../base/page.ts'
import type { ScanOptions } from './read-rows.ts'

/** A row of any of the tables, told apart by the table's name. */
export type TreeRow<Tables extends readonly Table[]> = {
  readonly [Place in keyof Tables]: {
    readonly table: Tables[Place]['name']
    readonly row: Row<Tables[Place]>
  }
}[number]

/** A whole row to be put: as for an insert, and with the number that is in its key, if one is. */
export type Put<Of extends Table> = Flat<Insert<Of> & Key<Of>>

/** A row, and the entries of an inline index that appear in it. */
export type RowWith<Into extends Table, Of extends Table, Name extends IndexNames<Of>> = Flat<
  Row<Into> & { readonly [Property in Name]: readonly IndexEntry<Of, Name>[] }
>

export interface IndexPage<Of extends Table, Name extends IndexNames<Of>> extends Page<
  IndexEntry<Of, Name>
> {
  /**
   * The row of each entry, in their order; a row with several entries comes as often, as one object. Of some of the
   * entries, from one place to before another as in `slice`, where all rows would be too much at once.
   */
  rows(from?: number, to?: number): Promise<readonly Row<Of>[]>
}

/** Rows of one group, at one moment unless read inconsistently. */
export interface GroupReader<Tables extends readonly Table[] = readonly Table[]> {
  /**
   * When a row, or an entry of an index, was last written: the timestamp of its commit. Undefined for
   * what this transaction writes itself. Throws `invalid` for what was not read.
   */
  timestampOf(given: object): Timestamp | undefined
  /**
   * The timestamp of the moment that is read, by which rows with a TTL are there or not; undefined for an
   * inconsistent read. Opens the view, as a read does.
   */
  asOf(): Promise<Timestamp | undefined>
  get<Of extends Table>(table: Of, key: Key<Of>): Promise<Row<Of> | undefined>
  /** In the order of `keys`. */
  getMany<Of extends Table>(
    table: Of,
    keys: readonly Key<Of>[],
  ): Promise<readonly (Row<Of> | undefined)[]>
  /**
   * Rows in the order of their keys; of the key, the first parts, the last one named maybe a range.
   * Awaited: a page, of 1,000 rows unless `limit` says less. `for await`: all of them.
   */
  scan<Of extends Table>(table: Of, range: KeyRange<Of>, options?: ScanOptions): Paged<Row<Of>>
  /** The row and all rows of tables below it, parents first, in one pass; in pages, as for a scan. */
  scanTree<Of extends Table>(table: Of, key: Key<Of>, options?: ScanOptions): Paged<TreeRow<Tables>>
  /** Entries of a local or inline index; in pages, as for a scan. */
  index<Of extends Table, Name extends IndexNames<Of>>(
    table: Of,
    name: Name,
    query: IndexQuery<Of, Name>,
    options?: ScanOptions,
  ): Paged<IndexEntry<Of, Name>, IndexPage<Of, Name>>
  /** The row of `into`, with its entries of the inline index as a property of the index's name. */
  getWith<Into extends Table, Of extends Table, Name extends IndexNames<Of>>(
    into: Into,
    key: Key<Into>,
    table: Of,
    name: Name,
  ): Promise<RowWith<Into, Of, Name> | undefined>
}

/** A row that was inserted. */
export interface Inserted {
  readonly table: string
  /** The number of its sequence. Throws `invalid` until the transaction is committed, and of a table without one. */
  readonly number: number
}

/** Reads and changes of one group that take effect together, or not at all. */
export interface GroupTransaction<
  Tables extends readonly Table[] = readonly Table[],
> extends GroupReader<Tables> {
  /** Throws `already-exists` when there is a row of that key. */
  insert<Of extends Table>(table: Of, row: Insert<Of>): Promise<Inserted>
  /** The whole row, whether or not there was one; of a table with a sequence in its key, a row that is there. */
  put<Of extends Table>(table: Of, row: Put<Of>): Promise<void>
  /** Changes what the patch names. Throws `not-found` when there is no row of that key. */
  update<Of extends Table>(table: Of, key: Key<Of>, patch: Patch<Of>): Promise<void>
  /**
   * Leaves no row of that key. Rows that belong to it go with it, stay, or have it refused with `invalid`,
   * as their tables say (ON DELETE). Throws `too-large` when more go than `cascadeRowsMax`.
   */
  delete<Of extends Table>(table: Of, key: Key<Of>): Promise<void>
  /**
   * Deletes the row, with those that go with it, for good: once this is committed, a read of a moment before it is
   * refused with `snapshot-too-old`, of all of the group. So no version of the row is shown. Sent again, it does the same.
   */
  purge<Of extends Table>(table: Of, key: Key<Of>): Promise<void>
  /**
   * Sends a message to the group of the root of this key, of the same schema: it is there iff this
   * transaction takes effect, and handled once. Those to one group and queue are handled in order.
   */
  send<Root extends Table<TableShape, true>, Body>(
    queue: Queue<Root, Body>,
    to: Key<Root>,
    body: Body,
    options?: SendOptions,
  ): Promise<void>
}

/** A decoded value, as the type that the declaration gives it; the decoder has checked it. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the one place that vouches
export function typed<Type>(value: unknown): Type {
  assert(isTyped<Type>(value), 'TAB-3: rows are what their declaration says')
  return value
}

// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- as above
function isTyped<Type>(value: unknown): value is Type {
  return value === undefined || typeof value === 'object'
}
