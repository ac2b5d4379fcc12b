/**
 * The promises of every clock (`src/ports/clock.ts`) while nothing sets it, as a suite over a way to make one
 * and to let its time pass. That clocks jump and stand still is the simulator's own (`../sim/clock.test.ts`).
 */
import { describe, expect, test } from 'vitest'
import type { Clock } from '../../src/ports/clock.ts'

export interface TimedClock {
  readonly clock: Clock
  /** Lets some time pass, `ms` at least, and ends the turns that come in it. */
  pass(ms: number): Promise<void>
}

export function clockContract(name: string, make: () => TimedClock): void {
  describe(name, () => {
    test('both clocks go on with time, and the wall clock tells whole microseconds', async () => {
      const { clock, pass } = make()
      const [wall, monotonic] = [clock.wallMicros(), clock.monotonicMs()]
      await pass(20)
      // Of two clocks the one may be read a little before the other.
      expect(clock.wallMicros() - wall).toBeGreaterThanOrEqual(19_000)
      expect(clock.monotonicMs() - monotonic).toBeGreaterThanOrEqual(19)
      expect(Number.isSafeInteger(clock.wallMicros())).toBe(true)
    })

    test('the monotonic clock never goes back', async () => {
      const { clock, pass } = make()
      const readings: number[] = []
      for (let nth = 0; nth < 50; nth++) {
        readings.push(clock.monotonicMs(), clock.monotonicMs())
        if (nth % 10 === 0) await pass(1)
      }
      expect(readings).toEqual(readings.toSorted((a, b) => a - b))
    })

    test('a timer runs once, not in the call that sets it, and not early', async () => {
      const { clock, pass } = make()
      const ran: number[] = []
      const startMs = clock.monotonicMs()
      clock.setTimer(20, () => ran.push(clock.monotonicMs() - startMs))
      clock.setTimer(0, () => ran.push(clock.monotonicMs() - startMs))
      expect(ran).toEqual([])
      for (let nth = 0; nth < 4; nth++) await pass(20)
      expect(ran).toHaveLength(2)
      // Node's timers are whole milliseconds of a clock of their own.
      expect(Math.max(...ran)).toBeGreaterThanOrEqual(19)
    })

    test('a timer that is cancelled in its time never runs, and may be cancelled at any time', async () => {
      const { clock, pass } = make()
      const ran: string[] = []
      const cancelled = clock.setTimer(5, () => ran.push('cancelled'))
      const timer = clock.setTimer(5, () => ran.push('timer'))
      cancelled.cancel()
      cancelled.cancel()
      for (let nth = 0; nth < 3; nth++) await pass(10)
      timer.cancel()
      await pass(10)
      expect(ran).toEqual(['timer'])
    })

    test('what is deferred runs once, after this turn and its promises, in its order', async () => {
      const { clock, pass } = make()
      const order: string[] = []
      clock.defer(() => order.push('first'))
      clock.defer(() => order.push('second'))
      const promised = Promise.resolve().then(() => order.push('promise'))
      order.push('turn')
      await promised
      await pass(5)
      await pass(5)
      expect(order).toEqual(['turn', 'promise', 'first', 'second'])
    })
  })
}
