/**
 * Work that no client waits for: answers to a peer that was away, digests, what comes from those who are
 * asked. It is done in slices, one a turn; what clients and other nodes wait for has its turn in between.
 *
 * LIVE-6  One turn does so much of it at most: it ends with the first piece that reaches `sliceMs`,
 *         `slicePiecesMax` or `sliceBytesMax`. Where others are at work, it rests for a while after that.
 *
 * Work is an iterator: each `next` does one small piece and yields the bytes that it took. Works of one
 * lane follow one another; the lanes take turns, piece by piece, so that no peer waits for another one.
 */
import { assert } from '../base/assert.ts'
import type { Limits } from '../base/limits.ts'
import type { Clock, Timer } from '../ports/clock.ts'
import type { Trace } from '../ports/trace.ts'

export interface Work {
  /** What it is called where a turn is found to be long. */
  readonly name: string
  readonly pieces: Iterator<number, unknown>
}

export type SliceLimits = Pick<
  Limits,
  'sliceMs' | 'slicePiecesMax' | 'sliceBytesMax' | 'sliceRests'
>

export interface SlicesPorts {
  readonly clock: Clock
  readonly trace: Trace
  readonly limits: SliceLimits
  /** What was done so far for clients and for nodes that wait: only whether it grows matters. */
  foreground(): number
  /** A store that cannot be read, or a bug. Nothing more of the work is done. */
  onFailed(error: unknown): void
}

/** What a slice has done so far. */
interface Spent {
  pieces: number
  bytes: number
  readonly sinceMs: number
}

export class Slices {
  readonly #ports: SlicesPorts
  /** In order of their turns. */
  readonly #lanes = new Map<string, Work[]>()
  #isScheduled = false
  #isStopped = false
  #timer: Timer | undefined
  /** The next slice begins then at the earliest. */
  #restedMs = Number.NEGATIVE_INFINITY
  #foregroundSeen = 0

  constructor(ports: SlicesPorts) {
    this.#ports = ports
  }

  /** Works of the lane that are not over. */
  waiting(lane: string): number {
    return this.#lanes.get(lane)?.length ?? 0
  }

  add(lane: string, work: Work): void {
    if (this.#isStopped) return
    const works = this.#lanes.get(lane)
    if (works === undefined) this.#lanes.set(lane, [work])
    else works.push(work)
    this.#schedule()
  }

  stop(): void {
    this.#isStopped = true
    this.#timer?.cancel()
    this.#lanes.clear()
  }

  #schedule(): void {
    if (this.#isScheduled || this.#isStopped || this.#lanes.size === 0) return
    this.#isScheduled = true
    const { clock } = this.#ports
    const restMs = this.#restedMs - clock.monotonicMs()
    if (restMs > 0) this.#timer = clock.setTimer(restMs, () => this.#slice())
    else clock.defer(() => this.#slice())
  }

  #slice(): void {
    const { clock, trace, limits, foreground, onFailed } = this.#ports
    this.#isScheduled = false
    if (this.#isStopped) return
    const spent: Spent = { pieces: 0, bytes: 0, sinceMs: clock.monotonicMs() }
    try {
      while (this.#lanes.size > 0 && !this.#isOver(spent)) this.#takePiece(spent)
    } catch (error) {
      this.stop()
      return onFailed(error)
    }
    assert(spent.pieces <= limits.slicePiecesMax, 'LIVE-6: a slice goes on beyond its bound')
    const nowMs = clock.monotonicMs()
    const isForegroundBusy = foreground() !== this.#foregroundSeen
    this.#foregroundSeen = foreground()
    if (isForegroundBusy) this.#restedMs = nowMs + (nowMs - spent.sinceMs) * limits.sliceRests
    if (this.#lanes.size > 0) trace.mark(isForegroundBusy ? 'a slice rests' : 'a slice is over')
    this.#schedule()
  }

  #isOver({ pieces, bytes, sinceMs }: Spent): boolean {
    const { clock, limits } = this.#ports
    if (pieces >= limits.slicePiecesMax || bytes >= limits.sliceBytesMax) return true
    return pieces > 0 && clock.monotonicMs() - sinceMs >= limits.sliceMs
  }

  /** One piece of the lane whose turn it is, which then comes last. */
  #takePiece(spent: Spent): void {
    const [next] = this.#lanes
    if (next === undefined) return
    const [lane, works] = next
    this.#lanes.delete(lane)
    const [work] = works
    if (work === undefined) return
    this.#ports.trace.begin?.(work.name)
    const { done, value } = work.pieces.next()
    this.#ports.trace.end?.()
    spent.pieces += 1
    if (done === true) works.shift()
    else spent.bytes += value
    if (works.length > 0) this.#lanes.set(lane, works)
  }
}
