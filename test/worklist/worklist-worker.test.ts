/**
 * How workers serve a topic: each listed group in its turn, a node's own at once, another node's when that
 * one does not.
 */
import { expect, test } from 'vitest'
import { groupOfBytes, type GroupId, type Position } from '../../src/base/ids.ts'
import type { Worklist, ListedGroup } from '../../src/group/replica-port.ts'
import { worklistBounds, WorklistWorker, type Served } from '../../src/worklist/worklist-worker.ts'
import { createBench, exactClock, passMs } from '../cells/kit.ts'
import { createClock } from '../../sim/world/clock.ts'
import { SimProcess } from '../../sim/world/sim-process.ts'

function group(name: string): GroupId {
  return groupOfBytes(Buffer.from(name))
}

/** A listing to play with, and a worker on it that notes whom it serves. */
class Desk implements Worklist {
  readonly served: string[] = []
  readonly failed: string[] = []
  readonly listed = new Map<GroupId, Position>()
  readonly foreign = new Set<GroupId>()
  lists = 0
  underWay = 0
  mostUnderWay = 0
  answer: (group: GroupId) => Promise<Served> = () =>
    Promise.resolve({ kind: 'empty', position: 9 })
  readonly worker: WorklistWorker
  readonly #bench = createBench(1)
  #wake: (listed: ListedGroup) => void = () => undefined

  constructor(bounds = worklistBounds) {
    const { world, random } = this.#bench
    const clock = createClock(new SimProcess(world, 'n1'), exactClock, random)
    this.worker = new WorklistWorker({
      ...{ topic: 'out', worklist: this, clock, random, bounds },
      serve: (one) => this.#serve(one),
      onFailed: (one) => this.failed.push(one),
    })
  }

  list(_topic: string, after: GroupId | undefined, limit: number): Promise<ListedGroup[]> {
    this.lists += 1
    const groups = [...this.listed].map(([one, position]) => ({ group: one, position }))
    const ordered = groups.toSorted((a, b) => (a.group < b.group ? -1 : 1))
    return Promise.resolve(ordered.filter((one) => one.group > (after ?? '')).slice(0, limit))
  }

  unlist(_topic: string, one: GroupId, position: Position): void {
    if ((this.listed.get(one) ?? 0) <= position) this.listed.delete(one)
  }

  watch(_topic: string, wake: (listed: ListedGroup) => void): () => void {
    this.#wake = wake
    return () => {
      this.#wake = () => undefined
    }
  }

  isOurs(one: GroupId): boolean {
    return !this.foreign.has(one)
  }

  put(name: string, position: Position): void {
    this.listed.set(group(name), position)
    this.#wake({ group: group(name), position })
  }

  async #serve(one: GroupId): Promise<Served> {
    this.served.push(one)
    this.underWay += 1
    this.mostUnderWay = Math.max(this.mostUnderWay, this.underWay)
    try {
      return await this.answer(one)
    } finally {
      this.underWay -= 1
    }
  }

  get nowMs(): number {
    return this.#bench.world.nowMicros / 1000
  }

  sleep(ms: number): Promise<void> {
    return this.#bench.world.sleep(ms * 1000)
  }

  pass(ms: number): Promise<void> {
    return passMs(this.#bench.world, ms)
  }
}

test('the worker serves listed and new groups at once, and unlists an empty one', async () => {
  const desk = new Desk()
  desk.listed.set(group('a'), 1)
  desk.worker.start()
  await desk.pass(10)
  desk.put('b', 2)
  await desk.pass(10)
  expect(desk.served).toEqual(['a', 'b'])
  expect([...desk.listed]).toEqual([])
  await desk.pass(20_000)
  expect(desk.served).toEqual(['a', 'b'])
  expect(desk.lists).toBeLessThan(25)
  await desk.worker.stop()
  desk.put('c', 1)
  await desk.pass(5_000)
  expect(desk.served).toEqual(['a', 'b'])
})

test('the worker serves a bounded number at once, pages through a long listing and skips no group', async () => {
  const desk = new Desk({
    ...worklistBounds,
    groupsAtOnceMax: 3,
    pageGroups: 10,
    groupsWaitingMax: 10,
  })
  const names = Array.from({ length: 50 }, (_name, i) => `g${String(i).padStart(2, '0')}`)
  for (const name of names) desk.listed.set(group(name), 1)
  desk.answer = async () => {
    await desk.sleep(20)
    return { kind: 'empty', position: 1 }
  }
  desk.worker.start()
  await desk.pass(10_000)
  expect(new Set(desk.served)).toEqual(new Set(names))
  expect(desk.mostUnderWay).toBe(3)
  expect(desk.worker.busyGroups).toBe(0)
  await desk.worker.stop()
})

test('the worker serves a group again if rows come while it serves it', async () => {
  const desk = new Desk()
  desk.answer = async () => {
    await desk.sleep(100)
    return { kind: 'empty', position: 1 }
  }
  desk.worker.start()
  desk.put('a', 1)
  await desk.pass(50)
  desk.put('a', 2)
  desk.put('a', 3)
  await desk.pass(500)
  expect(desk.served).toEqual(['a', 'a'])
  await desk.worker.stop()
})

test('the worker reports a failure and retries after longer and longer waits', async () => {
  const desk = new Desk()
  let isBroken = true
  desk.answer = () =>
    isBroken ? Promise.reject(new Error('no')) : Promise.resolve({ kind: 'empty', position: 1 })
  desk.worker.start()
  desk.put('a', 1)
  await desk.pass(60_000)
  expect(desk.failed.length).toBeGreaterThan(8)
  expect(desk.failed.length).toBeLessThan(25)
  isBroken = false
  await desk.pass(worklistBounds.backoffMaxMs + 100)
  expect([...desk.listed]).toEqual([])
  await desk.worker.stop()
})

test('groups that fail have half of the slots at most, and those that do not are not kept waiting', async () => {
  const desk = new Desk({ ...worklistBounds, groupsAtOnceMax: 4, backoffMaxMs: 50 })
  for (let i = 0; i < 20; i++) desk.listed.set(group(`silent${i}`), 1)
  const late: number[] = []
  const putAt = new Map<GroupId, number>()
  desk.answer = async (one) => {
    if (!putAt.has(one)) {
      // As of a caller that does not answer.
      await desk.sleep(10_000)
      throw new Error('no answer')
    }
    late.push(desk.nowMs - (putAt.get(one) ?? 0))
    return { kind: 'empty', position: 1 }
  }
  desk.worker.start()
  // All of them have failed once.
  await desk.pass(120_000)
  const before = desk.served.length
  for (let i = 0; i < 20; i++) {
    putAt.set(group(`well${i}`), desk.nowMs)
    desk.put(`well${i}`, 1)
    await desk.pass(1_000)
  }
  expect(late).toHaveLength(20)
  expect(Math.max(...late)).toBeLessThan(10)
  // The others are served all the same, two at a time.
  expect(desk.served.length - before - 20).toBeGreaterThanOrEqual(4)
  expect(desk.mostUnderWay).toBe(4)
  const stopped = desk.worker.stop()
  await desk.pass(10_000)
  await stopped
})

test('a group of which a part could be done is looked at soon when something new comes, others wait', async () => {
  const desk = new Desk()
  const error = new Error('one of two')
  let isPartly = false
  desk.answer = () =>
    isPartly ? Promise.resolve({ kind: 'partly', error }) : Promise.reject(error)
  const put10 = async (): Promise<number> => {
    const before = desk.failed.length
    for (let i = 1; i <= 10; i++) {
      desk.put('a', i)
      await desk.pass(2 * worklistBounds.backoffMs)
    }
    return desk.failed.length - before
  }
  desk.worker.start()
  desk.put('a', 1)
  await desk.pass(60_000)
  expect(await put10()).toBeLessThanOrEqual(1)
  isPartly = true
  await desk.pass(10_000)
  expect(await put10()).toBeGreaterThanOrEqual(10)
  // A failed group with nothing new in it says nothing of the new ones.
  isPartly = false
  const before = desk.failed.length
  await desk.pass(60_000)
  expect(desk.failed.length - before).toBeLessThan(15)
  expect(await put10()).toBeGreaterThanOrEqual(10)
  await desk.worker.stop()
})

test('the worker looks at a group due later at that time, or as soon as something new comes', async () => {
  const desk = new Desk()
  desk.answer = () => Promise.resolve({ kind: 'later', delayMs: 5_000, position: 2 })
  desk.worker.start()
  desk.put('a', 1)
  await desk.pass(4_900)
  expect(desk.served).toHaveLength(1)
  await desk.pass(300)
  expect(desk.served).toHaveLength(2)
  desk.put('a', 2)
  await desk.pass(10)
  expect(desk.served).toHaveLength(3)
  await desk.worker.stop()
})

test('groups that are due later, more than a page, are not looked at before', async () => {
  const desk = new Desk({ ...worklistBounds, pageGroups: 10 })
  for (let i = 0; i < 50; i++) desk.listed.set(group(`g${i}`), 1)
  desk.answer = () => Promise.resolve({ kind: 'later', delayMs: 60_000, position: 1 })
  desk.worker.start()
  await desk.pass(50_000)
  expect(desk.served).toHaveLength(50)
  await desk.pass(20_000)
  expect(desk.served).toHaveLength(100)
  await desk.worker.stop()
})

test('the worker looks at each postponed group in its turn, even beyond its memory', async () => {
  const bounds = { groupsAtOnceMax: 2, pageGroups: 10, groupsWaitingMax: 20 }
  const desk = new Desk({ ...worklistBounds, ...bounds })
  const names = Array.from({ length: 50 }, (_name, i) => `g${String(i).padStart(2, '0')}`)
  for (const name of names) desk.listed.set(group(name), 1)
  const delayMs = 3_600_000
  desk.answer = (one) =>
    Promise.resolve(
      one === group('g49')
        ? { kind: 'empty', position: 1 }
        : { kind: 'later', delayMs, position: 1 },
    )
  desk.worker.start()
  await desk.pass(30_000)
  expect(new Set(desk.served)).toEqual(new Set(names))
  expect([...desk.listed.keys()]).not.toContain('g49')
  // Those remembered once; of the others no more with each look than are served at once, and wait for it.
  const times = (name: string): number => desk.served.filter((one) => one === name).length
  expect(names.filter((name) => times(name) === 1).length).toBeGreaterThanOrEqual(20)
  expect(desk.served.length).toBeLessThanOrEqual(20 + 31 * 2 * bounds.groupsAtOnceMax)
  const before = desk.served.length
  desk.put('new', 1)
  await desk.pass(10)
  expect(desk.served.slice(before)).toContain('new')
  await desk.worker.stop()
})

test('the worker finds rows of a postponed group that a process heard of and died', async () => {
  const desk = new Desk()
  desk.answer = (one) =>
    Promise.resolve({ kind: 'later', delayMs: 3_600_000, position: desk.listed.get(one) ?? 0 })
  desk.worker.start()
  desk.put('a', 1)
  await desk.pass(100)
  desk.foreign.add(group('a'))
  desk.put('a', 2)
  await desk.pass(100)
  expect(desk.served).toHaveLength(1)
  desk.foreign.clear()
  await desk.pass(2 * worklistBounds.lookMs)
  expect(desk.served).toHaveLength(2)
  // The other one lives, but does nothing.
  desk.foreign.add(group('a'))
  desk.put('a', 3)
  await desk.pass(worklistBounds.patienceMs - worklistBounds.lookMs)
  expect(desk.served).toHaveLength(2)
  await desk.pass(3 * worklistBounds.lookMs)
  expect(desk.served).toHaveLength(3)
  await desk.pass(600_000)
  expect(desk.served).toHaveLength(3)
  await desk.worker.stop()
})

test('another node’s group is left to it for a while, and taken over when nothing happens', async () => {
  const desk = new Desk()
  desk.foreign.add(group('a'))
  desk.worker.start()
  desk.put('a', 1)
  await desk.pass(2_500)
  desk.put('a', 2)
  await desk.pass(2_500)
  expect(desk.served).toEqual([])
  await desk.pass(3_000)
  expect(desk.served).toEqual(['a'])
  await desk.worker.stop()
})
