import { expect, test } from 'vitest'
import { TimeOut } from '../../src/time/time-out.ts'
import type { Clock } from '../../src/ports/clock.ts'
import { createBench, passMs } from '../cells/kit.ts'

interface Watched {
  /** Times in milliseconds since the beginning. */
  readonly due: Set<number>
  readonly rung: (readonly [dueMs: number, atMs: number])[]
  readonly timers: () => number
  readonly timeOut: TimeOut
  wait(untilMs: number): void
  pass(ms: number): Promise<void>
}

function watched(): Watched {
  const { world, clockOf } = createBench()
  const clock = clockOf('client')
  const startMs = clock.monotonicMs()
  const due = new Set<number>()
  const rung: (readonly [number, number])[] = []
  let timers = 0
  const counting: Clock = {
    ...clock,
    setTimer: (delayMs, run) => {
      timers += 1
      return clock.setTimer(delayMs, run)
    },
  }
  const timeOut = new TimeOut(counting, (nowMs) => {
    for (const dueMs of due) {
      if (startMs + dueMs > nowMs) continue
      due.delete(dueMs)
      rung.push([dueMs, nowMs - startMs])
    }
    return startMs + Math.min(...due)
  })
  return {
    ...{ due, rung, timeOut, timers: () => timers, pass: (ms) => passMs(world, ms) },
    wait: (untilMs) => {
      due.add(untilMs)
      timeOut.by(startMs + untilMs)
    },
  }
}

test('each deadline is met in its time, whatever the order in which they come', async () => {
  const { wait, pass, rung } = watched()
  for (const untilMs of [300, 100, 200, 100.5]) wait(untilMs)
  await pass(1_000)
  expect(rung.map(([dueMs]) => dueMs)).toEqual([100, 100.5, 200, 300])
  for (const [dueMs, atMs] of rung) expect(atMs - dueMs).toBeLessThan(2)
})

test('calls answered in time cost no timers of their own', async () => {
  const { wait, pass, due, rung, timers, timeOut } = watched()
  for (let untilMs = 2_000; untilMs < 2_400; untilMs++) {
    wait(untilMs)
    await pass(1)
    due.delete(untilMs)
  }
  expect(timers()).toBe(1)
  await pass(3_000)
  expect([timers(), rung]).toEqual([1, []])
  timeOut.stop()
})
