/**
 * Keys in order, and kept so while some come and others go. Sorting all of them again for each scan
 * costs more than the scan: there may be a hundred thousand, and one that is new.
 *
 * LIVE-6  They are put in order piece by piece, so that no turn has to do all of it.
 */
import { assert } from '../base/assert.ts'

export interface KeyBounds {
  readonly gte?: string | undefined
  readonly gt?: string | undefined
  readonly lt?: string | undefined
}

/** Put in order in one piece: a tenth of a millisecond, about. */
const pieceKeys = 128
/** A block with more is two. */
const blockKeysMax = 512

export class KeyOrder {
  /** In order, none of them empty. */
  readonly #blocks: string[][] = []
  #size = 0
  /** Those that are not looked at yet. */
  #rest: Iterator<string> | undefined
  /** Those that came since then, in no order. */
  #added: string[] = []

  /** `keys` are walked later, piece by piece: keys added and removed until then must show there. */
  constructor(keys: Iterable<string>) {
    this.#rest = keys[Symbol.iterator]()
  }

  /** More have come than there were, and no scan has looked: putting all in order is as well, if ever. */
  get isOutgrown(): boolean {
    return this.#rest === undefined && this.#added.length > this.#size
  }

  /** A key that is not here. */
  add(key: string): void {
    if (this.#rest === undefined) this.#added.push(key)
  }

  /** Keys that are here, in order. */
  remove(keys: readonly string[]): void {
    const others: string[] = []
    let next = 0
    let left = 0
    for (const block of this.#blocks) {
      const kept = block.filter((key) => {
        for (; next < keys.length && (keys[next] ?? '') < key; next++) others.push(keys[next] ?? '')
        if (keys[next] !== key) return true
        next += 1
        return false
      })
      this.#size -= block.length - kept.length
      if (kept.length > 0) this.#blocks[left++] = kept
    }
    this.#blocks.length = left
    others.push(...keys.slice(next))
    if (this.#rest === undefined && others.length > 0) this.#removeAdded(others)
  }

  #removeAdded(keys: readonly string[]): void {
    const gone = new Set(keys)
    const before = this.#added.length
    this.#added = this.#added.filter((key) => !gone.has(key))
    const count = before - this.#added.length
    assert(count === keys.length, 'replica: a key to be removed is not there')
  }

  /** Puts some more in order; false when all are. */
  step(): boolean {
    for (let left = pieceKeys; left > 0; left--) {
      const key = this.#next()
      if (key === undefined) return false
      this.#insert(key)
    }
    return this.#rest !== undefined || this.#added.length > 0
  }

  #next(): string | undefined {
    if (this.#rest !== undefined) {
      const { done, value } = this.#rest.next()
      if (done !== true) return value
      this.#rest = undefined
    }
    return this.#added.pop()
  }

  #insert(key: string): void {
    this.#size += 1
    const at = Math.min(firstBlock(this.#blocks, key), this.#blocks.length - 1)
    const block = this.#blocks[at]
    if (block === undefined) {
      this.#blocks.push([key])
      return
    }
    block.splice(firstAbove(block, key), 0, key)
    if (block.length > blockKeysMax) this.#blocks.splice(at + 1, 0, block.splice(blockKeysMax / 2))
  }

  /**
   * Calls `visit` with each key within the bounds, the last one first when `isReverse`, until it gives
   * false. It first puts keys in order that are not yet.
   */
  walk(bounds: KeyBounds, isReverse: boolean, visit: (key: string) => boolean): void {
    while (this.step());
    if (isReverse) this.#walkBack(bounds, visit)
    else this.#walkOn(bounds, visit)
  }

  #walkOn(bounds: KeyBounds, visit: (key: string) => boolean): void {
    const { lt } = bounds
    const isBefore = (key: string): boolean => isBelow(key, bounds)
    const blocks = this.#blocks
    let at = firstNot(blocks.length, (index) => isBefore(blocks[index]?.at(-1) ?? ''))
    const first = blocks[at] ?? []
    let within = firstNot(first.length, (index) => isBefore(first[index] ?? ''))
    for (; at < blocks.length; at++, within = 0) {
      const block = blocks[at] ?? []
      for (; within < block.length; within++) {
        const key = block[within] ?? ''
        if (lt !== undefined && key >= lt) return
        if (!visit(key)) return
      }
    }
  }

  #walkBack(bounds: KeyBounds, visit: (key: string) => boolean): void {
    const { lt } = bounds
    const blocks = this.#blocks
    const isBeforeEnd = (key: string | undefined): boolean => lt === undefined || (key ?? '') < lt
    let at = firstNot(blocks.length, (index) => isBeforeEnd(blocks[index]?.[0])) - 1
    const last = blocks[at] ?? []
    let within = firstNot(last.length, (index) => isBeforeEnd(last[index])) - 1
    for (; at >= 0; at--, within = (blocks[at]?.length ?? 0) - 1) {
      const block = blocks[at] ?? []
      for (; within >= 0; within--) {
        const key = block[within] ?? ''
        if (isBelow(key, bounds) || !visit(key)) return
      }
    }
  }
}

function isBelow(key: string, { gte, gt }: KeyBounds): boolean {
  return (gte !== undefined && key < gte) || (gt !== undefined && key <= gt)
}

/** The first block that ends at or behind the key. */
function firstBlock(blocks: readonly (readonly string[])[], key: string): number {
  return firstNot(blocks.length, (index) => (blocks[index]?.at(-1) ?? '') < key)
}

function firstAbove(block: readonly string[], key: string): number {
  return firstNot(block.length, (index) => (block[index] ?? '') < key)
}

/** The first of so many that `isBefore` does not hold for: it holds for those before it alone. */
function firstNot(count: number, isBefore: (index: number) => boolean): number {
  let low = 0
  let high = count
  while (low < high) {
    const middle = (low + high) >>> 1
    if (isBefore(middle)) low = middle + 1
    else high = middle
  }
  return low
}
