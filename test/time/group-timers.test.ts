/**
 * Which groups fall due, and how often the timers say so: not once for each time that one was put
 * off.
 */
import { expect, test } from 'vitest'
import { groupOfBytes } from '../../src/base/ids.ts'
import { Dues } from '../../src/time/group-timers.ts'
import { createBench, passMs } from '../cells/kit.ts'

const group = groupOfBytes(Buffer.from('g'))

/** A group that is put off, and the moments at which it fell due; all in milliseconds from now. */
class Watch {
  readonly told: number[] = []
  readonly #bench = createBench()
  readonly #clock = this.#bench.clockOf('n1')
  readonly #beganMs = this.#clock.monotonicMs()
  readonly #dues = new Dues(this.#clock, () => {
    this.told.push(this.#clock.monotonicMs() - this.#beganMs)
  })

  putOff(untilMs: number): void {
    this.#dues.add(group, this.#beganMs + untilMs)
  }

  pass(ms: number): Promise<void> {
    return passMs(this.#bench.world, ms)
  }
}

test('a group put off to the same moment again and again is due once', async () => {
  const watch = new Watch()
  for (let i = 0; i < 1_000; i++) {
    // As by two clocks of which one is slow.
    watch.putOff(5_000 - i / 1_000)
    await watch.pass(1)
  }
  await watch.pass(10_000)
  expect(watch.told).toHaveLength(1)
  expect(watch.told[0]).toBeGreaterThanOrEqual(5_000)
})

test('a group due earlier than first said is due then, and once more at the first time', async () => {
  const watch = new Watch()
  for (let i = 1; i <= 10; i++) {
    watch.putOff(5_000)
    watch.putOff(i * 100 - 50)
    await watch.pass(100)
  }
  expect(watch.told).toHaveLength(10)
  expect(watch.told[0]).toBeLessThan(60)
  await watch.pass(10_000)
  expect(watch.told).toHaveLength(11)
  expect(watch.told.at(-1)).toBeGreaterThanOrEqual(5_000)
})
