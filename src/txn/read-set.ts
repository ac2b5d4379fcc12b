/**
 * The reads of a transaction: keys, absent ones included, and ranges. A later write to any of it before the
 * commit is a conflict (TXN-1, TXN-2), so nothing that was seen may be missing here.
 */
import { compareBytes, latin1 } from '../base/bytes.ts'
import { type KeyRange } from '../group/outcome.ts'
import { isEmptyRange } from './key-range.ts'

export class ReadSet {
  readonly #keys = new Map<string, Uint8Array>()
  /** Of the keys, those under which there was no row. */
  readonly #absent = new Set<string>()
  #ranges: KeyRange[] = []
  #bytes = 0

  addKey(key: Uint8Array): void {
    const text = latin1(key)
    if (this.#keys.has(text)) return
    this.#keys.set(text, key)
    this.#bytes += key.length
  }

  /** Notes that a read found nothing under a key. */
  addAbsent(key: Uint8Array): void {
    this.#absent.add(latin1(key))
  }

  isAbsent(key: Uint8Array): boolean {
    return this.#absent.size > 0 && this.#absent.has(latin1(key))
  }

  addRange(range: KeyRange): void {
    if (isEmptyRange(range)) return
    this.#ranges.push(range)
    this.#bytes += range.gte.length + range.lt.length
    // Pages of one scan join up: only what is apart counts.
    const before = this.#ranges.at(-2)
    if (before !== undefined && doTouch(before, range)) this.#join()
  }

  get count(): number {
    return this.#keys.size + this.#ranges.length
  }

  get bytes(): number {
    return this.#bytes
  }

  keys(): readonly Uint8Array[] {
    return [...this.#keys.values()]
  }

  /** In order, apart from one another. */
  ranges(): readonly KeyRange[] {
    this.#join()
    return this.#ranges
  }

  #join(): void {
    const joined: KeyRange[] = []
    for (const range of this.#ranges.sort((a, b) => compareBytes(a.gte, b.gte))) {
      const last = joined.at(-1)
      if (last === undefined || !doTouch(last, range)) joined.push(range)
      else joined[joined.length - 1] = { gte: last.gte, lt: later(last.lt, range.lt) }
    }
    this.#ranges = joined
  }
}

function doTouch(a: KeyRange, b: KeyRange): boolean {
  return compareBytes(a.gte, b.lt) <= 0 && compareBytes(b.gte, a.lt) <= 0
}

function later(a: Uint8Array, b: Uint8Array): Uint8Array {
  return compareBytes(a, b) < 0 ? b : a
}
