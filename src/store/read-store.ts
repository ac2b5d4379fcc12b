/** Reading a store or a journal that may notice damage by itself: its errors become those of our own checks. */
import { StoreError } from '../base/errors.ts'
import type { KeyValue, OrderedStore, Range } from '../ports/storage.ts'

/** Makes the error of a store out of what is damaged, and the cause. */
export type Corrupt = (what: string, cause?: unknown) => Error

/** The rows of a range as of the call, as `OrderedStore.scan` gives them. */
export function scanRows(
  store: OrderedStore,
  range: Range,
  corrupt: Corrupt,
): AsyncIterable<readonly KeyValue[]> {
  return checkedScan(store.scan(range), corrupt)
}

/** The chunks of a scan that is under way; damage rejects with the error that `corrupt` makes. */
export function checkedScan<Row>(
  rows: AsyncIterable<readonly Row[]>,
  corrupt: Corrupt,
): AsyncIterable<readonly Row[]> {
  return new CheckedScan(rows, corrupt, (chunk) => chunk)
}

/** The same, each chunk as what `read` makes of it. */
export function scanAs<To>(
  store: OrderedStore,
  range: Range,
  corrupt: Corrupt,
  read: (rows: readonly KeyValue[]) => readonly To[],
): AsyncIterable<readonly To[]> {
  return new CheckedScan(store.scan(range), corrupt, read)
}

/** An object and not a generator: every generator on the way adds its turns to each chunk. */
class CheckedScan<Row, To> implements AsyncIterableIterator<readonly To[]> {
  readonly #rows: AsyncIterator<readonly Row[]>
  readonly #corrupt: Corrupt
  readonly #read: (rows: readonly Row[]) => readonly To[]

  constructor(
    rows: AsyncIterable<readonly Row[]>,
    corrupt: Corrupt,
    read: (rows: readonly Row[]) => readonly To[],
  ) {
    this.#rows = rows[Symbol.asyncIterator]()
    this.#corrupt = corrupt
    this.#read = read
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async next(): Promise<IteratorResult<readonly To[], undefined>> {
    const { done, value } = await this.#next()
    if (done === true) return atEnd
    try {
      return { done: false, value: this.#read(value) }
    } catch (error) {
      await this.return()
      throw error
    }
  }

  async #next(): Promise<IteratorResult<readonly Row[]>> {
    try {
      return await this.#rows.next()
    } catch (error) {
      throw isDamage(error) ? this.#corrupt('it cannot be read', error) : error
    }
  }

  async return(): Promise<IteratorResult<readonly To[], undefined>> {
    await this.#rows.return?.()
    return atEnd
  }
}

const atEnd = { done: true, value: undefined } as const

/** The value; undefined when there is none; `damaged` when the store says so. */
export function getChecked(
  store: OrderedStore,
  key: Uint8Array,
): Uint8Array | 'damaged' | undefined {
  return checkedRead(() => store.getSync(key))
}

/** The same of any read. */
export function checkedRead(
  read: () => Uint8Array | undefined,
): Uint8Array | 'damaged' | undefined {
  try {
    return read()
  } catch (error) {
    // Damage that the store noticed is the same as damage that a CRC of ours would have shown.
    if (isDamage(error)) return 'damaged'
    throw error
  }
}

function isDamage(error: unknown): boolean {
  return error instanceof StoreError && error.code === 'corrupt'
}
