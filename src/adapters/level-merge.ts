/**
 * The rows of a store out of its parts: tables that overlap, and journals. Of a key's versions the one of the last
 * write counts. The merge opens a part when it comes to the part's first key, so it has few of them open at once.
 */
import { compareBytes } from '../base/bytes.ts'
import type { KeyValue } from '../ports/storage.ts'
import type { KeyVersion, ViewRange } from './level-table-view.ts'

/** A part of a store, in the order of its keys. */
export interface Source {
  /** Its first and its last key. */
  readonly first: Uint8Array
  readonly last: Uint8Array
  versions(range: ViewRange): Iterator<KeyVersion, undefined>
}

interface Open {
  readonly versions: Iterator<KeyVersion, undefined>
  head: KeyVersion
}

/** The rows of a range, in order, or backwards. */
export function* mergeVersions(
  sources: readonly Source[],
  range: ViewRange,
): Generator<KeyValue, undefined> {
  const merge = new Merge(sources, range)
  for (;;) {
    const newest = merge.next()
    if (newest === undefined) return undefined
    const { key, value } = newest
    if (value !== undefined) yield { key, value }
  }
}

class Merge {
  readonly #range: ViewRange
  /** Not open yet, the one that comes next last. */
  readonly #waiting: Source[]
  readonly #open: Open[] = []

  constructor(sources: readonly Source[], range: ViewRange) {
    this.#range = range
    const { gte, lt } = range
    const isAsked = ({ first, last }: Source): boolean =>
      (gte === undefined || compareBytes(last, gte) >= 0) &&
      (lt === undefined || compareBytes(first, lt) < 0)
    this.#waiting = sources
      .filter(isAsked)
      .sort((one, other) => this.#compare(this.#opening(other), this.#opening(one)))
  }

  /** The newest version of the next key; undefined at the end of the range. */
  next(): KeyVersion | undefined {
    const lowest = this.#lowest()
    if (lowest === undefined || this.#isBeyond(lowest)) return undefined
    let newest: KeyVersion | undefined
    for (let at = this.#open.length - 1; at >= 0; at--) {
      for (let one = this.#take(at, lowest); one !== undefined; one = this.#take(at, lowest)) {
        if (newest === undefined || one.sequence > newest.sequence) newest = one
      }
    }
    return newest
  }

  /** Takes the part's head, if that is of the key; at its end the part goes. */
  #take(at: number, key: Uint8Array): KeyVersion | undefined {
    const open = this.#open[at]
    if (open === undefined || compareBytes(open.head.key, key) !== 0) return undefined
    const { head } = open
    const { done, value } = open.versions.next()
    if (done === true) this.#open.splice(at, 1)
    else open.head = value
    return head
  }

  /** The key that comes next, with every part open that may have it. */
  #lowest(): Uint8Array | undefined {
    let lowest: Uint8Array | undefined
    const note = (key: Uint8Array): void => {
      if (lowest === undefined || this.#compare(key, lowest) < 0) lowest = key
    }
    for (const { head } of this.#open) note(head.key)
    for (let next = this.#waiting.at(-1); next !== undefined; next = this.#waiting.at(-1)) {
      if (lowest !== undefined && this.#compare(this.#opening(next), lowest) > 0) break
      this.#waiting.pop()
      const versions = next.versions(this.#range)
      const { done, value } = versions.next()
      if (done === true) continue
      this.#open.push({ versions, head: value })
      note(value.key)
    }
    return lowest
  }

  #opening({ first, last }: Source): Uint8Array {
    return this.#range.reverse === true ? last : first
  }

  #compare(one: Uint8Array, other: Uint8Array): number {
    return this.#range.reverse === true ? compareBytes(other, one) : compareBytes(one, other)
  }

  #isBeyond(key: Uint8Array): boolean {
    const { gte, lt, reverse } = this.#range
    if (reverse === true) return gte !== undefined && compareBytes(key, gte) < 0
    return lt !== undefined && compareBytes(key, lt) >= 0
  }
}
