/** The states of one depth, packed one behind another: ordinal, length, numbers. */

const firstWords = 1 << 12

export class Frontier {
  #words = new Int32Array(firstWords)
  #used = 0
  #count = 0

  get count(): number {
    return this.#count
  }

  push(ordinal: number, vector: readonly number[]): void {
    const needed = this.#used + vector.length + 2
    if (needed > this.#words.length) {
      const words = new Int32Array(Math.max(needed, this.#words.length * 2))
      words.set(this.#words.subarray(0, this.#used))
      this.#words = words
    }
    this.#words[this.#used] = ordinal
    this.#words[this.#used + 1] = vector.length
    this.#words.set(vector, this.#used + 2)
    this.#used = needed
    this.#count += 1
  }

  *[Symbol.iterator](): Generator<{ readonly ordinal: number; readonly vector: number[] }> {
    for (let at = 0; at < this.#used;) {
      const length = this.#words[at + 1] ?? 0
      const vector = Array.from(this.#words.subarray(at + 2, at + 2 + length))
      yield { ordinal: this.#words[at] ?? 0, vector }
      at += length + 2
    }
  }
}
