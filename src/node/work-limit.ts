/**
 * How much may be at work at once, by how long it takes. No one can know a node's capacity beforehand. So the
 * limit grows while it is reached and work is fast, and shrinks when work takes longer than its target. Pure:
 * time is an argument.
 *
 * "Fast" is measured against what the same work takes when there is little of it: replicas that are far
 * apart make commits long, and nothing is gained by beginning fewer of them.
 *
 * LOAD-3  No more is at work than the limit, which is never below its least.
 */
import { assert } from '../base/assert.ts'

export interface WorkLimits {
  /** The limit at first, at least and at most. */
  readonly startMax: number
  readonly leastMax: number
  readonly mostMax: number
  /** Half of what ends in a window may take longer than this, or than `slowFactor` of the usual. */
  readonly targetMs: number
  readonly slowFactor: number
  /** The target never exceeds this: calls have no more time. */
  readonly targetMsMax: number
  /** How often the limit is looked at. */
  readonly windowMs: number
}

export const defaultWorkLimits: WorkLimits = {
  startMax: 64,
  leastMax: 32,
  mostMax: 4_096,
  targetMs: 400,
  slowFactor: 3,
  targetMsMax: 1_000,
  windowMs: 100,
}

/**
 * How work ended. `refused`: at once, because another part had no room, so its duration means nothing.
 * `failed`: the cluster could not do it in its time.
 */
export type WorkEnd = 'done' | 'failed' | 'refused'

/** Fewer tell nothing of the others. */
const samplesMin = 8
/** More are not kept: half of them tell as much. */
const samplesMax = 512
/** The least factor by which one window shrinks the limit. */
const shrinkMin = 0.7
/**
 * In a window the limit grows by one part in `growthParts`. While work takes less than half of its target, it
 * grows by one part in `fastGrowthParts`.
 */
const growthParts = 8
const fastGrowthParts = 2
/** One new sample moves the usual time by one part in `usualParts` of its difference. */
const usualParts = 16

export class WorkLimit {
  readonly #limits: WorkLimits
  readonly #tookMs: number[] = []
  #max: number
  #atWork = 0
  #peak = 0
  #windowFromMs = 0
  /** The time that half of the work takes when there is little of it; undefined: not known yet. */
  #usualMs: number | undefined

  constructor(limits: WorkLimits) {
    this.#limits = limits
    this.#max = limits.startMax
  }

  get max(): number {
    return this.#max
  }

  get atWork(): number {
    return this.#atWork
  }

  get hasRoom(): boolean {
    return this.#atWork < this.#max
  }

  begin(): void {
    assert(this.hasRoom, 'LOAD-3: work begins above the limit')
    this.#atWork += 1
    this.#peak = Math.max(this.#peak, this.#atWork)
  }

  /** `fromMs`: when it began. */
  end(nowMs: number, fromMs: number, end: WorkEnd): void {
    this.#atWork -= 1
    assert(this.#atWork >= 0, 'LOAD-3: more work has ended than began')
    // Work that began before the last change of the limit measures the old limit. Counting it would change
    // the limit twice.
    const isOfWindow = fromMs >= this.#windowFromMs && end !== 'refused'
    if (isOfWindow && this.#tookMs.length < samplesMax) this.#tookMs.push(nowMs - fromMs)
    const isOver = nowMs - this.#windowFromMs >= this.#limits.windowMs
    if (isOver && this.#tookMs.length >= samplesMin) this.#look(nowMs)
  }

  #look(nowMs: number): void {
    const half = computeMedian(this.#tookMs)
    const wasReached = this.#peak >= this.#max
    this.#noteUsual(half, this.#peak * 2 < this.#max)
    const { leastMax, mostMax } = this.#limits
    const targetMs = this.#targetMs()
    if (half > targetMs) {
      const shrunk = Math.floor(this.#max * Math.max(shrinkMin, targetMs / half))
      this.#max = Math.max(leastMax, shrunk)
    } else if (wasReached) {
      const parts = half * 2 < targetMs ? fastGrowthParts : growthParts
      this.#max = Math.min(mostMax, this.#max + Math.ceil(this.#max / parts))
    }
    assert(this.#max >= leastMax, 'LOAD-3: the limit is below its least')
    this.#tookMs.length = 0
    this.#peak = this.#atWork
    this.#windowFromMs = nowMs
  }

  /** Under load it only falls: else a load that lasts would become what is usual. */
  #noteUsual(half: number, isIdle: boolean): void {
    const usual = this.#usualMs
    if (usual === undefined || half < usual) this.#usualMs = half
    else if (isIdle) this.#usualMs = usual + (half - usual) / usualParts
  }

  #targetMs(): number {
    const { targetMs, slowFactor, targetMsMax } = this.#limits
    return Math.min(targetMsMax, Math.max(targetMs, slowFactor * (this.#usualMs ?? 0)))
  }
}

function computeMedian(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? 0
}
