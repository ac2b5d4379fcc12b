/**
 * A process of the world: what dies in a crash and stands still in a pause. Everything that a
 * node's ports schedule goes through its process, so a dead one never acts again.
 */
import { assert } from '../src/base/assert.ts'
import type { Scheduled, World } from './world.ts'

/** Something to be run; `run` is gone once it is cancelled. */
class Due implements Scheduled {
  readonly label: string
  run: (() => void) | undefined
  scheduled: Scheduled | undefined = undefined

  constructor(label: string, run: () => void) {
    this.label = label
    this.run = run
  }

  /** What is due in a pause and waits for its end can still be cancelled before that. */
  cancel(): void {
    this.run = undefined
    this.scheduled?.cancel()
  }
}

export class SimProcess {
  readonly name: string
  readonly #world: World
  #isAlive = true
  #pausedUntilMicros = 0
  /** What came due in a pause, in order. */
  readonly #waiting: Due[] = []
  #stall: { readonly lengthMicros: number; readonly onStruck: () => void } | undefined

  constructor(world: World, name: string) {
    this.#world = world
    this.name = name
  }

  get isAlive(): boolean {
    return this.#isAlive
  }

  get nowMicros(): number {
    return this.#world.nowMicros
  }

  /** Runs `run` in this process after `delayMicros`; late after a pause, never after a crash. */
  schedule(delayMicros: number, label: string, run: () => void): Scheduled {
    const due = new Due(label, run)
    due.scheduled = this.#world.schedule(delayMicros, label, () => {
      this.#attempt(due)
    })
    return due
  }

  #attempt(due: Due): void {
    if (!this.#isAlive) return
    if (this.#pausedUntilMicros > this.#world.nowMicros) this.#waiting.push(due)
    else due.run?.()
  }

  /** Runs `run` now in this process, or at the end of its pause. */
  enter(label: string, run: () => void): void {
    if (!this.#isAlive) return
    if (this.#pausedUntilMicros > this.#world.nowMicros) this.schedule(0, label, run)
    else run()
  }

  /** Nothing runs here for a while; messages and timers wait, the clock goes on. */
  pause(lengthMicros: number): void {
    const untilMicros = this.#world.nowMicros + lengthMicros
    if (untilMicros <= this.#pausedUntilMicros) return
    this.#pausedUntilMicros = untilMicros
    this.#world.schedule(lengthMicros, `resume ${this.name}`, () => {
      if (this.#pausedUntilMicros === untilMicros) this.resume()
    })
  }

  /** The pause is over, also before its time. */
  resume(): void {
    this.#pausedUntilMicros = 0
    for (const due of this.#waiting.splice(0)) {
      due.scheduled = this.#world.schedule(0, due.label, () => {
        this.#attempt(due)
      })
    }
  }

  /** How long nothing leaves this process yet. */
  get pausedMicros(): number {
    return Math.max(0, this.#pausedUntilMicros - this.#world.nowMicros)
  }

  /** A pause that begins right after the clock was read next: what follows from it comes late. */
  stall(lengthMicros: number, onStruck: () => void): void {
    this.#stall = { lengthMicros, onStruck }
  }

  onClockRead(): void {
    const stall = this.#stall
    if (stall === undefined) return
    this.#stall = undefined
    this.pause(stall.lengthMicros)
    stall.onStruck()
  }

  /** A crash: what it had scheduled never happens. */
  kill(): void {
    assert(this.#isAlive, 'process: killed twice')
    this.#isAlive = false
  }
}
