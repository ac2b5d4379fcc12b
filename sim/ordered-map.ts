/**
 * A map in key order for the simulated disk: point operations as fast as a Map's, ranges by a
 * sorted list that is put in order again only when somebody asks after keys came or went.
 */
import { compareText } from '../src/base/bytes.ts'

export class OrderedMap<Value> {
  readonly #values = new Map<string, Value>()
  #sorted: string[] = []
  /** Keys that came since the list was sorted. */
  #added: string[] = []
  #hasGone = false

  get size(): number {
    return this.#values.size
  }

  get(key: string): Value | undefined {
    return this.#values.get(key)
  }

  set(key: string, value: Value): void {
    if (!this.#values.has(key)) this.#added.push(key)
    this.#values.set(key, value)
  }

  delete(key: string): boolean {
    const isThere = this.#values.delete(key)
    this.#hasGone ||= isThere
    return isThere
  }

  clear(): void {
    this.#values.clear()
    this.#sorted = []
    this.#added = []
    this.#hasGone = false
  }

  entries(): IterableIterator<[string, Value]> {
    return this.#values.entries()
  }

  /** The keys of a range in order; absent bounds are open. */
  keysIn(gte: string | undefined, gt: string | undefined, lt: string | undefined): string[] {
    this.#sort()
    const from = Math.max(
      gt === undefined ? 0 : this.#lowerBound(gt, true),
      this.#lowerBound(gte ?? '', false),
    )
    const to = lt === undefined ? this.#sorted.length : this.#lowerBound(lt, false)
    return this.#sorted.slice(from, Math.max(from, to))
  }

  #sort(): void {
    if (this.#hasGone) {
      // A key that went and came back stands in the list already or among the added, or in both.
      this.#sorted = [...new Set(this.#values.keys())].sort(compareText)
    } else if (this.#added.length > 0) {
      this.#sorted = merge(this.#sorted, this.#added.sort(compareText))
    }
    this.#added = []
    this.#hasGone = false
  }

  /** The first index whose key is at least `key`, or above it. */
  #lowerBound(key: string, isAbove: boolean): number {
    let low = 0
    let high = this.#sorted.length
    while (low < high) {
      const middle = (low + high) >> 1
      const found = this.#sorted[middle] ?? ''
      if (found < key || (isAbove && found === key)) low = middle + 1
      else high = middle
    }
    return low
  }
}

function merge(a: readonly string[], b: readonly string[]): string[] {
  const out: string[] = []
  let i = 0
  let j = 0
  while (i < a.length || j < b.length) {
    const left = a[i]
    const right = b[j]
    if (right === undefined || (left !== undefined && left < right)) {
      if (left !== undefined) out.push(left)
      i += 1
    } else {
      out.push(right)
      j += 1
    }
  }
  return out
}
