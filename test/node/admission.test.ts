/** A node with too many requests begins a bounded part in bounded time, and refuses the rest. */
import { expect, test } from 'vitest'
import * as fc from 'fast-check'
import type { Problem } from '../../src/base/problem.ts'
import { Admission, defaultAdmissionLimits, type Pass } from '../../src/node/admission.ts'
import { Lane } from '../../src/node/lane.ts'
import { defaultWorkLimits, WorkLimit } from '../../src/node/work-limit.ts'
import { createBench, passMs } from '../cells/kit.ts'

const limits = { targetMs: 200, intervalMs: 500, waitingMax: 1_000, fewMax: 0 }

test('LOAD-1 LOAD-2: no request begins too late, under any arrivals and starts', () => {
  const event = fc.record({
    afterMs: fc.integer({ min: 0, max: 300 }),
    timeoutMs: fc.integer({ min: 1, max: 2_000 }),
    begins: fc.integer({ min: 0, max: 3 }),
  })
  fc.assert(
    fc.property(fc.array(event, { maxLength: 100 }), (events) => {
      const lane = new Lane<{ readonly sinceMs: number; readonly deadlineMs: number }>(limits)
      let nowMs = 0
      let [came, ended] = [0, 0]
      for (const { afterMs, timeoutMs, begins } of events) {
        nowMs += afterMs
        came += 1
        if (!lane.add({ sinceMs: nowMs, deadlineMs: nowMs + timeoutMs }, nowMs)) ended += 1
        for (let i = 0; i < begins; i++) {
          const one = lane.next(nowMs, () => (ended += 1))
          if (one === undefined) break
          ended += 1
          expect(nowMs - one.sinceMs).toBeLessThanOrEqual(limits.intervalMs)
          expect(nowMs).toBeLessThan(one.deadlineMs)
        }
      }
      lane.clear(() => (ended += 1))
      expect(ended).toBe(came)
    }),
  )
})

test('LOAD-1: a lane takes a burst, and refuses at once while its queue stands', () => {
  const lane = new Lane<{ readonly sinceMs: number; readonly deadlineMs: number }>(limits)
  const add = (nowMs: number): boolean =>
    lane.add({ sinceMs: nowMs, deadlineMs: nowMs + 10_000 }, nowMs)
  let late = 0
  for (let i = 0; i < 100; i++) expect(add(0)).toBe(true)
  lane.shed(499, () => (late += 1))
  expect(late).toBe(0)
  lane.shed(501, () => (late += 1))
  expect(late).toBe(100)
  // One more than is begun comes each 10 ms, for as long as it takes the queue to stand.
  let refused = 0
  for (let nowMs = 1_000; nowMs < 4_000; nowMs += 10) {
    if (!add(nowMs)) refused += 1
    if (!add(nowMs)) refused += 1
    lane.next(nowMs, () => (late += 1))
  }
  expect(refused).toBeGreaterThan(50)
  expect(lane.waitedMs(4_000)).toBeLessThanOrEqual(limits.targetMs + 20)
})

test('LOAD-1: the last few wait for as long as their time lasts, also where a queue stood', () => {
  const lane = new Lane<{ readonly sinceMs: number; readonly deadlineMs: number }>({
    ...limits,
    fewMax: 4,
  })
  const late: number[] = []
  const onLate = ({ deadlineMs }: { readonly deadlineMs: number }): void =>
    void late.push(deadlineMs)
  for (let nth = 0; nth < 10; nth++) {
    expect(lane.add({ sinceMs: 0, deadlineMs: 2_000 + nth }, 0)).toBe(true)
  }
  // The node has stood still for a second.
  lane.shed(1_000, onLate)
  expect(late).toEqual([2_000, 2_001, 2_002, 2_003, 2_004, 2_005])
  expect(lane.next(1_001, onLate)?.deadlineMs).toBe(2_006)
  expect(lane.add({ sinceMs: 1_001, deadlineMs: 1_500 }, 1_001)).toBe(true)
  // A call gets its refusal when its time is over, also when others are before it.
  expect(lane.dueMs).toBe(1_500)
  lane.shed(1_500, onLate)
  expect(late.at(-1)).toBe(1_500)
  expect(lane.length).toBe(3)
  expect(lane.next(1_990, onLate)?.deadlineMs).toBe(2_007)
})

test('LOAD-1: a node that stood still does not refuse clients that ask for little', async () => {
  const { world, clockOf } = createBench()
  const work = { ...defaultWorkLimits, startMax: 2, leastMax: 2 }
  const admission = new Admission(clockOf('n1'), { ...defaultAdmissionLimits, work })
  const passes: Pass[] = []
  const told: Problem[] = []
  for (let i = 0; i < 30; i++) {
    void admission.pass('writes', 10_000).then((pass) => {
      if ('code' in pass) told.push(pass)
      else passes.push(pass)
    })
  }
  await passMs(world, 5_000)
  for (let i = 0; i < 30; i++) {
    await passMs(world, 10)
    passes[i]?.leave('done')
  }
  expect(told).toEqual([])
  expect(passes.length).toBe(30)
})

test('LOAD-1: where a queue waits to be taken up, a request that has waited long is refused for load', () => {
  const { clockOf } = createBench()
  const admission = new Admission(clockOf('n1'))
  const { fewMax, intervalMs } = defaultAdmissionLimits
  const enter = (behind: number, waitedMs: number, timeoutMs: number): string => {
    let told = ''
    admission.enter({
      ...{ lane: 'writes', sinceMs: admission.nowMs - waitedMs, timeoutMs, behind },
      begin: () => {
        told = 'begun'
        return false
      },
      refuse: ({ code }) => (told = code),
    })
    return told
  }
  expect(enter(fewMax, intervalMs + 1, 5_000)).toBe('begun')
  expect(enter(fewMax + 1, intervalMs, 5_000)).toBe('begun')
  expect(enter(fewMax + 1, intervalMs + 1, 5_000)).toBe('overloaded')
  expect(enter(fewMax, 2_000, 1_800), 'few wait').toBe('unavailable')
  expect(enter(fewMax + 1, 400, 300)).toBe('overloaded')
})

test('LOAD-5: an idle node does not refuse a late request as overload', () => {
  const { clockOf } = createBench()
  const clock = clockOf('n1')
  const admission = new Admission(clock)
  const told: Problem[] = []
  const begin = (): boolean => expect.unreachable()
  const entrant = { lane: 'writes', timeoutMs: 1_000, begin } as const
  const sinceMs = clock.monotonicMs() - 2_000
  admission.enter({ ...entrant, sinceMs, refuse: (why) => told.push(why) })
  expect(told.map(({ code }) => code)).toEqual(['unavailable'])
  expect(admission.figures.refused.writes).toBe(0)
})

test('LOAD-3: the limit follows how long work takes, and finds what a node can do', () => {
  const limit = new WorkLimit(defaultWorkLimits)
  // A node that ends one in 2 ms, whatever is at work: 500 a second.
  const ends: number[] = []
  const begun: number[] = []
  for (let nowMs = 0; nowMs < 20_000; nowMs += 2) {
    while (limit.hasRoom) {
      limit.begin()
      begun.push(nowMs)
      ends.push((ends.at(-1) ?? nowMs) + 2)
    }
    while (ends.length > 0 && (ends[0] ?? 0) <= nowMs) {
      ends.shift()
      limit.end(nowMs, begun.shift() ?? 0, 'done')
    }
    if (ends.length > 0 && (ends[0] ?? 0) < nowMs) ends[0] = nowMs
  }
  // There are 200 that wait 400 ms.
  expect(limit.max).toBeGreaterThan(100)
  expect(limit.max).toBeLessThan(300)
})

test('LOAD-3: far replicas make commits long, and no fewer are at work for it', () => {
  const limit = new WorkLimit(defaultWorkLimits)
  for (let nowMs = 0; nowMs < 20_000; nowMs += 600) {
    for (let i = 0; i < 60; i++) limit.begin()
    for (let i = 0; i < 60; i++) limit.end(nowMs + 600, nowMs, 'done')
  }
  expect(limit.max).toBeGreaterThanOrEqual(defaultWorkLimits.startMax)
})

test('LOAD-4: a turn begins a part of what has come, and the next ones the rest', async () => {
  const { world, clockOf } = createBench()
  const clock = clockOf('n1')
  const admission = new Admission(clock, { ...defaultAdmissionLimits, turnBeginsMax: 10 })
  let begun = 0
  const refuse = (): void => expect.unreachable()
  for (let i = 0; i < 100; i++) {
    admission.enter({
      ...{ lane: 'reads', timeoutMs: 1_000, refuse },
      begin: () => (begun += 1) > 0,
    })
  }
  expect(begun).toBe(10)
  await passMs(world, 50)
  expect(begun).toBe(100)
})

test('LOAD-5: a refusal says when to come again, and later the more requests are refused', async () => {
  const { world, clockOf } = createBench()
  const clock = clockOf('n1')
  const work = { ...defaultWorkLimits, startMax: 1, leastMax: 1 }
  const admission = new Admission(clock, { ...defaultAdmissionLimits, work })
  const passes: Pass[] = []
  const told: Problem[] = []
  for (let round = 0; round < 300; round++) {
    for (let i = 0; i < 10; i++) {
      void admission.pass('writes', 2_000).then((pass) => {
        if ('code' in pass) told.push(pass)
        else passes.push(pass)
      })
    }
    await passMs(world, 10)
    passes.shift()?.leave('done')
  }
  expect(told.length).toBeGreaterThan(2_000)
  for (const { code, detail } of told) {
    expect(code).toBe('overloaded')
    expect(detail.retryAfterMs).toBeGreaterThanOrEqual(defaultAdmissionLimits.retryAfterMsMin)
    expect(detail.retryAfterMs).toBeLessThanOrEqual(defaultAdmissionLimits.retryAfterMsMax)
  }
  const longest = Math.max(...told.map(({ detail }) => detail.retryAfterMs ?? 0))
  expect(longest).toBe(defaultAdmissionLimits.retryAfterMsMax)
  expect(admission.figures.refused.writes).toBe(told.length)
})
