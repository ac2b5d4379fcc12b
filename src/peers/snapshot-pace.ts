/**
 * The pace at which a node sends snapshots. The limits bound the bytes and the groups of a second; while commits take
 * longer than usual, the pace is lower.
 */
import type { Limits } from '../base/limits.ts'

/** Commits that one look at their times needs. */
const commitsMin = 20
/** Times of commits that are kept between two looks. */
const commitsMax = 1_024
/** Commits may take this many times as long as without snapshots. */
const slowdownMax = 1.5
/** The pace goes down to this part of what the limits say, so that a snapshot ends some time. */
const paceMin = 1 / 16
/** How much of the usual time a new look says. */
const lookWeight = 0.3

export class SnapshotPace {
  readonly #limits: Pick<Limits, 'snapshotBytesPerSecond' | 'snapshotGroupsPerSecond'>
  /** Of the limits, from `paceMin` to 1. */
  #part = 1
  /** The time by which the limits allow all that is sent so far. */
  #paidMs = 0
  #hasSent = false
  #commits: number[] = []
  /** The time of the slowest hundredth of commits, of times without a snapshot. */
  #usualMs: number | undefined

  constructor(limits: Pick<Limits, 'snapshotBytesPerSecond' | 'snapshotGroupsPerSecond'>) {
    this.#limits = limits
  }

  /** The part of what the limits allow that is sent now. */
  get part(): number {
    return this.#part
  }

  /** How long the next part has to wait, milliseconds. */
  take(nowMs: number, bytes: number, groups: number): number {
    this.#hasSent = true
    const { snapshotBytesPerSecond, snapshotGroupsPerSecond } = this.#limits
    const seconds = bytes / snapshotBytesPerSecond + groups / snapshotGroupsPerSecond
    const fromMs = Math.max(nowMs, this.#paidMs)
    this.#paidMs = fromMs + (seconds * 1_000) / this.#part
    return fromMs - nowMs
  }

  /** A client's transaction has its verdict, `ms` after it came. */
  onCommit(ms: number): void {
    if (this.#commits.length < commitsMax) this.#commits.push(ms)
  }

  /** Now and then: compares the commits since the last look with what they take usually. */
  look(): void {
    const commits = this.#commits.sort((a, b) => a - b)
    this.#commits = []
    const slowMs = commits[Math.floor(commits.length * 0.99)]
    const isEnough = commits.length >= commitsMin && slowMs !== undefined
    const hasSent = this.#hasSent
    this.#hasSent = false
    if (!isEnough || !hasSent) this.#part = Math.min(1, this.#part * 2)
    if (!isEnough) return
    if (!hasSent) {
      const usualMs = this.#usualMs ?? slowMs
      this.#usualMs = usualMs + (slowMs - usualMs) * lookWeight
      return
    }
    const isSlow = this.#usualMs !== undefined && slowMs > this.#usualMs * slowdownMax
    this.#part = isSlow ? Math.max(paceMin, this.#part / 2) : Math.min(1, this.#part * 1.25)
  }
}
