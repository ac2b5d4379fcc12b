/**
 * A transaction over the bytes of one group: reads at one view, writes kept until commit, own writes
 * visible to own reads. Everything read is remembered, so that the commit can be validated (TXN-1,
 * TXN-2). Knows no schema. Reads that were called after a write see it once that write is awaited.
 */
import { assert } from '../base/assert.ts'
import { StoreError } from '../base/errors.ts'
import { keyBytesMax } from '../base/limits.ts'
import type { GroupId } from '../base/ids.ts'
import type { Intent, Submission } from '../group/replica-port.ts'
import type { SequenceSlot } from '../group/transaction.ts'
import type { TransactionLimits } from './limits.ts'
import type { View } from '../group/group-port.ts'
import { type KeyRange } from '../group/outcome.ts'
import { isInRange, keyAfter } from './key-range.ts'
import { mergeWrites, toStoredRow } from './merge-writes.ts'
import { ReadSet } from './read-set.ts'
import type { PortReads, Reads, ScanPage, ScanRange, StoredRow } from './reads.ts'
import type { Turn } from './turn.ts'
import { unknownNumber, WriteSet } from './write-set.ts'

export class RawTransaction implements Reads {
  readonly group: GroupId
  /** Whether callers may still use this handle, and the calls that use it now. */
  readonly turn: Turn
  readonly #rows: PortReads
  readonly #limits: TransactionLimits
  readonly #reads = new ReadSet()
  readonly #writes = new WriteSet()
  /** A limit that was hit: part of a change may be missing, so nothing of it is committed. */
  #refused: StoreError | undefined
  #takesPosition = false

  constructor(rows: PortReads, limits: TransactionLimits, turn: Turn) {
    this.group = rows.group
    this.turn = turn
    this.#rows = rows
    this.#limits = limits
  }

  view(): Promise<View> {
    return this.turn.take(() => this.#rows.view())
  }

  async get(key: Uint8Array): Promise<StoredRow | undefined> {
    const [row] = await this.getMany([key])
    return row
  }

  getMany(keys: readonly Uint8Array[]): Promise<readonly (StoredRow | undefined)[]> {
    return this.turn.take(() => {
      if (this.#writes.count === 0) return this.#getOthers(keys)
      return this.#getMerged(keys)
    })
  }

  async #getOthers(keys: readonly Uint8Array[]): Promise<readonly (StoredRow | undefined)[]> {
    for (const key of keys) this.#reads.addKey(key)
    this.#checkLimits()
    const rows = await this.#rows.getMany(keys)
    for (const [index, key] of keys.entries()) {
      if (rows[index] === undefined) this.#reads.addAbsent(key)
    }
    return rows
  }

  async #getMerged(keys: readonly Uint8Array[]): Promise<readonly (StoredRow | undefined)[]> {
    const own = keys.map((key) => this.#writes.get(key))
    const others = keys.filter((_, index) => own[index] === undefined)
    const found = others.length === 0 ? [] : await this.#getOthers(others)
    const rest = found.values()
    return own.map((write) => (write === undefined ? rest.next().value : toStoredRow(write)))
  }

  scan(range: ScanRange): Promise<ScanPage> {
    return this.turn.take(async () => {
      if (range.limit !== undefined && (!Number.isInteger(range.limit) || range.limit < 1)) {
        throw new StoreError('invalid', `limit is ${range.limit}; expected a whole number from 1`)
      }
      const ascending = this.#writes.inRange(range)
      const own = range.reverse === true ? ascending.toReversed() : ascending
      const { page, seen } = await this.#merged(range, own)
      this.#reads.addRange(seen)
      this.#checkLimits()
      if (this.#writes.hasUnplacedIn(seen)) throw unknownNumber()
      return page
    })
  }

  /**
   * Rows of a range at the view, own writes aside, none of which count as read. The caller may not
   * rest its writes on what is absent. It rests only on those rows that it names to `relyOn`.
   */
  peek(range: ScanRange): Promise<ScanPage> {
    return this.turn.take(() => this.#rows.scan(range))
  }

  /** These keys count as read. */
  relyOn(keys: readonly Uint8Array[]): void {
    this.turn.check()
    for (const one of keys) this.#reads.addKey(one)
    this.#checkLimits()
  }

  /** The rows, and the range that they were all of: to the last one where the limit cut it off. */
  async #merged(
    range: ScanRange,
    own: ReturnType<WriteSet['inRange']>,
  ): Promise<{ readonly page: ScanPage; readonly seen: KeyRange }> {
    const { gte, lt, limit } = range
    // Each own write can take one of the rows asked for away.
    const asked = limit === undefined ? range : { ...range, limit: limit + own.length }
    const found = await this.#rows.scan(asked)
    const within = found.isWhole ? own : own.filter(({ key }) => isBefore(range, key, found.rows))
    const rows: StoredRow[] = []
    for (const row of mergeWrites(found.rows, within, range)) {
      if (row === undefined) continue
      rows.push(row)
      if (rows.length === limit) {
        assert(isInRange(row.key, range), 'TXN-2: a scan shows rows of its range only')
        return { page: { rows, isWhole: false }, seen: upTo(range, row.key) }
      }
    }
    assert(found.isWhole, 'TXN-2: a scan that is cut off has as many rows as its limit')
    return { page: { rows, isWhole: true }, seen: { gte, lt } }
  }

  /** Writes a row; `slots` are filled in with allocated numbers at commit. */
  put(key: Uint8Array, value: Uint8Array, slots: readonly SequenceSlot[] = []): void {
    this.turn.check()
    checkKey(key)
    const isNew = this.#isNew(key, slots) ? true : undefined
    this.#writes.add({ key, value, slots: slots.length === 0 ? undefined : slots, isNew })
    this.#checkLimits()
  }

  /** A row that says that something goes: there may be more of these than of what is written. */
  putRemoval(key: Uint8Array, value: Uint8Array): void {
    this.turn.check()
    checkKey(key)
    this.#writes.add({ key, value, slots: undefined, isNew: undefined }, true)
    this.#checkLimits()
  }

  /** Validation keeps what was read absent absent, and no row had a number before that is drawn now. */
  #isNew(key: Uint8Array, slots: readonly SequenceSlot[]): boolean {
    return this.#reads.isAbsent(key) || slots.some(({ at }) => at === 'key')
  }

  delete(key: Uint8Array): void {
    this.turn.check()
    checkKey(key)
    this.#writes.add({ key })
    this.#checkLimits()
  }

  /**
   * Has the transaction take a position of the log though it writes nothing. A value that some voter
   * accepted there before, and that is not known to be chosen, is applied first or never.
   */
  takePosition(): void {
    this.turn.check()
    this.#takesPosition = true
  }

  /** Draws a number of the group's counter at commit; gives its index among the numbers. */
  allocate(counter: number): number {
    this.turn.check()
    return this.#writes.allocate(counter)
  }

  /** How many numbers are drawn so far: the index of the next one. */
  get allocationCount(): number {
    return this.#writes.allocations.length
  }

  /** Is a key written that begins so, and ends with a number that is not known yet? */
  hasUnplacedUnder(prefix: Uint8Array): boolean {
    return this.#writes.hasUnplacedUnder(prefix)
  }

  /** The submission to be committed; undefined, and the view unopened, when there is nothing to commit. */
  async submission(readIntent: () => Intent, attempt: number): Promise<Submission | undefined> {
    assert(this.turn.isOver, 'TXN-4: what is committed changes no more')
    if (this.#refused !== undefined) throw this.#refused
    if (this.#writes.count === 0 && !this.#takesPosition) return undefined
    const opened = this.#rows.openedView()
    const view = opened instanceof Promise ? await opened : opened
    const hasRead = this.#reads.count > 0
    assert(!hasRead || view !== undefined, 'TXN-1: what was read was read at a view')
    return {
      group: this.group,
      intent: readIntent(),
      attempt,
      readPosition: view?.position ?? 0,
      reads: this.#reads.keys(),
      ranges: this.#reads.ranges(),
      allocations: this.#writes.allocations,
      mutations: this.#writes.mutations(),
    }
  }

  #checkLimits(): void {
    const { transactionReadsMax, transactionMutationsMax, transactionBytesMax } = this.#limits
    const { submissionMutationsMax } = this.#limits
    const reads = this.#reads.count
    const { written, count } = this.#writes
    const bytes = this.#reads.bytes + this.#writes.bytes
    if (reads > transactionReadsMax) throw this.#tooLarge('transactionReadsMax', reads)
    if (written > transactionMutationsMax) throw this.#tooLarge('transactionMutationsMax', written)
    if (count > submissionMutationsMax) throw this.#tooLarge('submissionMutationsMax', count)
    if (bytes > transactionBytesMax) throw this.#tooLarge('transactionBytesMax', bytes)
  }

  #tooLarge(limit: keyof TransactionLimits, actual: number): StoreError {
    const limitValue = this.#limits[limit]
    const message = `this transaction is too large: ${actual}, ${limit} is ${limitValue}; do it in several`
    this.#refused ??= new StoreError('too-large', message, { limit, limitValue, actual })
    return this.#refused
  }
}

function checkKey({ length: actual }: Uint8Array): void {
  if (actual <= keyBytesMax) return
  const message = `a key of ${actual} bytes is too large; keyBytesMax is ${keyBytesMax}`
  const detail = { limit: 'keyBytesMax', limitValue: keyBytesMax, actual }
  throw new StoreError('too-large', message, detail)
}

/** Does a scan come to `key` no later than to the last of `rows`? */
function isBefore(range: ScanRange, key: Uint8Array, rows: readonly StoredRow[]): boolean {
  const last = rows.at(-1)
  return last !== undefined && isInRange(key, upTo(range, last.key))
}

function upTo({ gte, lt, reverse = false }: ScanRange, last: Uint8Array): KeyRange {
  return reverse ? { gte: last, lt } : { gte, lt: keyAfter(last) }
}
