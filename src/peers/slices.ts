/**
 * Work that hardly a client waits for: answers to a peer that was away, digests, and what peers answer to
 * this node. It is done in slices, one a turn; what clients and other nodes wait for has its turn in
 * between.
 *
 * LIVE-6  One turn does a bounded part of it: the part ends with the first piece that reaches `sliceMs`,
 *         `slicePiecesMax` or `sliceBytesMax`. Where others are at work, it rests for a while after that.
 *         What a client waits for comes first, and without a rest.
 *
 * Work is an iterator: each `next` does one small piece and yields the bytes that it took. Works of one
 * lane follow one another; the lanes take turns, piece by piece, so that no peer waits for another one.
 */
import { assert } from '../base/assert.ts'
import type { Limits } from '../base/limits.ts'
import type { Clock, Timer } from '../ports/clock.ts'
import type { Trace } from '../ports/trace.ts'

export interface Work {
  /** The name of the work where a turn is found to be long. */
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
  /** The work done so far for clients and for nodes that wait: only whether it grows matters. */
  foreground(): number
  /** A store that cannot be read, or a bug. Nothing more of the work is done. */
  onFailed(error: unknown): void
}

/** By lane, in order of their turns. */
type Lanes = Map<string, Work[]>

/** The work of a slice so far. */
interface Spent {
  pieces: number
  bytes: number
  readonly sinceMs: number
}

export class Slices {
  readonly #ports: SlicesPorts
  /** A client waits for what these do. */
  readonly #awaited: Lanes = new Map()
  readonly #lanes: Lanes = new Map()
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
    return (this.#lanes.get(lane)?.length ?? 0) + (this.#awaited.get(lane)?.length ?? 0)
  }

  /** `isAwaited`: a client waits for it. */
  add(lane: string, work: Work, isAwaited = false): void {
    if (this.#isStopped) return
    const lanes = isAwaited ? this.#awaited : this.#lanes
    const works = lanes.get(lane)
    if (works === undefined) lanes.set(lane, [work])
    else works.push(work)
    if (isAwaited) this.#endRest()
    this.#schedule()
  }

  stop(): void {
    this.#isStopped = true
    this.#timer?.cancel()
    this.#lanes.clear()
    this.#awaited.clear()
  }

  #endRest(): void {
    if (this.#timer === undefined) return
    this.#timer.cancel()
    this.#timer = undefined
    this.#isScheduled = false
  }

  #schedule(): void {
    const { size } = this.#awaited
    if (this.#isScheduled || this.#isStopped || this.#lanes.size + size === 0) return
    this.#isScheduled = true
    const { clock } = this.#ports
    const restMs = this.#restedMs - clock.monotonicMs()
    if (size > 0 || restMs <= 0) clock.defer(() => this.#slice())
    else this.#timer = clock.setTimer(restMs, () => this.#slice())
  }

  #slice(): void {
    const { clock, trace, limits, foreground, onFailed } = this.#ports
    this.#isScheduled = false
    this.#timer = undefined
    if (this.#isStopped) return
    const spent: Spent = { pieces: 0, bytes: 0, sinceMs: clock.monotonicMs() }
    const isResting = spent.sinceMs < this.#restedMs
    try {
      for (let lanes = this.#next(isResting); lanes !== undefined; lanes = this.#next(isResting)) {
        if (this.#isOver(spent)) break
        this.#takePiece(lanes, spent)
      }
    } catch (error) {
      this.stop()
      return onFailed(error)
    }
    assert(spent.pieces <= limits.slicePiecesMax, 'LIVE-6: a slice goes on beyond its bound')
    const nowMs = clock.monotonicMs()
    const isForegroundBusy = foreground() !== this.#foregroundSeen
    this.#foregroundSeen = foreground()
    if (isForegroundBusy) this.#restedMs = nowMs + (nowMs - spent.sinceMs) * limits.sliceRests
    if (this.#next(false) !== undefined) {
      trace.mark(isForegroundBusy ? 'a slice rests' : 'a slice is over')
    }
    this.#schedule()
  }

  /** The lanes that the next piece comes from. */
  #next(isResting: boolean): Lanes | undefined {
    if (this.#awaited.size > 0) return this.#awaited
    return this.#lanes.size > 0 && !isResting ? this.#lanes : undefined
  }

  #isOver({ pieces, bytes, sinceMs }: Spent): boolean {
    const { clock, limits } = this.#ports
    if (pieces >= limits.slicePiecesMax || bytes >= limits.sliceBytesMax) return true
    return pieces > 0 && clock.monotonicMs() - sinceMs >= limits.sliceMs
  }

  /** One piece of the lane whose turn it is, which then comes last. */
  #takePiece(lanes: Lanes, spent: Spent): void {
    const [next] = lanes
    if (next === undefined) return
    const [lane, works] = next
    lanes.delete(lane)
    const [work] = works
    if (work === undefined) return
    this.#ports.trace.begin?.(work.name)
    const { done, value } = work.pieces.next()
    this.#ports.trace.end?.()
    spent.pieces += 1
    if (done === true) works.shift()
    else spent.bytes += value
    if (works.length > 0) lanes.set(lane, works)
  }
}
