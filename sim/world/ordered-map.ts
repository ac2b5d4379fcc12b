/**
 * A map in key order for the simulated disk: point operations as fast as a Map's, and beside it the
 * keys in order, in short lists, so that a key that comes or goes moves a few others only.
 */
import { assert } from '../../src/base/assert.ts'

/** Keys of a list; one that has more is halved. */
const listKeysMax = 128

/** Absent bounds are open. */
export interface KeyRange {
  readonly gte?: string | undefined
  readonly gt?: string | undefined
  readonly lt?: string | undefined
  readonly reverse?: boolean
  readonly limit?: number | undefined
}

export class OrderedMap<Value> {
  readonly #values = new Map<string, Value>()
  /** None of them is empty. */
  #lists: string[][] = []

  get size(): number {
    return this.#values.size
  }

  get(key: string): Value | undefined {
    return this.#values.get(key)
  }

  set(key: string, value: Value): void {
    const { size } = this.#values
    this.#values.set(key, value)
    if (this.#values.size > size) this.#insert(key)
  }

  delete(key: string): boolean {
    const isThere = this.#values.delete(key)
    if (isThere) this.#remove(key)
    return isThere
  }

  clear(): void {
    this.#values.clear()
    this.#lists = []
  }

  entries(): IterableIterator<[string, Value]> {
    return this.#values.entries()
  }

  /** The keys of a range, in order; at most `limit`. */
  keysIn({ gte = '', gt, lt, reverse = false, limit = Infinity }: KeyRange): string[] {
    const from = gt === undefined || gt < gte ? this.#find(gte, false) : this.#find(gt, true)
    const to = lt === undefined ? { list: this.#lists.length, at: 0 } : this.#find(lt, false)
    return reverse ? this.#backwards(from, to, limit) : this.#forwards(from, to, limit)
  }

  #forwards(from: Place, to: Place, limit: number): string[] {
    const keys: string[] = []
    for (let { list, at } = from; list <= to.list && keys.length < limit; list++, at = 0) {
      const among = this.#lists[list] ?? []
      const end = list === to.list ? to.at : among.length
      for (; at < end && keys.length < limit; at++) keys.push(among[at] ?? '')
    }
    return keys
  }

  #backwards(from: Place, to: Place, limit: number): string[] {
    const keys: string[] = []
    for (let { list } = to; list >= from.list && keys.length < limit; list--) {
      const among = this.#lists[list] ?? []
      const end = list === from.list ? from.at : 0
      let at = list === to.list ? to.at : among.length
      while (--at >= end && keys.length < limit) keys.push(among[at] ?? '')
    }
    return keys
  }

  /** Where the first key is that is at least `key`, or above it. */
  #find(key: string, isAbove: boolean): Place {
    const list = this.#findList(key)
    const among = this.#lists[list] ?? []
    return { list, at: lowerBound(among, key, isAbove) }
  }

  /** The last list that begins with `key` or below it, else the first one. */
  #findList(key: string): number {
    const lists = this.#lists
    let low = 0
    let high = lists.length
    while (low < high) {
      const middle = (low + high) >> 1
      if ((lists[middle]?.[0] ?? '') <= key) low = middle + 1
      else high = middle
    }
    return Math.max(0, low - 1)
  }

  #insert(key: string): void {
    const list = this.#findList(key)
    const among = this.#lists[list]
    if (among === undefined) {
      this.#lists.push([key])
      return
    }
    among.splice(lowerBound(among, key, false), 0, key)
    if (among.length > listKeysMax) {
      this.#lists.splice(list + 1, 0, among.splice(among.length >> 1))
    }
  }

  #remove(key: string): void {
    const list = this.#findList(key)
    const among = this.#lists[list] ?? []
    const at = lowerBound(among, key, false)
    assert(among[at] === key, 'ordered-map: every key stands in its list')
    if (among.length === 1) this.#lists.splice(list, 1)
    else among.splice(at, 1)
  }
}

interface Place {
  readonly list: number
  readonly at: number
}

/** The first index whose key is at least `key`, or above it. */
function lowerBound(keys: readonly string[], key: string, isAbove: boolean): number {
  let low = 0
  let high = keys.length
  while (low < high) {
    const middle = (low + high) >> 1
    const found = keys[middle] ?? ''
    if (found < key || (isAbove && found === key)) low = middle + 1
    else high = middle
  }
  return low
}
