/**
 * A process of the world: what dies in a crash and stands still in a pause. Everything that a
 * node's ports schedule goes through its process, so a dead one never acts again.
 */
import { assert } from '../src/base/assert.ts'
import type { Scheduled, World } from './world.ts'

export class SimProcess {
  readonly name: string
  readonly #world: World
  #isAlive = true
  #pausedUntilMicros = 0

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
    const attempt = (): void => {
      if (!this.#isAlive) return
      const waitMicros = this.#pausedUntilMicros - this.#world.nowMicros
      if (waitMicros > 0) scheduled = this.#world.schedule(waitMicros, label, attempt)
      else run()
    }
    let scheduled = this.#world.schedule(delayMicros, label, attempt)
    // What is due in a pause and waits for its end can still be cancelled by what comes before it.
    return { cancel: () => scheduled.cancel() }
  }

  /** Runs `run` now in this process, or at the end of its pause. */
  enter(label: string, run: () => void): void {
    if (!this.#isAlive) return
    if (this.#pausedUntilMicros > this.#world.nowMicros) this.schedule(0, label, run)
    else run()
  }

  /** Nothing runs here for a while; messages and timers wait, the clock goes on. */
  pause(lengthMicros: number): void {
    this.#pausedUntilMicros = Math.max(
      this.#pausedUntilMicros,
      this.#world.nowMicros + lengthMicros,
    )
  }

  /** A crash: what it had scheduled never happens. */
  kill(): void {
    assert(this.#isAlive, 'process: killed twice')
    this.#isAlive = false
  }
}
