/**
 * Which parts of a store may hold keys of some spans: LevelDB looks into a table for a key between the
 * table's first and last one, and there into the one block that its index names, if its filter lets it.
 */
import { compareBytes } from '../base/bytes.ts'
import type { KeySpan } from '../ports/storage.ts'
import type { IndexEntry } from './level-format.ts'

/** The first and the last key of a table. */
export interface Extent {
  readonly first: Uint8Array
  readonly last: Uint8Array
}

/** Behind each key LevelDB writes eight bytes of its own: which write it was, and of which kind. */
const ownBytes = 8

export function userKey(internal: Uint8Array): Uint8Array {
  return internal.subarray(0, Math.max(0, internal.length - ownBytes))
}

export function isConcerned({ first, last }: Extent, spans: readonly KeySpan[]): boolean {
  return spans.some(({ gte, lt }) => compareBytes(last, gte) >= 0 && compareBytes(first, lt) < 0)
}

/** The entries of an index whose blocks may hold such keys. */
export function concerned(
  entries: readonly IndexEntry[],
  spans: readonly KeySpan[],
): readonly IndexEntry[] {
  return entries.filter(({ key }, at) => {
    const before = entries[at - 1]
    // One key may have versions in both blocks.
    const first = before === undefined ? new Uint8Array() : userKey(before.key)
    return isConcerned({ first, last: userKey(key) }, spans)
  })
}
