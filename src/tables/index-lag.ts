/**
 * How far global indexes are behind: of each change the time from the commit that made it to the
 * moment at which its index is known to have it (IDX-3). The newest ones are kept for percentiles.
 */
import type { Timestamp } from '../base/ids.ts'

const keptMax = 1024

export interface LagFigures {
  /** Changes relayed since the node began. */
  readonly relayed: number
  /** Of the newest of them, in milliseconds; absent when there is none. */
  readonly lagP50Ms?: number
  readonly lagP99Ms?: number
  readonly lagMaxMs?: number
}

export class IndexLag {
  readonly #kept: number[] = []
  #relayed = 0

  /** A change of `madeAt` is in its index now. Clocks of two machines may differ: none is negative. */
  add(madeAt: Timestamp, nowMicros: number): number {
    const micros = Math.max(0, nowMicros - madeAt)
    this.#kept[this.#relayed % keptMax] = micros
    this.#relayed += 1
    return micros
  }

  get figures(): LagFigures {
    const relayed = this.#relayed
    if (this.#kept.length === 0) return { relayed }
    const sorted = this.#kept.toSorted((a, b) => a - b)
    const at = (share: number): number =>
      (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0) / 1000
    return { relayed, lagP50Ms: at(0.5), lagP99Ms: at(0.99), lagMaxMs: at(1) }
  }
}
