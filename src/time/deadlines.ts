/**
 * Many deadlines, one timer: items fall due in buckets of a few milliseconds, so that a million
 * waiting things cost no timers of their own. Nothing is cancelled; the callee looks whether it is still due.
 */
import type { Clock, Timer } from '../ports/clock.ts'

const bucketMs = 5
/** A deadline further away than this falls due in coarser steps, so that buckets stay few. */
const farMs = 1_000
const farBuckets = 20
/** Items that fall due at once, after a long turn, say, are not done in one turn either (LIVE-6). */
const dueMax = 1_024
const turnMsMax = 5

export class Deadlines<Item extends object | string | number> {
  readonly #clock: Clock
  readonly #onDue: (item: Item, nowMs: number) => void
  readonly #buckets = new Map<number, Item[]>()
  #timer: Timer | undefined
  #timerBucket = Number.POSITIVE_INFINITY

  constructor(clock: Clock, onDue: (item: Item, nowMs: number) => void) {
    this.#clock = clock
    this.#onDue = onDue
  }

  /** `item` is due at `atMs` of the monotonic clock, or a little later; never before. */
  add(item: Item, atMs: number): void {
    const exact = Math.ceil(atMs / bucketMs)
    const isFar = atMs - this.#clock.monotonicMs() > farMs
    const bucket = isFar ? Math.ceil(exact / farBuckets) * farBuckets : exact
    const items = this.#buckets.get(bucket)
    if (items === undefined) this.#buckets.set(bucket, [item])
    else items.push(item)
    if (bucket < this.#timerBucket) this.#arm(bucket)
  }

  stop(): void {
    this.#timer?.cancel()
    this.#timerBucket = Number.POSITIVE_INFINITY
    this.#buckets.clear()
  }

  #arm(bucket: number): void {
    this.#timer?.cancel()
    this.#timerBucket = bucket
    const delayMs = Math.max(0, bucket * bucketMs - this.#clock.monotonicMs())
    this.#timer = this.#clock.setTimer(delayMs, () => this.#fire())
  }

  /** The rest is for the next turn; items added meanwhile are due later. */
  #putBack(bucket: number, items: readonly Item[]): void {
    const newer = this.#buckets.get(bucket) ?? []
    this.#buckets.set(bucket, [...items, ...newer])
  }

  #fire(): void {
    this.#timerBucket = Number.POSITIVE_INFINITY
    const nowMs = this.#clock.monotonicMs()
    const current = Math.floor(nowMs / bucketMs)
    const due = [...this.#buckets.keys()].filter((bucket) => bucket <= current)
    let left = dueMax
    for (const bucket of due.sort((a, b) => a - b)) {
      const items = this.#buckets.get(bucket) ?? []
      this.#buckets.delete(bucket)
      for (let at = 0; at < items.length; at++) {
        if (left <= 0 || this.#clock.monotonicMs() - nowMs >= turnMsMax) {
          this.#putBack(bucket, items.slice(at))
          break
        }
        left -= 1
        const item = items[at]
        if (item !== undefined) this.#onDue(item, nowMs)
      }
    }
    let next = Number.POSITIVE_INFINITY
    for (const bucket of this.#buckets.keys()) next = Math.min(next, bucket)
    if (next < this.#timerBucket) this.#arm(next)
  }
}
