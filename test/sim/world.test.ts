import { expect, test } from 'vitest'
import { createClock, epochMicros } from '../../sim/world/clock.ts'
import { SimProcess } from '../../sim/world/sim-process.ts'
import { World } from '../../sim/world/world.ts'

const never = (): boolean => false
const second = 1_000_000

test('META-1: events run in the order of their time, then of their scheduling', async () => {
  const world = new World(1, 1_000)
  const seen: string[] = []
  for (const [delay, name] of [
    [30, 'c'],
    [10, 'a'],
    [30, 'd'],
    [20, 'b'],
  ] as const) {
    world.schedule(delay, name, () => seen.push(`${name}@${world.nowMicros}`))
  }
  expect(await world.run(never, second)).toBe('idle')
  expect(seen).toEqual(['a@10', 'b@20', 'c@30', 'd@30'])
})

test('META-1: the promises that an event wakes run to their end before the next event', async () => {
  const world = new World(1, 1_000)
  const seen: string[] = []
  const chain = async (): Promise<void> => {
    for (let i = 0; i < 50; i++) await Promise.resolve()
    seen.push('chain ended')
  }
  world.schedule(1, 'first', () => void chain())
  world.schedule(1, 'second', () => seen.push('second'))
  await world.run(never, second)
  expect(seen).toEqual(['chain ended', 'second'])
})

test('idle time is skipped, a deadline stops the run, a cancelled event never happens', async () => {
  const world = new World(1, 1_000)
  const seen: string[] = []
  world.schedule(3_600 * second, 'an hour', () => seen.push('an hour'))
  world.schedule(5, 'cancelled', () => seen.push('cancelled')).cancel()
  world.schedule(7_200 * second, 'two hours', () => seen.push('two hours'))
  expect(await world.run(never, 3_600 * second)).toBe('deadline')
  expect(seen).toEqual(['an hour'])
  expect(world.eventCount).toBe(1)
})

test('META-3: a promise rejected without a handler ends the run with its error', async () => {
  const world = new World(1, 1_000)
  const onRejection = (error: unknown): void => world.fail(error)
  const others = process.listeners('unhandledRejection')
  process.removeAllListeners('unhandledRejection')
  process.on('unhandledRejection', onRejection)
  world.schedule(1, 'rejects', () => void Promise.reject(new Error('nobody listens')))
  world.schedule(2, 'done', () => undefined)
  try {
    await expect(world.run(() => world.eventCount === 2, second)).rejects.toThrow('nobody listens')
  } finally {
    process.removeListener('unhandledRejection', onRejection)
    for (const other of others) process.on('unhandledRejection', other)
  }
})

test('the hash depends on every event: its time and its label', async () => {
  const hashOf = async (delay: number, label: string): Promise<string> => {
    const world = new World(1, 1_000)
    world.schedule(delay, label, () => undefined)
    await world.run(never, second)
    return world.hash.digest()
  }
  expect(await hashOf(1, 'a')).toBe(await hashOf(1, 'a'))
  expect(await hashOf(1, 'a')).not.toBe(await hashOf(2, 'a'))
  expect(await hashOf(1, 'a')).not.toBe(await hashOf(1, 'b'))
})

test('nothing that a process scheduled happens after its crash', async () => {
  const world = new World(1, 1_000)
  const seen: string[] = []
  const process = new SimProcess(world, 'n1')
  process.schedule(10, 'before', () => seen.push('before'))
  process.schedule(30, 'after', () => seen.push('after'))
  world.schedule(20, 'crash', () => process.kill())
  await world.run(never, second)
  expect(seen).toEqual(['before'])
})

test('in a pause nothing runs, then everything that was due, in its order', async () => {
  const world = new World(1, 1_000)
  const seen: string[] = []
  const process = new SimProcess(world, 'n1')
  const note = (name: string) => () => seen.push(`${name}@${world.nowMicros}`)
  process.schedule(10, 'a', note('a'))
  process.schedule(20, 'b', note('b'))
  process.schedule(200, 'c', note('c'))
  process.pause(100)
  await world.run(never, second)
  expect(seen).toEqual(['a@100', 'b@100', 'c@200'])
})

test('a timer that fell due in a pause can be cancelled by an earlier event', async () => {
  const world = new World(1, 1_000)
  const seen: string[] = []
  const process = new SimProcess(world, 'n1')
  process.schedule(10, 'cancels', () => {
    seen.push('cancels')
    timer.cancel()
  })
  const timer = process.schedule(20, 'timer', () => seen.push('timer'))
  process.pause(100)
  await world.run(never, second)
  expect(seen).toEqual(['cancels'])
})

test('a drifting clock runs at its own pace, and its timers are never early on it', async () => {
  for (const driftPpm of [-100_000, -7, 0, 13, 100_000]) {
    const world = new World(1, 1_000)
    const process = new SimProcess(world, 'n1')
    const skew = { offsetMicros: 5_000, driftPpm, timerLatenessMicros: 0 }
    const clock = createClock(process, skew, world.random)
    expect(clock.wallMicros()).toBe(epochMicros + 5_000)
    let elapsedMs = 0
    clock.setTimer(777.7, () => (elapsedMs = clock.monotonicMs()))
    await world.run(never, 10 * second)
    expect(elapsedMs).toBeGreaterThanOrEqual(777.7)
    expect(elapsedMs).toBeLessThan(778)
    expect(world.nowMicros * (1 + driftPpm / 1_000_000)).toBeCloseTo(777_700, -1)
  }
})

test('deferred work comes after what is at hand in the same moment', async () => {
  const world = new World(1, 1_000)
  const process = new SimProcess(world, 'n1')
  const skew = { offsetMicros: 0, driftPpm: 0, timerLatenessMicros: 0 }
  const clock = createClock(process, skew, world.random)
  const seen: string[] = []
  world.schedule(5, 'first', () => {
    seen.push('first')
    clock.defer(() => seen.push('deferred'))
  })
  world.schedule(5, 'second', () => seen.push('second'))
  await world.run(never, second)
  expect(seen).toEqual(['first', 'second', 'deferred'])
})
