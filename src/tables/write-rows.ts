/**
 * Changing rows of one group. Each change of a row changes its entries in the same transaction, by the
 * row before and the row after (IDX-1), so a change of an indexed table reads what it replaces.
 */
import { assert, present } from '../base/assert.ts'
import { StoreError } from '../base/errors.ts'
import { keyBytesMax } from '../base/limits.ts'
import { purgeNoteKey } from '../group/purge-note.ts'
import type { SequenceSlot } from '../group/transaction.ts'
import { prefixRange } from '../txn/key-range.ts'
import type { RawTransaction } from '../txn/raw-transaction.ts'
import type { StoredRow } from '../txn/reads.ts'
import type { CompiledIndex, CompiledTable } from './compiled.ts'
import { findBelow, tooManyBelow, type RowBelow } from './delete-rows.ts'
import { buildEntries, isSameEntry, noEntries, notUnique, tooLong, type Entry } from './entries.ts'
import { expiryNote, isGone } from './expiry.ts'
import { fitsIndex, buildGlobalChanges, keptBy, rowFor, type WholeRow } from './global-writes.ts'
import { holdKey, refuseHeld, type HoldScope } from './holds.ts'
import type { WorklistRow } from './index-worklist.ts'
import { checkOfGroup, checkRoot, type GroupContext } from './group-context.ts'
import type { ComingNumber } from './key-writer.ts'
import { decodeEntryKey, encodeRowKey, keyInWords, writeRowKey } from './row-key.ts'
import { checkPatch, checkRow, withUnknown, type Values } from './row-check.ts'
import {
  decodeRow,
  encodeChanged,
  encodeReplaced,
  encodeRow,
  readField,
  holdsUnknown,
  type StoredValue,
} from './row-value.ts'

export class RowWrites {
  readonly #transaction: RawTransaction
  readonly #context: GroupContext
  /** Tables of which the transaction has read that they are not held. */
  readonly #free = new Set<string>()

  constructor(transaction: RawTransaction, context: GroupContext) {
    this.#transaction = transaction
    this.#context = context
  }

  /** Gives the place of the row's number among those of the transaction, when it has a sequence. */
  async insert(table: CompiledTable, input: unknown): Promise<number | undefined> {
    checkRoot(this.#context, table)
    const { sequence } = table
    const given = checkRow(table, input, { withSequence: false, withUnknown: true })
    this.#checkGroup(table, given)
    let key: WrittenKey | undefined
    let before: FoundRow | undefined
    if (sequence?.isInKey !== true) {
      key = encodeKey(table, given)
      before = await this.#find(table, key)
      if (before !== undefined && !before.isExpired) throw this.#exists(key.bytes)
    }
    if (sequence === undefined) {
      await this.#change(table, before, wholeRow(table, given), key)
      return undefined
    }
    // Drawn with the first write only: a refused insert takes no number.
    const allocation = this.#transaction.allocationCount
    const number: ComingNumber = { kind: 'coming-number', allocation }
    given[sequence.name] = number
    await this.#change(table, before, wholeRow(table, given), key)
    return allocation
  }

  /** The whole row anew, whether or not there was one; its sequence stays. */
  put(table: CompiledTable, input: unknown): Promise<void> {
    checkRoot(this.#context, table)
    const { sequence } = table
    const withSequence = sequence?.isInKey === true
    // Reads the input once: it may give another value at the next look.
    const completion = { withSequence, withUnknown: !table.keepsUnknown }
    const named = checkRow(table, input, completion)
    const row = table.keepsUnknown ? withUnknown(table, named, completion) : named
    this.#checkGroup(table, row)
    const isBlind = !isIndexed(table) && sequence === undefined && !table.keepsUnknown
    return isBlind
      ? this.#change(table, undefined, wholeRow(table, row))
      : this.#replace(table, row, named)
  }

  /** `named`: the row without what the program neither declares nor names. */
  async #replace(table: CompiledTable, row: Values, named: Values): Promise<void> {
    const { sequence } = table
    const before = await this.#find(table, encodeKey(table, row))
    if (before !== undefined && !before.isExpired) {
      const { bytes } = before
      if (table.keepsUnknown || holdsUnknown(table, bytes))
        return this.#change(table, before, replacing(table, before, named))
      if (sequence === undefined) return this.#change(table, before, wholeRow(table, row))
      const number = before.row[sequence.name]
      return this.#change(table, before, wholeRow(table, { ...row, [sequence.name]: number }))
    }
    if (sequence === undefined) return this.#change(table, before, wholeRow(table, row))
    const message = `table ${table.name}: there is no ${keyInWords(this.#context, encodeKey(table, row).bytes)} to be replaced, and a new row gets its ${sequence.name} by insert`
    throw new StoreError('not-found', message)
  }

  async update(table: CompiledTable, key: unknown, patch: unknown): Promise<void> {
    const { bytes, values } = encodeRowKey(this.#context, table, key)
    const changes = checkPatch(table, patch)
    const stored = await this.#transaction.get(bytes)
    if (stored === undefined || (await this.#isExpired(table, values, stored))) {
      const message = `there is no ${keyInWords(this.#context, bytes)} to be updated`
      throw new StoreError('not-found', message)
    }
    const value = encodeChanged(stored.value, changes)
    const after = { row: decodeRow(table, values, value.bytes), bytes: value.bytes }
    await this.#changeEntries(table, rowAt(table, values, stored.value), after)
    this.#transaction.put(bytes, value.bytes, value.slots)
    this.#noteExpiry(table)
  }

  /** No row of the key is left; whether there was one is not said. Rows below it go as their tables say. */
  async delete(table: CompiledTable, key: unknown): Promise<void> {
    const { bytes, values } = encodeRowKey(this.#context, table, key)
    await this.deleteAt(table, bytes, values)
  }

  /** The same by the key's bytes, which are those of its parts. */
  async deleteAt(
    table: CompiledTable,
    bytes: Uint8Array,
    values: readonly unknown[],
  ): Promise<void> {
    const below = await findBelow(this.#transaction, this.#context, keptBy(table), bytes)
    await this.#checkHeld(bytes, [table, ...below.map((one) => one.table)])
    const isFree = below.every((one) => this.#free.has(one.table.name))
    assert(isFree && this.#free.has(table.name), 'HOLD-1: a row goes that may be held')
    await this.#deleteOne(table, bytes, values)
    try {
      for (const one of below) await this.#deleteBelow(one)
    } catch (error) {
      if (!(error instanceof StoreError) || error.code !== 'too-large') throw error
      throw tooManyBelow(keyInWords(this.#context, bytes), below.length, error.message)
    }
  }

  /** Deletes it, and has no read show it as it was before (PURGE-1); also where it is deleted already. */
  async purge(table: CompiledTable, key: unknown): Promise<void> {
    const { bytes, values } = encodeRowKey(this.#context, table, key)
    await this.deleteAt(table, bytes, values)
    const left = await this.#transaction.get(bytes)
    assert(left === undefined, 'PURGE-1: a row that is purged is gone')
    const what = keyInWords(this.#context, bytes)
    this.#transaction.put(purgeNoteKey, Buffer.from(`purged ${what}`))
  }

  /** HOLD-1: of the row and of those that go with it. */
  async #checkHeld(bytes: Uint8Array, tables: readonly CompiledTable[]): Promise<void> {
    const names = new Set(tables.map(({ name }) => name).filter((name) => !this.#free.has(name)))
    if (names.size === 0) return
    const scopes: readonly HoldScope[] = [
      ['group'],
      ...[...names].map((name) => ['table', name] as const),
    ]
    const holds = await this.#transaction.getMany(scopes.map(holdKey))
    refuseHeld(keyInWords(this.#context, bytes), holds, ([kind, name]) =>
      kind === 'table' ? `table ${name} of its group` : 'its group',
    )
    for (const name of names) this.#free.add(name)
  }

  async #deleteBelow({ table, values, stored }: RowBelow): Promise<void> {
    await this.#changeEntries(table, rowAt(table, values, stored.value), undefined)
    this.#transaction.delete(stored.key)
  }

  async #deleteOne(
    table: CompiledTable,
    bytes: Uint8Array,
    values: readonly unknown[],
  ): Promise<void> {
    if (isIndexed(table)) {
      const stored = await this.#transaction.get(bytes)
      if (stored === undefined) return
      await this.#changeEntries(table, rowAt(table, values, stored.value), undefined)
    }
    this.#transaction.delete(bytes)
  }

  async #find(table: CompiledTable, { bytes, values }: WrittenKey): Promise<FoundRow | undefined> {
    const stored = await this.#transaction.get(bytes)
    if (stored === undefined) return undefined
    const isExpired = await this.#isExpired(table, values, stored)
    return { ...rowAt(table, values, stored.value), isExpired }
  }

  /** Then no read sees the row; its entries are there until it is written anew, or removed. */
  async #isExpired(
    table: CompiledTable,
    values: readonly unknown[],
    stored: StoredRow,
  ): Promise<boolean> {
    if (table.expiry === undefined) return false
    const { asOf } = await this.#transaction.view()
    return isGone({ table, values, stored }, asOf)
  }

  /** The worker that removes expired rows finds the group by this note. */
  #noteExpiry(table: CompiledTable): void {
    if (table.expiry !== undefined) this.#transaction.put(expiryNote, Uint8Array.of(1))
  }

  async #change(
    table: CompiledTable,
    before: WholeRow | undefined,
    { row, value }: NewRow,
    key: WrittenKey = encodeKey(table, row),
  ): Promise<void> {
    const slots = [...key.slots, ...value.slots]
    if (key.bytes.length > keyBytesMax) throw tooLong(key.bytes, `a key of table ${table.name}`)
    const kept = keptBy(table)
    const [old, now] = [rowFor(table, before), rowFor(table, { row, bytes: value.bytes })]
    const changes = buildChanges(kept, old, now)
    if (kept.isUnique) await this.#checkUniques(kept, changes)
    const globals = buildGlobalChanges(kept, old, now)
    if (slots.length > 0) this.#transaction.allocate(table.number)
    this.#writeEntries(changes, globals)
    this.#transaction.put(key.bytes, value.bytes, slots)
    this.#noteExpiry(table)
  }

  /** All is checked before anything is written: a refused change leaves nothing of itself. */
  async #changeEntries(
    table: CompiledTable,
    before: WholeRow,
    after: WholeRow | undefined,
  ): Promise<void> {
    const kept = keptBy(table)
    const [old, now] = [rowFor(table, before), rowFor(table, after)]
    const changes = buildChanges(kept, old, now)
    if (kept.isUnique) await this.#checkUniques(kept, changes)
    this.#writeEntries(changes, buildGlobalChanges(kept, old, now))
  }

  async #checkUniques(table: CompiledTable, changes: readonly EntryChange[]): Promise<void> {
    for (const { index, old, now } of changes) {
      if (index.isUnique) await this.#checkUnique(table, index, old, now)
    }
  }

  #writeEntries(changes: readonly EntryChange[], globals: readonly WorklistRow[]): void {
    for (const { key, value, slots, isGone } of globals) {
      if (isGone) this.#transaction.putRemoval(key, value)
      else this.#transaction.put(key, value, slots)
    }
    for (const { index, old, now } of changes) {
      for (const [key, entry] of old) {
        if (!now.has(key) && fitsIndex(index, entry)) this.#transaction.delete(entry.key)
      }
      for (const [key, entry] of now) {
        const same = old.get(key)
        if ((same !== undefined && isSameEntry(same, entry)) || !fitsIndex(index, entry)) continue
        this.#transaction.put(entry.key, entry.value, entry.slots)
      }
    }
  }

  async #checkUnique(
    table: CompiledTable,
    index: CompiledIndex,
    old: ReadonlyMap<string, Entry>,
    now: ReadonlyMap<string, Entry>,
  ): Promise<void> {
    for (const [key, entry] of now) {
      // A number that is still to come is no other row's, and rows without a value share none.
      if (old.has(key) || entry.isNumbered || entry.values.includes(undefined)) continue
      const prefix = entry.key.subarray(0, entry.uniqueBytes)
      if (this.#transaction.hasUnplacedUnder(prefix)) throw notUnique(index, table)
      if (await this.#hasOther(table, prefix)) throw notUnique(index, table)
    }
  }

  /** Is there an entry that begins so, of a row that has not expired? */
  async #hasOther(table: CompiledTable, prefix: Uint8Array): Promise<boolean> {
    const range = prefixRange(prefix)
    if (table.expiry === undefined) {
      return (await this.#transaction.scan({ ...range, limit: 1 })).rows.length > 0
    }
    for (const { key } of (await this.#transaction.scan(range)).rows) {
      const schema = { ...this.#context.schema, indexByNumber: numbered(table.indexes) }
      const entry = present(
        decodeEntryKey({ ...this.#context, schema }, key),
        'IDX-1: an entry names its row',
      )
      const stored = await this.#transaction.get(entry.rowKey)
      if (stored === undefined || !(await this.#isExpired(table, entry.values, stored))) return true
    }
    return false
  }

  #checkGroup(table: CompiledTable, row: Values): void {
    for (let place = 0; place < table.groupPartCount; place++) {
      checkOfGroup(this.#context, table, place, row[table.key[place]?.name ?? ''])
    }
  }

  #exists(key: Uint8Array): StoreError {
    const message = `${keyInWords(this.#context, key)} exists already; put replaces it, update changes it`
    return new StoreError('already-exists', message)
  }
}

interface FoundRow extends WholeRow {
  readonly isExpired: boolean
}

function numbered(indexes: readonly CompiledIndex[]): ReadonlyMap<number, CompiledIndex> {
  return new Map(indexes.map((index) => [index.number, index]))
}

/** A row that is to be written, and as it is stored. */
interface NewRow {
  readonly row: Values
  readonly value: StoredValue
}

function wholeRow(table: CompiledTable, row: Values): NewRow {
  return { row, value: encodeRow(table, row) }
}

/** Properties that the program does not declare, and does not name, are as they were before. */
function replacing(table: CompiledTable, before: WholeRow, named: Values): NewRow {
  const { sequence } = table
  const number = sequence && { [sequence.name]: before.row[sequence.name] }
  const given = { ...named, ...number }
  const value = encodeReplaced(table, before.bytes, given)
  const key = table.key.map(({ name }) => readField(given, name))
  return { row: decodeRow(table, key, value.bytes), value }
}

function rowAt(table: CompiledTable, key: readonly unknown[], bytes: Uint8Array): WholeRow {
  return { row: decodeRow(table, key, bytes), bytes }
}

/** A row's entries in an index, before and after a change. */
interface EntryChange {
  readonly index: CompiledIndex
  readonly old: ReadonlyMap<string, Entry>
  readonly now: ReadonlyMap<string, Entry>
}

/** Whether a change of a row has to know what was there before. */
function isIndexed(table: CompiledTable): boolean {
  const { indexes, globals } = keptBy(table)
  return indexes.length > 0 || globals.length > 0
}

function buildChanges(
  table: CompiledTable,
  before: Values | undefined,
  after: Values | undefined,
): readonly EntryChange[] {
  return table.indexes.map((index) => {
    assert(index.table === table.name, 'IDX-1: a row has entries in indexes of its table')
    const old = before === undefined ? noEntries : buildEntries(table, index, before)
    const now = after === undefined ? noEntries : buildEntries(table, index, after)
    for (const [key, entry] of now) {
      // A row of before the index may have values that are too long for it, and keeps them.
      if (old.has(key) || fitsIndex(index, entry)) continue
      throw tooLong(entry.key, `an entry of index ${index.name}`)
    }
    return { index, old, now }
  })
}

interface WrittenKey {
  readonly bytes: Uint8Array
  readonly slots: readonly SequenceSlot[]
  readonly values: readonly unknown[]
}

function encodeKey(table: CompiledTable, row: Values): WrittenKey {
  const values = table.key.map(({ name }) => row[name])
  const { bytes, slots } = writeRowKey(table, values)
  return { bytes, slots, values }
}
