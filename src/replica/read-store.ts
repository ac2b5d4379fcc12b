/** Reading a store that may notice damage by itself: what it says is put as our own checks put it. */
import { StoreError } from '../base/errors.ts'
import type { KeyValue, OrderedStore, Range } from '../ports/storage.ts'

/** Makes the error of a store out of what is damaged, and the cause. */
export type Corrupt = (what: string, cause?: unknown) => Error

/** The rows of a range as of the first step, which is taken at once when it is asked for. */
export async function* scanRows(
  store: OrderedStore,
  range: Range,
  corrupt: Corrupt,
): AsyncIterable<KeyValue> {
  try {
    yield* store.scan(range)
  } catch (error) {
    throw isDamage(error) ? corrupt('it cannot be read', error) : error
  }
}

/** The value; undefined when there is none; `damaged` when the store says so. */
export function getChecked(
  store: OrderedStore,
  key: Uint8Array,
): Uint8Array | 'damaged' | undefined {
  try {
    return store.getSync(key)
  } catch (error) {
    // Damage that the store noticed is the same as damage that a CRC of ours would have shown.
    if (isDamage(error)) return 'damaged'
    throw error
  }
}

function isDamage(error: unknown): boolean {
  return error instanceof StoreError && error.code === 'corrupt'
}
