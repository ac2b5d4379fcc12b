/** A program trusts what it read of a registry for a while, and then looks again. */
import { expect, test } from 'vitest'
import { Trusted } from '../../src/indexes/trusted.ts'
import { readMoment } from '../../src/time/moments.ts'
import { TestClock } from '../txn/test-ports.ts'

function bench(): {
  readonly clock: TestClock
  readonly trusted: Trusted<number>
  readonly looks: () => number
  fail: boolean
} {
  const clock = new TestClock()
  const own = { fail: false, looks: 0 }
  const look = async (): Promise<number> => {
    own.looks += 1
    if (own.fail) throw new Error('nobody answers')
    return own.looks
  }
  const trusted = new Trusted({ clock, trustMs: 1_000, look })
  return {
    clock,
    trusted,
    looks: () => own.looks,
    set fail(fails: boolean) {
      own.fail = fails
    },
  }
}

test('IDX-6: a value is looked at anew when it was trusted for long enough', async () => {
  const { clock, trusted, looks } = bench()
  expect(await trusted.fresh()).toBe(1)
  expect(trusted.fresh()).toBe(1)
  // Half of the time is over: it looks again, and its caller does not wait.
  clock.nowMs += 600
  expect(trusted.fresh()).toBe(1)
  await trusted.now()
  expect(looks()).toBe(2)
  expect(trusted.fresh()).toBe(2)
  clock.nowMs += 1_000
  const waited = trusted.fresh()
  expect(waited).toBeInstanceOf(Promise)
  expect(await waited).toBe(3)
})

test('callers at the same time share one look, and a failed one is no answer', async () => {
  const own = bench()
  const { clock, trusted, looks } = own
  expect(await Promise.all([trusted.now(), trusted.now()])).toEqual([1, 1])
  own.fail = true
  clock.nowMs += 600
  // A failed look reaches no caller while none waits for it.
  expect(trusted.fresh()).toBe(1)
  await expect(trusted.now()).rejects.toThrow('nobody answers')
  clock.nowMs += 1_000
  await expect(trusted.fresh()).rejects.toThrow('nobody answers')
  own.fail = false
  expect(await trusted.fresh()).toBe(looks())
})

test('a value that was read before counts from the beginning of that read', () => {
  const clock = new TestClock()
  const askedAt = readMoment(clock)
  clock.nowMs += 400
  const parts = { clock, trustMs: 1_000, look: () => Promise.resolve('new') }
  const trusted = new Trusted(parts, { value: 'old', askedAt })
  expect(trusted.fresh()).toBe('old')
  clock.nowMs += 600
  expect(trusted.fresh()).toBeInstanceOf(Promise)
})
