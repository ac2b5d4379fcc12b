/**
 * Rows below one that is deleted, and what their tables say of them (ON DELETE): `cascade`, they go
 * with it; `restrict`, it is not deleted while they are there; `keep`, they stay. The same holds below each
 * row that goes.
 *
 * All of it is read and checked before the first row is deleted, and counts as read by the transaction: when
 * another one puts a row there meanwhile, the function runs again.
 */
import { assert, present } from '../base/assert.ts'
import { StoreError } from '../base/errors.ts'
import type { Timestamp } from '../base/ids.ts'
import { transactionBytesMax } from '../base/limits.ts'
import { isInRange, keyAfter, prefixRange } from '../txn/key-range.ts'
import type { RawTransaction } from '../txn/raw-transaction.ts'
import type { ScanPage, StoredRow } from '../txn/reads.ts'
import type { KeyRange } from '../group/outcome.ts'
import type { CompiledTable } from './compiled.ts'
import { isGone } from './expiry.ts'
import type { GroupContext } from './group-context.ts'
import { cascadeRowsMax, countedBelowMax, namedBelowMax } from './limits.ts'
import { decodeRowKey, keyInWords, keysBelow } from './row-key.ts'

/** A row that goes with the one above it. */
export interface RowBelow {
  readonly table: CompiledTable
  readonly values: readonly unknown[]
  readonly stored: StoredRow
}

/** Bytes of such rows that a transaction holds together. */
const cascadeBytesMax = 4 * transactionBytesMax
const pageRows = 500

/**
 * The rows that go with the row of this key. `table`: of the newest version that is known. Rejects with `invalid`
 * when rows of a table that restricts are there, and with `too-large` when there are too many.
 */
export async function findBelow(
  transaction: RawTransaction,
  context: GroupContext,
  table: CompiledTable,
  key: Uint8Array,
): Promise<readonly RowBelow[]> {
  if (table.children.length === 0) return []
  const search = new Search(transaction, context, table, key)
  for (const { table: child, onDelete } of table.children) {
    if (onDelete === 'keep') continue
    const range = prefixRange(keysBelow(child, key))
    await search.look(range, onDelete === 'cascade' ? pageRows : namedBelowMax + 1)
  }
  return search.end()
}

class Search {
  readonly #transaction: RawTransaction
  readonly #context: GroupContext
  readonly #key: Uint8Array
  readonly #taken = new Set<CompiledTable>()
  readonly #restricting = new Set<CompiledTable>()
  readonly #found: RowBelow[] = []
  readonly #held = new Map<string, string[]>()
  readonly #counts = new Map<string, number>()
  readonly #expires: boolean
  #asOf: Timestamp | undefined
  #count = 0
  #bytes = 0

  constructor(
    transaction: RawTransaction,
    context: GroupContext,
    table: CompiledTable,
    key: Uint8Array,
  ) {
    this.#transaction = transaction
    this.#key = key
    const tables = new Map(context.schema.tableByNumber)
    const plan = this.#plan(table)
    this.#expires = plan.some(({ expiry }) => expiry !== undefined)
    for (const below of plan) tables.set(below.number, below)
    this.#context = { ...context, schema: { ...context.schema, tableByNumber: tables } }
  }

  /** The tables below, down to those whose rows stay or restrict. */
  #plan(above: CompiledTable): readonly CompiledTable[] {
    return above.children.flatMap(({ table, onDelete }) => {
      if (onDelete !== 'cascade') {
        if (onDelete === 'restrict') this.#restricting.add(table)
        return [table]
      }
      this.#taken.add(table)
      return [table, ...this.#plan(table)]
    })
  }

  /** Looks through a range until it has named enough of what restricts, or counted enough of what goes. */
  async look(range: KeyRange, limit: number): Promise<void> {
    for (let rest = range; this.#count < countedBelowMax;) {
      const asked = { ...rest, limit }
      // Too many are refused: nothing rests on the rest of them.
      const page = await (this.#isTooMany
        ? this.#transaction.peek(asked)
        : this.#transaction.scan(asked))
      if (this.#expires) this.#asOf = (await this.#transaction.view()).asOf
      for (const stored of page.rows) {
        assert(isInRange(stored.key, range), 'TAB-8: only rows below the row go with it')
        this.#sort(stored)
      }
      if (page.isWhole || this.#held.size > 0) return
      rest = after(page, rest)
    }
  }

  #sort(stored: StoredRow): void {
    const row = decodeRowKey(this.#context, stored.key)
    if (row === undefined) return
    const { table, values } = row
    if (this.#taken.has(table)) {
      this.#counts.set(table.name, (this.#counts.get(table.name) ?? 0) + 1)
      this.#count += 1
      this.#bytes += stored.key.length + stored.value.length
      if (!this.#isTooMany) this.#found.push({ table, values, stored })
    }
    if (!this.#restricting.has(table) || isGone({ ...row, stored }, this.#asOf)) return
    const named = this.#held.get(table.name) ?? []
    this.#held.set(table.name, [...named, keyInWords(this.#context, stored.key)])
  }

  get #isTooMany(): boolean {
    return this.#count > cascadeRowsMax || this.#bytes > cascadeBytesMax
  }

  end(): readonly RowBelow[] {
    if (this.#held.size > 0) throw this.#stillBelow()
    const isFree = this.#found.every(({ table }) => !this.#restricting.has(table))
    assert(isFree, 'TAB-9: no row goes whose table restricts')
    if (!this.#isTooMany) return this.#found
    const each = [...this.#counts].map(([name, rows]) => `${rows} of ${name}`).join(', ')
    throw tooManyBelow(this.#words, this.#count, each)
  }

  get #words(): string {
    return keyInWords(this.#context, this.#key)
  }

  #stillBelow(): StoreError {
    const lists = [...this.#held.values()].map((keys) => {
      const more = keys.length > namedBelowMax ? ' and more' : ''
      return `${keys.slice(0, namedBelowMax).join(', ')}${more}`
    })
    const tables = [...this.#held.keys()].join(' and ')
    const message = `${this.#words} is not deleted while rows below it are there: ${lists.join('; ')}; delete them first, or declare ${tables} ON DELETE CASCADE`
    return new StoreError('invalid', message)
  }
}

/** `row`: the row that is to be deleted, in words. `each`: the tables of the rows, or the limit that was hit. */
export function tooManyBelow(row: string, actual: number, each: string): StoreError {
  const orMore = actual >= countedBelowMax ? ' or more' : ''
  const message = `deleting ${row} takes ${actual}${orMore} rows below it along: ${each}; one transaction takes ${cascadeRowsMax} at most, and fewer where they have many index entries: delete rows below it first, some in each transaction, then it`
  const detail = { limit: 'cascadeRowsMax', limitValue: cascadeRowsMax, actual }
  return new StoreError('too-large', message, detail)
}

function after({ rows }: ScanPage, { lt }: KeyRange): KeyRange {
  return { gte: keyAfter(present(rows.at(-1), 'TAB-4: a page has rows').key), lt }
}
