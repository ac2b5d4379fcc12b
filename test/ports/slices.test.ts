/** How the turns of a node are shared: how much one does, who goes on, and what ends with its client. */
import { expect, test } from 'vitest'
import type { Pace } from '../../src/ports/pace.ts'
import { Slices } from '../../src/ports/slices.ts'
import { defaultSliceLimits, type SliceLimits } from '../../src/ports/turn-budget.ts'
import type { Clock } from '../../src/ports/clock.ts'

/** A loop whose turns are taken by hand, with a clock that stands still unless it is moved. */
function createLoop(limits: Partial<SliceLimits> = {}) {
  let nowMs = 0
  let deferred: (() => void)[] = []
  const clock: Clock = {
    wallMicros: () => nowMs * 1000,
    monotonicMs: () => nowMs,
    setTimer: () => ({ cancel: () => undefined }),
    defer: (run) => void deferred.push(run),
  }
  const slices = new Slices(clock, { ...defaultSliceLimits, turnWorkMax: 10, ...limits })
  return {
    slices,
    pass: (ms: number) => (nowMs += ms),
    isIdle: () => deferred.length === 0,
    async turn(): Promise<void> {
      const due = deferred
      deferred = []
      for (const run of due) run()
      for (let hop = 0; hop < 20; hop++) await Promise.resolve()
    },
  }
}

/** Does a number of steps, and notes each. */
async function work(
  pace: Pace,
  steps: number,
  done: string[],
  name: string,
  cost = 1,
): Promise<void> {
  for (let step = 0; step < steps; step++) {
    const turn = pace.spend(cost)
    if (turn !== undefined) await turn
    done.push(name)
  }
}

test('COST-1: a sum that is rounded down is within the limit with the last step, too', async () => {
  const { slices, turn, isIdle } = createLoop({ turnWorkMax: 16 })
  const line = slices.open()
  for (const part of [5, 5, 1.2, 1.2, 1.2, 1.2, 1.2])
    expect(line.task().spend(part)).toBeUndefined()
  // In doubles these are a hair less than 16, and with 100 more they are 116.
  expect(line.task().spend(100)).toBeUndefined()
  await turn()
  expect(isIdle()).toBe(true)
})

test('COST-1: a turn does a bounded amount of work, even while the clock stands still', async () => {
  const { slices, turn, isIdle } = createLoop()
  const done: string[] = []
  const all = work(slices.open().task(), 35, done, 'a')
  const counts: number[] = [done.length]
  for (let nth = 0; nth < 4; nth++) {
    await turn()
    counts.push(done.length)
  }
  expect(counts).toEqual([10, 20, 30, 35, 35])
  await all
  await turn()
  expect(isIdle()).toBe(true)
})

test('COST-1: a turn ends when it has lasted long, however little was counted', async () => {
  const { slices, turn, pass } = createLoop({ turnWorkMax: 1_000 })
  const done: string[] = []
  const pace = slices.open().task()
  slices.note(40)
  await work(pace, 5, done, 'a')
  pass(6)
  const rest = work(pace, 5, done, 'a')
  expect(done).toHaveLength(5)
  await turn()
  await rest
  expect(done).toHaveLength(10)
})

test('clients go on in turns, and the requests of one in the order in which they began', async () => {
  const { slices, turn } = createLoop({ turnWorkMax: 3 })
  const [one, other] = [slices.open(), slices.open()]
  const done: string[] = []
  const first = one.task()
  const second = one.task()
  slices.note(3)
  const all = [
    work(second, 2, done, 'second'),
    work(first, 2, done, 'first'),
    work(other.task(), 2, done, 'other'),
  ]
  for (let nth = 0; nth < 6; nth++) await turn()
  await Promise.all(all)
  expect(done.slice(0, 3)).toEqual(['first', 'other', 'second'])
})

test('a request begins when none that began before it waits, and steps of others have room', async () => {
  const { slices, turn } = createLoop({ turnWorkMax: 2, clientStepsMax: 1 })
  const line = slices.open()
  const done: string[] = []
  const task = line.task()
  const before = work(task, 5, done, 'before')
  const begun = line.begin(1)
  expect(begun).not.toBe(true)
  task.enter()
  void Promise.resolve(begun).then(() => done.push('begun'))
  for (let nth = 0; nth < 6; nth++) await turn()
  await before
  expect(done).toEqual(['before', 'before', 'before', 'before', 'before'])
  task.leave()
  for (let nth = 0; nth < 2; nth++) await turn()
  expect(done.at(-1)).toBe('begun')
})

test('COST-3: when too much is held a few go on, the oldest first, and all when it is given back', async () => {
  const { slices, turn, isIdle } = createLoop({ answerBytesMax: 100, growingMax: 1 })
  const [old, young] = [slices.open().task(), slices.open().task()]
  old.take(60)
  young.take(60)
  expect(slices.answerBytes).toBe(120)
  const done: string[] = []
  const all = [work(young, 3, done, 'young'), work(old, 3, done, 'old')]
  for (let nth = 0; nth < 3; nth++) await turn()
  expect(done).toEqual(['old', 'old', 'old'])
  // A task that waits for room costs no turns.
  expect(isIdle()).toBe(true)
  old.end()
  for (let nth = 0; nth < 2; nth++) await turn()
  await Promise.all(all)
  expect(done).toHaveLength(6)
  young.end()
  expect(slices.answerBytes).toBe(0)
})

test('COST-3: nothing goes on for a client that is held, and all of it when it is not any more', async () => {
  const { slices, turn, isIdle } = createLoop()
  const line = slices.open()
  line.hold()
  const done: string[] = []
  const all = work(line.task(), 2, done, 'a')
  await turn()
  expect(done).toEqual([])
  expect(isIdle()).toBe(true)
  line.release()
  await turn()
  await all
  expect(done).toEqual(['a', 'a'])
})

test('COST-4: work for a client that is gone ends, and so does its next step', async () => {
  const { slices } = createLoop({ turnWorkMax: 1 })
  const line = slices.open()
  const task = line.task()
  const told: string[] = []
  task.onGone(() => told.push('gone'))
  const done: string[] = []
  const all = work(task, 3, done, 'a')
  line.close()
  await expect(all).rejects.toMatchObject({ code: 'closed' })
  expect(done).toEqual(['a'])
  expect(told).toEqual(['gone'])
  expect(task.isGone).toBe(true)
  expect(() => task.spend(1)).toThrow('gone')
  expect(() => task.onGone(() => undefined)).toThrow('gone')
})

test('COST-4: a cancelled request ends, and others of its client go on', async () => {
  const { slices, turn } = createLoop({ turnWorkMax: 1 })
  const line = slices.open()
  const [ended, other] = [line.task(), line.task()]
  const told: string[] = []
  ended.onGone(() => told.push('gone'))
  const done: string[] = []
  const both = [work(ended, 3, done, 'a'), work(other, 2, done, 'b')] as const
  ended.cancel()
  await expect(both[0]).rejects.toMatchObject({ code: 'closed' })
  for (let turns = 0; turns < 4; turns++) await turn()
  await both[1]
  expect(done).toEqual(['a', 'b', 'b'])
  expect(told).toEqual(['gone'])
  expect([ended.isGone, other.isGone]).toEqual([true, false])
  expect(() => ended.spend(1)).toThrow('gone')
  expect(() => ended.onGone(() => undefined)).toThrow('gone')
})
