import { expect, test } from 'vitest'
import { intentLifetimeMs, sessionHeldUpMax, sessionMsMin } from '../../src/txn/limits.ts'
import { Sessions } from '../../src/txn/session.ts'
import { createBench, passMs } from '../cells/kit.ts'

function createSessions(): {
  sessions: Sessions
  passMs(ms: number): Promise<void>
  wall(): number
} {
  const bench = createBench()
  const clock = bench.clockOf('client')
  return {
    sessions: new Sessions(clock, bench.random),
    passMs: (ms) => passMs(bench.world, ms),
    wall: () => clock.wallMicros(),
  }
}

test('sequences are never used twice, and the floor is the lowest on its way', () => {
  const { sessions } = createSessions()
  const [a, b, c] = [sessions.openMany(2), sessions.openMany(1), sessions.openMany(1)]
  expect([a.sequences, b.sequences, c.sequences]).toStrictEqual([[1, 2], [3], [4]])
  b.settle(true)
  expect(c.intents([4])).toMatchObject({ sequences: [4], floor: 1 })
  a.settle(true)
  expect(c.intents([4]).floor).toBe(4)
  c.settle(true)
  const d = sessions.openMany(1)
  expect(d.intents(d.sequences)).toMatchObject({ sequences: [5], floor: 5 })
  expect(d.intents([5]).session).toBe(c.intents([4]).session)
})

test('TXN-5: the floor does not pass an intent whose outcome is not known', () => {
  const { sessions } = createSessions()
  const [lost, open] = [sessions.openMany(1), sessions.openMany(1)]
  lost.settle(false)
  expect(open.intents([2]).floor).toBe(1)
  const next = sessions.openMany(1)
  expect(next.intents([1])).toMatchObject({ sequences: [1], floor: 1 })
  expect(next.intents([1]).session).not.toBe(open.intents([2]).session)
  open.settle(false)
  expect(sessions.openMany(1).intents([2]).session).toBe(next.intents([1]).session)
})

test('an intent expires a fixed time after it was made, the same on every try', async () => {
  const { sessions, passMs: pass, wall } = createSessions()
  const open = sessions.openMany(1)
  const { expiresAt } = open.intents([1])
  expect(expiresAt).toBe(wall() + intentLifetimeMs * 1000)
  await pass(5_000)
  expect(open.intents([1]).expiresAt).toBe(expiresAt)
})

test('TXN-5: settling twice is a bug', () => {
  const { sessions } = createSessions()
  const open = sessions.openMany(1)
  open.settle(true)
  expect(() => open.settle(true)).toThrow('TXN-5')
})

test('a session that one intent holds up is left behind, and not again at once', async () => {
  const { sessions, passMs: pass } = createSessions()
  const settleMany = (): void => {
    for (let n = 0; n <= sessionHeldUpMax; n++) sessions.openMany(1).settle(true)
  }
  const sessionNow = (): string => {
    const open = sessions.openMany(1)
    open.settle(true)
    return open.intents(open.sequences).session
  }
  const slow = sessions.openMany(1)
  const first = slow.intents(slow.sequences).session
  settleMany()
  expect(sessionNow()).toBe(first)
  await pass(sessionMsMin)
  const second = sessionNow()
  expect(second).not.toBe(first)
  const slower = sessions.openMany(1)
  expect(slower.intents(slower.sequences)).toMatchObject({ session: second, floor: 2 })
  settleMany()
  expect(sessionNow()).toBe(second)
  slow.settle(true)
  slower.settle(true)
  await pass(sessionMsMin)
  expect(sessionNow()).toBe(second)
})
