/**
 * Keys in order, and kept so while some come and others go. Sorting all of them again for each scan
 * costs more than the scan: there may be a hundred thousand, and one that is new.
 */
import { assert } from '../base/assert.ts'
import { compareText } from '../base/bytes.ts'

export class KeyOrder {
  readonly #sorted: string[]
  /** Those that came since somebody looked, in no order. */
  #added: string[] = []

  constructor(keys: Iterable<string>) {
    this.#sorted = [...keys].sort(compareText)
  }

  /** More have come than there were, and nobody has looked: sorting all is as well, if ever. */
  get isOutgrown(): boolean {
    return this.#added.length > this.#sorted.length
  }

  /** A key that is not here. */
  add(key: string): void {
    this.#added.push(key)
  }

  /** Keys that are here, in order. */
  remove(keys: readonly string[]): void {
    const sorted = this.#inOrder()
    let gone = 0
    let left = 0
    for (const key of sorted) {
      if (key === keys[gone]) gone += 1
      else sorted[left++] = key
    }
    assert(gone === keys.length, 'replica: a key to be removed is not there')
    sorted.length = left
  }

  /** Good until the next change. */
  keys(): readonly string[] {
    return this.#inOrder()
  }

  #inOrder(): string[] {
    if (this.#added.length > 0) insertAll(this.#sorted, this.#added.sort(compareText))
    this.#added = []
    return this.#sorted
  }
}

/** From the end on, so that each key behind the first one that is added moves once. */
function insertAll(sorted: string[], added: readonly string[]): void {
  let end = sorted.length
  for (const key of added) sorted.push(key)
  for (let left = added.length; left > 0; left--) {
    const key = added[left - 1] ?? ''
    const at = firstAbove(sorted, end, key)
    for (let from = end - 1; from >= at; from--) sorted[from + left] = sorted[from] ?? ''
    sorted[at + left - 1] = key
    end = at
  }
}

/** Among the first `end`. */
function firstAbove(sorted: readonly string[], end: number, key: string): number {
  let low = 0
  let high = end
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((sorted[middle] ?? '') < key) low = middle + 1
    else high = middle
  }
  return low
}
