/** A clock that stands until something waits for it, and chance from a seed. */
import type { Clock } from '../../src/ports/clock.ts'
import type { Random } from '../../src/ports/random.ts'

/** A timer is due at once, and time has then passed. */
export class TestClock implements Clock {
  nowMs = 1000
  /** The requested waits. */
  readonly waits: number[] = []

  wallMicros(): number {
    return this.nowMs * 1000
  }

  monotonicMs(): number {
    return this.nowMs
  }

  setTimer(delayMs: number, run: () => void): { cancel(): void } {
    let isCancelled = false
    this.waits.push(delayMs)
    this.defer(() => {
      if (isCancelled) return
      this.nowMs += delayMs
      run()
    })
    return {
      cancel: () => {
        isCancelled = true
      },
    }
  }

  defer(run: () => void): void {
    setImmediate(run)
  }
}

export function testRandom(seed = 1): Random {
  let state = seed
  const next = (): number => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0
    return state
  }
  return {
    int: (from, to) => from + Math.floor((next() / 2 ** 32) * (to - from + 1)),
    bytes: (count) => Uint8Array.from({ length: count }, () => next() >>> 24),
  }
}
