/** Turns of the event loop that take too long are counted, and told of with what ran. */
import { expect, test } from 'vitest'
import { silentTrace } from '../../src/ports/trace.ts'
import { stallMs, watchStalls, type Stall } from '../../src/node/stalls.ts'

test('the node reports a long turn with the work in it, and not more often than the limit', () => {
  let [nowMs, cpuMicros] = [0, 0]
  const timers: (() => void)[] = []
  const clock = {
    wallMicros: () => nowMs * 1_000,
    monotonicMs: () => nowMs,
    setTimer: (_: number, run: () => void) => {
      timers.push(run)
      return { cancel: () => undefined }
    },
    defer: () => undefined,
  }
  const counted: number[] = []
  const told: Stall[] = []
  const { trace } = watchStalls(
    {
      ...{ clock, cpuMicros: () => cpuMicros },
      onStall: (ms) => counted.push(ms),
      tell: (stall) => told.push(stall),
    },
    silentTrace,
  )
  const look = (afterMs: number): void => {
    nowMs += afterMs
    timers.shift()?.()
  }
  look(20)
  look(20 + stallMs)
  expect(counted).toEqual([])
  for (let n = 0; n < 3; n++) {
    trace.begin?.('outer')
    nowMs += 10
    trace.begin?.('inner')
    nowMs += 100
    trace.end?.()
    nowMs += 5
    trace.end?.()
    // Work that belongs to no part.
    cpuMicros += 90_000
    look(25)
  }
  expect(counted).toEqual([120, 120, 120])
  expect(told).toEqual([{ ms: 120, work: { inner: 100, outer: 15 }, cpuMs: 90, untold: 0 }])
  nowMs += 10_000
  look(0)
  expect(told.at(-1)).toMatchObject({ work: {}, cpuMs: 0, untold: 2 })
})
