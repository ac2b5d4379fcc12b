/** A client whose nodes have too much to do: it retries little, holds back, and asks nothing twice at once. */
import { expect, test } from 'vitest'
import { StoreError } from '../../src/base/errors.ts'
import { groupOfBytes } from '../../src/base/ids.ts'
import { problem } from '../../src/base/problem.ts'
import { findOverload } from '../../src/client/call.ts'
import { defaultClientLimits } from '../../src/client/client-limits.ts'
import { RetryBudget } from '../../src/client/retry-budget.ts'
import { CallQueue } from '../../src/client/call-queue.ts'
import { Window } from '../../src/client/window.ts'
import type { CellService } from '../../src/cells/operation.ts'
import { passMs, rowKey, settled } from '../cells/kit.ts'
import { createCluster, type FakeCluster } from './cluster.ts'

test('LOAD-6: retries are a part of what was answered, and a few', () => {
  const budget = new RetryBudget(defaultClientLimits, 0)
  const takeAll = (nowMs: number): number => {
    let taken = 0
    while (budget.take(nowMs)) taken += 1
    return taken
  }
  let refused = 0
  while (budget.take(0, true)) refused += 1
  // The last few are for calls that do not know what became of them.
  expect(refused).toBe(8)
  expect(takeAll(0)).toBe(8)
  for (let i = 0; i < 100; i++) budget.onAnswered()
  expect(takeAll(0)).toBeGreaterThanOrEqual(19)
  expect(takeAll(10_000)).toBeLessThanOrEqual(2)
  expect(takeAll(3_600_000)).toBe(16)
})

test('LOAD-8: a window grows with answers, halves once a round trip, and rests when it is one', () => {
  const window = new Window({ windowStart: 8, windowMax: 64, fewMax: 4 })
  const fill = (nowMs: number): number => {
    let begun = 0
    for (; window.hasRoom(nowMs); begun++) window.begin(nowMs)
    return begun
  }
  const answer = (count: number): void => {
    for (let i = 0; i < count; i++) {
      window.onTaken()
      window.end()
    }
  }
  expect(fill(0)).toBe(8)
  answer(8)
  // It was filled, and half of it again: the client does not raise a size that is enough.
  expect(window.size).toBeGreaterThan(10)
  for (let round = 0; round < 20; round++) answer(fill(round))
  expect(window.size).toBe(64)
  expect(fill(100)).toBe(64)
  for (let i = 0; i < 64; i++) {
    window.end()
    window.onRefused(200, 100, 50)
  }
  expect(window.size).toBe(32)
  for (let nowMs = 300; window.size > 1; nowMs += 100) {
    expect(fill(nowMs)).toBe(window.size)
    const { inFlight } = window
    for (let i = 0; i < inFlight; i++) window.end()
    window.onRefused(nowMs + 50, nowMs, 50)
    expect(window.isHurried(nowMs + 99)).toBe(true)
    expect(nowMs).toBeLessThan(1_500)
  }
  const restsUntilMs = window.roomAtMs
  expect(window.hasRoom(restsUntilMs - 1)).toBe(false)
  expect(fill(restsUntilMs)).toBe(1)
  answer(1)
  expect(window.size).toBe(2)
})

test('LOAD-8: the client still sends a few requests to a silent node', () => {
  const window = new Window({ windowStart: 16, windowMax: 64, fewMax: 4 })
  for (let nowMs = 0; nowMs < 10; nowMs++) {
    window.begin(nowMs)
    window.end()
    window.onLost(nowMs, nowMs)
  }
  expect(window.size).toBe(4)
  // How much it can do is as unknown as before: the window doubles again.
  for (let nth = 0; nth < 4; nth++) window.begin(20)
  for (let nth = 0; nth < 4; nth++) {
    window.onTaken()
    window.end()
  }
  expect(window.size).toBeGreaterThanOrEqual(6)
  for (let i = window.size; i > 4; i--) window.onRefused(100 + i, 100 + i, 50)
  window.onRefused(200, 200, 50)
  expect(window.size).toBeLessThan(4)
})

interface One {
  readonly nth: number
  readonly cameMs: number
  readonly deadlineMs: number
  heldUntilMs: number | undefined
  fewUntilMs: number | undefined
  isUnsure: boolean
  isOver: boolean
}

function oneOf(nth: number, deadlineMs: number, isOver = false): One {
  const unset = { heldUntilMs: undefined, fewUntilMs: undefined }
  return { nth, cameMs: 0, deadlineMs, ...unset, isUnsure: false, isOver }
}

const queueLimits = {
  ...{ standingMs: 500, fewStandingMs: 1_000, fewMax: 8, burstMs: 500, loadMs: 2_000 },
}

/**
 * A client that gets `perSecond` calls and `answered` answers a second: when it first refused a call, and how
 * long other calls waited. `isRefusing`: nodes say that they have too much to do. `atOnce`: how many answers
 * come together.
 */
function standing(
  perSecond: number,
  answered: number,
  isRefusing = true,
  atOnce = 1,
): { refusedMs: number; longestMs: number } {
  const queue = new CallQueue<One>(queueLimits)
  let [came, done, refusedMs, longestMs] = [0, 0, Number.POSITIVE_INFINITY, 0]
  for (let nowMs = 0; nowMs < 20_000; nowMs++) {
    for (; came < (perSecond * nowMs) / 1_000; came++) {
      const deadlineMs = nowMs + 10_000
      const isWaiting = queue.length > 0
      if (isWaiting && queue.refusalMs(deadlineMs, nowMs) !== undefined) {
        refusedMs = Math.min(refusedMs, nowMs)
      } else queue.addLast(oneOf(came, deadlineMs), nowMs)
    }
    if (isRefusing) queue.onRefused(nowMs)
    if (queue.shed(nowMs).length > 0) refusedMs = Math.min(refusedMs, nowMs)
    const due = atOnce * Math.floor((answered * nowMs) / 1_000 / atOnce)
    for (; done < due; done++) {
      const one = queue.first(nowMs, () => expect.unreachable())
      if (one === undefined) continue
      if (nowMs > 15_000) longestMs = Math.max(longestMs, nowMs - (one.deadlineMs - 10_000))
      queue.take(one, nowMs)
      queue.onAnswered(nowMs)
    }
  }
  return { refusedMs, longestMs }
}

test('LOAD-9: above capacity the client refuses at once calls that would wait long', () => {
  for (const times of [2, 4, 10]) {
    const { refusedMs, longestMs } = standing(times * 200, 200)
    expect(refusedMs).toBeLessThan(2_000)
    expect(longestMs).toBeLessThan(1_500)
  }
  expect(standing(190, 200).refusedMs).toBe(Number.POSITIVE_INFINITY)
})

test('LOAD-9: nodes that answer slowly and refuse nothing do not have calls wait until their time is over', () => {
  // Of many clients each is answered a few times a second.
  for (const [asked, answered] of [
    [24, 6],
    [60, 6],
    [9, 6],
  ] as const) {
    const { refusedMs, longestMs } = standing(asked, answered, false)
    expect(refusedMs).toBeLessThan(6_000)
    expect(longestMs).toBeLessThan(1_500)
  }
  expect(standing(6, 6, false).refusedMs).toBe(Number.POSITIVE_INFINITY)
  const inBursts = standing(60, 6, false, 6)
  expect(inBursts.refusedMs).toBeLessThan(6_000)
  expect(inBursts.longestMs).toBeLessThan(3_500)
})

test('LOAD-9: nodes that stand still for a while, and then go on, have no call refused', () => {
  for (const stillMs of [300, 700, 1_000, 1_400, 4_000]) {
    const queue = new CallQueue<One>(queueLimits)
    let [came, done] = [0, 0]
    for (let nowMs = 0; nowMs < 8_000; nowMs++) {
      for (; came < 0.15 * nowMs; came++) {
        expect(queue.refusalMs(nowMs + 20_000, nowMs)).toBeUndefined()
        queue.addLast(oneOf(came, nowMs + 20_000), nowMs)
        expect(queue.shed(nowMs)).toEqual([])
      }
      if (nowMs >= 1_000 && nowMs < 1_000 + stillMs) {
        done = 0.2 * nowMs
        continue
      }
      for (; done < 0.2 * nowMs; done++) {
        const one = queue.first(nowMs, () => expect.unreachable())
        if (one === undefined) continue
        queue.take(one, nowMs)
        queue.onAnswered(nowMs)
      }
    }
  }
})

test('LOAD-9: a burst is served by and by, in its order', () => {
  const queue = new CallQueue<One>(queueLimits)
  for (let nth = 0; nth < 4_000; nth++) {
    expect(queue.refusalMs(10_000, 0)).toBeUndefined()
    queue.addLast(oneOf(nth, 10_000), 0)
  }
  queue.onRefused(0)
  const order: number[] = []
  for (let nowMs = 1; nowMs <= 4_000; nowMs++) {
    const one = queue.first(nowMs, () => expect.unreachable())
    if (one === undefined) break
    queue.take(one, nowMs)
    queue.onAnswered(nowMs)
    // A part is refused, and comes back at once.
    if (nowMs % 2 === 0) queue.addFirst({ ...one, nth: 10_000 + one.nth }, nowMs)
    else order.push(one.nth % 10_000)
  }
  expect(order).toEqual(order.toSorted((a, b) => a - b))
  expect(queue.length).toBe(4_000 - order.length)
})

test('LOAD-9: a finished or overdue call blocks no other in the queue', () => {
  const queue = new CallQueue<One>(queueLimits)
  const late: number[] = []
  const [ended, short, long] = [oneOf(0, 1_000, true), oneOf(1, 10), oneOf(2, 1_000)] as const
  for (const one of [ended, short, long]) queue.addLast(one, 0)
  expect(queue.first(10, ({ nth }) => late.push(nth))).toBe(long)
  expect(late).toEqual([1])
  expect(queue.drop(() => true, 20)).toEqual([long])
  expect(queue.length).toBe(0)
})

test('LOAD-9: few calls end early where nodes refuse for load, and not where nodes are slow', () => {
  for (const isRefused of [true, false]) {
    const queue = new CallQueue<One>(queueLimits)
    const one = oneOf(0, 10_000)
    queue.hold(one, 500, 4)
    queue.addLast(one, 500)
    expect(queue.dueMs(one, 500)).toBe(1_500)
    if (isRefused) queue.onRefused(1_200)
    expect(queue.isLate(one, 1_499)).toBe(false)
    expect(queue.isLate(one, 1_500)).toBe(isRefused)
    expect(queue.isLate(one, 7_499)).toBe(false)
    expect(queue.isLate(one, 7_500)).toBe(true)
  }
})

test('LOAD-9: a node that stands still for seconds has no light client told of load', async () => {
  let stillUntilMs = 0
  const cluster: FakeCluster = createCluster({
    wrap: (store) => {
      const execute = store.execute.bind(store)
      return Object.assign(store, {
        answerNow: () => undefined,
        execute: async (...asked: Parameters<CellService['execute']>) => {
          const { world } = cluster.bench
          const leftMs = stillUntilMs - world.nowMicros / 1_000
          await world.sleep(1_000 * Math.max(20, Math.ceil(leftMs)))
          return execute(...asked)
        },
      })
    },
  })
  const { world } = cluster.bench
  const client = cluster.client({ tryTimeoutMs: 500 })
  let [put, ok] = [0, 0]
  const writer = async (): Promise<void> => {
    for (let i = 0; i < 60; i++) {
      const cell = { rowKey: rowKey(put++), column: 'A', refKey: 0, body: {} }
      await client.cells('still').put(cell, { timeoutMs: 20_000 })
      ok += 1
      if (ok % 60 === 0) stillUntilMs = world.nowMicros / 1_000 + 4_000
    }
  }
  await settled(world, Promise.all(Array.from({ length: 8 }, writer)))
  expect(ok).toBe(480)
})

test('LOAD-7: the client resends a request that waits at a node once its time there is over', async () => {
  const cluster = createCluster({
    wrap: (store) => Object.assign(store, { execute: () => new Promise(() => undefined) }),
  })
  const { world } = cluster.bench
  const client = cluster.client({ tryTimeoutMs: 2_000 })
  const cell = { rowKey: rowKey(1), column: 'A', refKey: 0, body: {} }
  const put = client.cells('load').put(cell, { timeoutMs: 3_000 })
  const sent = (): number =>
    cluster.frames.filter(({ frame }) => frame.kind === 'requests' && frame.requests.length > 0)
      .length
  await passMs(world, 1_700)
  expect(sent()).toBe(1)
  await passMs(world, 500)
  expect(sent()).toBe(2)
  await expect(settled(world, put)).rejects.toMatchObject({ code: 'unknown-outcome' })
})

/** A node that carries out one put in `msEach`, one after another. */
function slow(cluster: () => FakeCluster, msEach: number): (store: CellService) => CellService {
  return (store) => {
    const execute = store.execute.bind(store)
    let freeAtMs = 0
    return Object.assign(store, {
      answerNow: () => undefined,
      execute: async (...asked: Parameters<CellService['execute']>) => {
        const { world } = cluster().bench
        const nowMs = world.nowMicros / 1_000
        freeAtMs = Math.max(freeAtMs, nowMs) + msEach
        await world.sleep(Math.ceil((freeAtMs - nowMs) * 1_000))
        return execute(...asked)
      },
    })
  }
}

interface Offered {
  ok: number
  readonly refused: StoreError[]
  readonly others: StoreError[]
  /** Acknowledged in the second that follows the load, when as much comes as can be done. */
  okAfter: number
}

/** Puts that come at a fixed rate, whatever becomes of them. */
async function offer(cluster: FakeCluster, perSecond: number, clients: number): Promise<Offered> {
  const { world } = cluster.bench
  const all = Array.from({ length: clients }, (_, i) => cluster.client({}, `client${i}`))
  await world.sleep(200_000)
  const offered: Offered = { ok: 0, refused: [], others: [], okAfter: 0 }
  let sent = 0
  const put = (onOk: () => void): void => {
    const client = all[sent % clients]
    sent += 1
    const cell = { rowKey: rowKey(sent), column: 'A', refKey: 0, body: { sent } }
    client
      ?.cells('load')
      .put(cell, { timeoutMs: 10_000 })
      .then(onOk, (error: unknown) => {
        if (!(error instanceof StoreError)) throw error
        if (error.code === 'overloaded') offered.refused.push(error)
        else offered.others.push(error)
      })
  }
  const at = async (rate: number, seconds: number, onOk: () => void): Promise<void> => {
    for (let ms = 0; ms < seconds * 1_000; ms += 10) {
      for (let i = 0; i < rate / 100; i++) put(onOk)
      await world.sleep(10_000)
    }
  }
  await at(perSecond, 3, () => (offered.ok += 1))
  await at(100, 2, () => undefined)
  await at(100, 1, () => (offered.okAfter += 1))
  await world.sleep(12_000_000)
  return offered
}

test.each([
  [4, 2],
  [10, 100],
])(
  'LOAD-5 LOAD-6: at %i times what nodes can do, from %i clients, they do it',
  async (by, clients) => {
    // Two nodes with 100 a second each, in 3 s.
    const capacity = 2 * 100 * 3
    const cluster: FakeCluster = createCluster({ wrap: slow(() => cluster, 10) })
    const { world } = cluster.bench
    const { ok, refused, others, okAfter } = await settled(world, offer(cluster, by * 200, clients))
    expect(ok).toBeGreaterThan(0.8 * capacity)
    expect(refused.length).toBeGreaterThan(0.5 * (by - 1) * capacity)
    for (const { detail } of refused) expect(detail.retryAfterMs).toBeGreaterThan(0)
    expect(others.length).toBeLessThan(0.02 * by * capacity)
    expect(okAfter).toBeGreaterThan(0.95 * 100)
  },
)

test('LOAD-9: a burst from one program is served whole and in time', async () => {
  const cluster: FakeCluster = createCluster({ wrap: slow(() => cluster, 10) })
  const { world } = cluster.bench
  const client = cluster.client()
  const put = (nth: number): Promise<unknown> =>
    client.cells('burst').put({ rowKey: rowKey(nth), column: 'A', refKey: 0, body: { nth } })
  const puts = Array.from({ length: 600 }, (_, nth) => put(nth))
  await settled(world, Promise.all(puts))
  // Nodes had no room for all of them at once, and have said so.
  const isRefusal = ({ frame }: (typeof cluster.frames)[number]): boolean =>
    frame.kind === 'responses' &&
    frame.responses.some(({ answer }) => findOverload(answer) !== undefined)
  expect(cluster.frames.some(isRefusal)).toBe(true)
})

/** Of puts that come one after another, each refused once with `detail`, how many are served. */
async function servedOf(puts: number, detail: StoreError['detail']): Promise<number> {
  const refused = new Set<string>()
  const cluster: FakeCluster = createCluster({
    wrap: (store) => {
      const execute = store.execute.bind(store)
      return Object.assign(store, {
        answerNow: () => undefined,
        execute: (...asked: Parameters<CellService['execute']>) => {
          const text = JSON.stringify(asked[0])
          if (refused.has(text)) return execute(...asked)
          refused.add(text)
          const answer = {
            kind: 'problem',
            problem: problem('overloaded', 'full', detail),
          } as const
          return Promise.resolve({ answer, positions: [] })
        },
      })
    },
  })
  const { world } = cluster.bench
  const cells = cluster.client().cells('load')
  let served = 0
  for (let nth = 0; nth < puts; nth++) {
    const cell = { rowKey: rowKey(nth), column: 'A', refKey: 0, body: { nth } }
    const put = cells.put(cell).then(
      () => (served += 1),
      (error: unknown) => expect(error).toMatchObject({ code: 'overloaded' }),
    )
    await settled(world, put)
  }
  expect(refused.size).toBe(puts)
  return served
}

test('LOAD-10: the client resends what a node refuses even with an empty retry budget', async () => {
  expect(await servedOf(30, { retryAfterMs: 50 })).toBe(30)
  // A full group is full at every node: that is paid for.
  expect(
    await servedOf(30, { retryAfterMs: 50, group: groupOfBytes(Buffer.from('load')) }),
  ).toBeLessThan(20)
})
