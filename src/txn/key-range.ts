/** Ranges of keys inside a group: half open, both bounds given. */
import { present } from '../base/assert.ts'
import { compareBytes } from '../base/bytes.ts'
import { afterPrefix } from '../base/tuple.ts'
import type { KeyRange } from '../group/outcome.ts'

/** The first key after `key`. */
export function keyAfter(key: Uint8Array): Uint8Array {
  const next = Buffer.alloc(key.length + 1)
  next.set(key)
  return next
}

/** Every key that starts with `prefix`, which is not empty and not all 0xff. */
export function prefixRange(prefix: Uint8Array): KeyRange {
  return { gte: prefix, lt: present(afterPrefix(prefix), 'TXN-2: a prefix has an end') }
}

export function isEmptyRange({ gte, lt }: KeyRange): boolean {
  return compareBytes(gte, lt) >= 0
}

export function isInRange(key: Uint8Array, { gte, lt }: KeyRange): boolean {
  return compareBytes(gte, key) <= 0 && compareBytes(key, lt) < 0
}

export function doRangesMeet(a: KeyRange, b: KeyRange): boolean {
  return compareBytes(a.gte, b.lt) < 0 && compareBytes(b.gte, a.lt) < 0
}
