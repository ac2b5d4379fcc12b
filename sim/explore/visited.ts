/**
 * The states that were seen: 128 bits of each, in flat arrays, with the state that each was first
 * reached from. States have ordinals in the order in which they were found.
 */
import { assert } from '../../src/base/assert.ts'

const lanes = 4
const firstCapacity = 1 << 12

export class Visited {
  #count = 0
  #capacity = firstCapacity
  #hashes = new Uint32Array(firstCapacity * lanes)
  #parents = new Int32Array(firstCapacity)
  /** Ordinals + 1, by hash; at most half full. */
  #slots = new Int32Array(firstCapacity * 2)
  readonly #lane: Uint32Array = new Uint32Array(lanes)

  get count(): number {
    return this.#count
  }

  /** Remembers a state. Its ordinal when it is new, else -1. */
  add(vector: readonly number[], parent: number): number {
    this.#hash(vector)
    const slot = this.#findSlot()
    if (this.#slots[slot] !== 0) return -1
    const ordinal = this.#count
    this.#slots[slot] = ordinal + 1
    this.#hashes.set(this.#lane, ordinal * lanes)
    this.#parents[ordinal] = parent
    this.#count += 1
    if (this.#count === this.#capacity) this.#grow()
    return ordinal
  }

  /** The ordinal of a state that was seen, or -1. */
  find(vector: readonly number[]): number {
    this.#hash(vector)
    return (this.#slots[this.#findSlot()] ?? 0) - 1
  }

  /** The ordinals on the way to a state, the first state's first. */
  pathTo(ordinal: number): readonly number[] {
    const path: number[] = []
    for (let at = ordinal; at >= 0; at = this.#parents[at] ?? -1) path.push(at)
    return path.reverse()
  }

  #findSlot(): number {
    const mask = this.#slots.length - 1
    const [a = 0, b = 0, c = 0, d = 0] = this.#lane
    for (let slot = a & mask; ; slot = (slot + 1) & mask) {
      const ordinal = (this.#slots[slot] ?? 0) - 1
      if (ordinal < 0) return slot
      const at = ordinal * lanes
      const hashes = this.#hashes
      if (hashes[at] !== a || hashes[at + 1] !== b) continue
      if (hashes[at + 2] === c && hashes[at + 3] === d) return slot
    }
  }

  #grow(): void {
    this.#capacity *= 2
    const hashes = new Uint32Array(this.#capacity * lanes)
    hashes.set(this.#hashes)
    this.#hashes = hashes
    const parents = new Int32Array(this.#capacity)
    parents.set(this.#parents)
    this.#parents = parents
    this.#slots = new Int32Array(this.#capacity * 2)
    const mask = this.#slots.length - 1
    for (let ordinal = 0; ordinal < this.#count; ordinal++) {
      let slot = (hashes[ordinal * lanes] ?? 0) & mask
      while (this.#slots[slot] !== 0) slot = (slot + 1) & mask
      this.#slots[slot] = ordinal + 1
    }
  }

  #hash(vector: readonly number[]): void {
    let [a, b, c, d] = [0x9e3779b9, 0x85ebca6b, 0xc2b2ae35, 0x27d4eb2f]
    for (const word of vector) {
      a = Math.imul(a ^ word, 0xcc9e2d51)
      a = (a << 15) | (a >>> 17)
      b = Math.imul(b ^ word ^ a, 0x1b873593)
      b = (b << 13) | (b >>> 19)
      c = Math.imul(c ^ word ^ b, 0x85ebca6b)
      c = (c << 17) | (c >>> 15)
      d = Math.imul(d ^ word ^ c, 0xe6546b64 | 1)
      d = (d << 11) | (d >>> 21)
    }
    assert(this.#lane.length === lanes, 'explore: four lanes')
    this.#lane[0] = mixed(a ^ vector.length)
    this.#lane[1] = mixed(b ^ a)
    this.#lane[2] = mixed(c ^ b)
    this.#lane[3] = mixed(d ^ c)
  }
}

function mixed(word: number): number {
  let hash = word ^ (word >>> 16)
  hash = Math.imul(hash, 0x7feb352d)
  hash ^= hash >>> 15
  hash = Math.imul(hash, 0x846ca68b)
  return (hash ^ (hash >>> 16)) >>> 0
}
