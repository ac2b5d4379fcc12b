/** Advisory locks: a line for those who would only be in conflict. */
import { expect, test } from 'vitest'
import { groupOfBytes } from '../../src/base/ids.ts'
import { AdvisoryLocks, lockWaitersMax } from '../../src/txn/locks.ts'
import { createBench, exactClock, passMs } from '../cells/kit.ts'
import { createClock } from '../../sim/world/clock.ts'
import { SimProcess } from '../../sim/world/sim-process.ts'

const group = groupOfBytes(Buffer.from('g'))

interface Desk {
  readonly locks: AdvisoryLocks
  /** Runs the world on for the given time. */
  pass(ms: number): Promise<void>
}

function desk(): Desk {
  const { world, random } = createBench(1)
  const clock = createClock(new SimProcess(world, 'n1'), exactClock, random)
  const pass = (ms: number): Promise<void> => passMs(world, ms)
  return { locks: new AdvisoryLocks(clock), pass }
}

test('a lock is one caller’s at a time, and goes to the next in line', async () => {
  const { locks } = desk()
  const first = await locks.acquire(group, 'a', 1_000, 1_000)
  const order: string[] = []
  const second = locks.acquire(group, 'a', 1_000, 1_000).then((token) => {
    order.push('second')
    return token
  })
  const third = locks.acquire(group, 'a', 1_000, 1_000).then((token) => {
    order.push('third')
    return token
  })
  expect(await locks.acquire(group, 'b', 1_000, 0)).toBeDefined()
  expect(locks.release(group, 'a', first ?? 0)).toBe(true)
  expect(locks.release(group, 'a', (await second) ?? 0)).toBe(true)
  await third
  expect(order).toEqual(['second', 'third'])
  expect(locks.count).toBe(2)
})

test('a holder that keeps a lock loses it in time, and a waiter whose time ends gets none', async () => {
  const { locks, pass } = desk()
  const held = await locks.acquire(group, 'a', 100, 0)
  const short = locks.acquire(group, 'a', 100, 50)
  const long = locks.acquire(group, 'a', 100, 500)
  await pass(60)
  expect(await short).toBeUndefined()
  await pass(60)
  expect(await long).toBeDefined()
  expect(locks.release(group, 'a', held ?? 0), 'it is somebody else’s now').toBe(false)
  await pass(200)
  expect(locks.count).toBe(0)
})

test('a stopping node answers waiters at once and gives none of them the lock', async () => {
  const { locks } = desk()
  const held = await locks.acquire(group, 'a', 1_000, 0)
  const waiting = locks.acquire(group, 'a', 1_000, 60_000)
  locks.stop()
  expect(await waiting).toBeUndefined()
  expect(locks.release(group, 'a', held ?? 0)).toBe(false)
  expect(locks.count).toBe(0)
})

test('no more wait than may', async () => {
  const { locks } = desk()
  await locks.acquire(group, 'a', 1_000, 0)
  for (let i = 0; i < lockWaitersMax; i++) void locks.acquire(group, 'a', 1_000, 1_000)
  await expect(locks.acquire(group, 'a', 1_000, 1_000)).rejects.toMatchObject({
    code: 'overloaded',
    detail: { limit: 'lockWaitersMax' },
  })
})
