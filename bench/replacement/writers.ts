/**
 * Writers at a steady pace, each with an entity group of its own: what a change of the voters costs those who write
 * meanwhile, as latency of commits and as the longest time in which a group took no write.
 */
import { StoreError } from '../../src/base/errors.ts'
import { summarizeLoad } from '../load.ts'
import { pause } from '../processes.ts'
import type { Accounts } from '../scale/accounts.ts'

/** A stretch of the load. */
export interface Stretch {
  readonly seconds: number
  readonly commits: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly maxMs: number
  readonly failures: number
  /** Over the groups: the median and the longest of each group's longest time from one acknowledgement to the next. */
  readonly medianGapMs: number
  readonly longestGapMs: number
}

interface Commit {
  readonly atMs: number
  readonly tookMs: number
}

export class Writers {
  /** Of each writer, in order. */
  readonly #commits: Commit[][] = []
  readonly #failedAtMs: number[] = []
  /** Codes of errors, and how often each came. */
  readonly failures: Record<string, number> = {}
  readonly #loops: Promise<void>[]
  #isOver = false

  /** `paceMs`: from the beginning of one write of a writer to that of its next one. */
  constructor(accounts: Accounts, count: number, paceMs: number) {
    this.#loops = Array.from({ length: count }, (_, n) => this.#write(accounts, n, paceMs))
  }

  async #write(accounts: Accounts, n: number, paceMs: number): Promise<void> {
    const own: Commit[] = []
    this.#commits.push(own)
    // They begin one after the other.
    await pause(Math.random() * paceMs)
    while (!this.#isOver) {
      const began = performance.now()
      try {
        await accounts.put(n, 0, 1)
        const atMs = performance.now()
        own.push({ atMs, tookMs: atMs - began })
      } catch (error) {
        this.#failedAtMs.push(performance.now())
        const code = error instanceof StoreError ? error.code : String(error)
        this.failures[code] = (this.failures[code] ?? 0) + 1
      }
      await pause(Math.max(1, began + paceMs - performance.now()))
    }
  }

  /** The answers between two moments of `performance.now()`. */
  stretch(fromMs: number, toMs: number): Stretch {
    const isIn = (atMs: number): boolean => atMs >= fromMs && atMs < toMs
    const each = this.#commits.map((own) => own.filter(({ atMs }) => isIn(atMs)))
    const latencies = each.flat().map(({ tookMs }) => tookMs)
    const { operations, p50Ms, p99Ms, maxMs } = summarizeLoad(latencies, 0, toMs - fromMs)
    const gaps = each.map((own) => longestGap([fromMs, ...own.map(({ atMs }) => atMs), toMs]))
    const sorted = gaps.sort((a, b) => a - b)
    return {
      ...{ seconds: (toMs - fromMs) / 1_000, commits: operations, p50Ms, p99Ms, maxMs },
      failures: this.#failedAtMs.filter(isIn).length,
      medianGapMs: sorted[Math.floor(sorted.length / 2)] ?? 0,
      longestGapMs: sorted.at(-1) ?? 0,
    }
  }

  /** Resolves when no write is under way any more. */
  async stop(): Promise<void> {
    this.#isOver = true
    await Promise.all(this.#loops)
  }
}

function longestGap(moments: readonly number[]): number {
  return Math.max(0, ...moments.map((atMs, nth) => atMs - (moments[nth - 1] ?? atMs)))
}
