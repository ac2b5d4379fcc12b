/** A client whose nodes have too much to do: it retries little, holds back, and asks nothing twice at once. */
import { expect, test } from 'vitest'
import { StoreError } from '../../src/base/errors.ts'
import { defaultClientLimits } from '../../src/client/caller.ts'
import { RetryBudget } from '../../src/client/retry-budget.ts'
import { Throttle } from '../../src/client/throttle.ts'
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

test('a throttle lets through about what is taken, and all of it once nobody is refused', () => {
  const throttle = new Throttle({ sentPerTaken: 1.5, windowMs: 2_000 })
  let at = 0
  // Spread evenly: no chance is needed to see a part.
  const chance = (millionths: number): boolean => (at += 618_034) % 1_000_000 < millionths
  let [sent, taken] = [0, 0]
  for (let nowMs = 0; nowMs < 10_000; nowMs += 1) {
    throttle.onAsked(nowMs)
    if (!throttle.maySend(nowMs, chance)) continue
    sent += 1
    if (nowMs % 10 === 0 || taken * 10 < nowMs) {
      taken += 1
      throttle.onTaken(nowMs)
    } else throttle.onRefused(nowMs, 500)
  }
  expect(sent).toBeLessThan(taken * 2)
  expect(throttle.maySend(10_600, () => true)).toBe(true)
})

test('LOAD-7: what waits at a node is sent again when its time there is over, and not before', async () => {
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
  await at(perSecond, 5, () => (offered.ok += 1))
  await at(200, 2, () => undefined)
  await at(200, 1, () => (offered.okAfter += 1))
  await world.sleep(12_000_000)
  return offered
}

test.each([
  [4, 2],
  [10, 200],
])(
  'LOAD-5 LOAD-6: at %i times what nodes can do, from %i clients, they do it',
  async (by, clients) => {
    // Two nodes with 200 a second each, in 5 s.
    const capacity = 2 * 200 * 5
    const cluster: FakeCluster = createCluster({ wrap: slow(() => cluster, 5) })
    const { world } = cluster.bench
    const { ok, refused, others, okAfter } = await settled(world, offer(cluster, by * 400, clients))
    expect(ok).toBeGreaterThan(0.8 * capacity)
    expect(refused.length).toBeGreaterThan(0.5 * (by - 1) * capacity)
    for (const { detail } of refused) expect(detail.retryAfterMs).toBeGreaterThan(0)
    expect(others.length).toBeLessThan(0.02 * by * capacity)
    expect(okAfter).toBeGreaterThan(0.95 * 200)
  },
)
