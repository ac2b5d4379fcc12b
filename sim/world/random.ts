/**
 * Seeded randomness. One seed fixes everything: each component forks a stream of its own by name,
 * so that a new draw in one does not move another's. Rates are parts per million, whole numbers.
 */
import { uniformInt } from 'pure-rand/distribution/uniformInt'
import { xoroshiro128plusFromState } from 'pure-rand/generator/xoroshiro128plus'
import { assert, present } from '../../src/base/assert.ts'
import { sha256 } from '../../src/base/bytes.ts'
import type { Random } from '../../src/ports/random.ts'

/** A rate: 0 is never, 1,000,000 is always. */
export type PartsPerMillion = number

export const always: PartsPerMillion = 1_000_000

/** A stream named by a path such as `17/network/n1>n2`: the path alone fixes its numbers. */
export class SeededRandom implements Random {
  readonly #path: string
  readonly #generator: ReturnType<typeof xoroshiro128plusFromState>

  constructor(path: string) {
    this.#path = path
    const digest = sha256(path)
    this.#generator = xoroshiro128plusFromState([0, 4, 8, 12].map((at) => digest.readInt32BE(at)))
  }

  /** A stream of its own. It depends on the label, not on earlier draws here. */
  fork(label: string): SeededRandom {
    return new SeededRandom(`${this.#path}/${label}`)
  }

  int(from: number, to: number): number {
    assert(from <= to, 'random: the range is empty')
    return uniformInt(this.#generator, from, to)
  }

  bytes(count: number): Uint8Array {
    return Uint8Array.from({ length: count }, () => this.#generator.next() & 0xff)
  }

  chance(rate: PartsPerMillion): boolean {
    // A rate of zero draws nothing: fault kinds that are off cost nothing.
    return rate > 0 && (this.#generator.next() >>> 0) % always < rate
  }

  pick<T>(list: readonly T[]): T {
    return present(list[this.int(0, list.length - 1)], 'random: the list is empty')
  }

  shuffle<T>(list: readonly T[]): T[] {
    const drawn = [...list]
    for (let i = drawn.length - 1; i > 0; i--) {
      const j = this.int(0, i)
      const at = present(drawn[i], 'random: in range')
      drawn[i] = present(drawn[j], 'random: in range')
      drawn[j] = at
    }
    return drawn
  }

  /**
   * A whole number, exponentially distributed about `mean`. The one place that uses a logarithm.
   */
  exponential(mean: number): number {
    const uniform = ((this.#generator.next() >>> 0) + 1) / 2 ** 32
    return Math.round(-Math.log(uniform) * mean)
  }
}
