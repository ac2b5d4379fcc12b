/** Real nodes with more requests than they can serve refuse the rest at once and stay awake. */
import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { connect, StoreError, type Client } from '../../src/index.ts'
import { startCluster } from './harness.ts'

const clientCount = 20
const tickMs = 10
/** Loops of puts, one after the other each, to find out what nodes and this process can do. */
const loops = 64
const bestMs = 1_000
const loadMs = 3_000
const times = 4
/** By then each machine has more to do than it can. */
const timesMax = 16 * times

interface Told {
  ok: number
  /** Refused for load without a word about when to come again. */
  untimed: number
  readonly codes: Record<string, number>
}

class Load {
  readonly told: Told = { ok: 0, untimed: 0, codes: {} }
  readonly underWay: Promise<void>[] = []
  readonly #clients: readonly Client[]

  constructor(clients: readonly Client[]) {
    this.#clients = clients
  }

  get sent(): number {
    return this.underWay.length
  }

  put(): Promise<void> {
    const put = this.#put(this.sent)
    this.underWay.push(put)
    return put
  }

  async #put(nth: number): Promise<void> {
    const { told } = this
    const cell = { rowKey: randomUUID(), column: 'A', refKey: 0, body: { nth } }
    try {
      await this.#clients[nth % clientCount]?.cells('load').put(cell)
      told.ok += 1
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
      told.codes[error.code] = (told.codes[error.code] ?? 0) + 1
      const isTimed = (error.detail.retryAfterMs ?? 0) > 0
      if (error.code === 'overloaded' && !isTimed) told.untimed += 1
    }
  }

  /** Gives how many are acknowledged a second. */
  async closed(): Promise<number> {
    const endMs = performance.now() + bestMs
    const loop = async (): Promise<void> => {
      while (performance.now() < endMs) await this.put()
    }
    const before = this.told.ok
    await Promise.all(Array.from({ length: loops }, loop))
    return (this.told.ok - before) / (bestMs / 1_000)
  }

  /** The calls that this process has no time for are not made up for: it would do nothing else. */
  async open(perSecond: number): Promise<void> {
    const perTick = Math.ceil((perSecond * tickMs) / 1_000)
    for (const startMs = performance.now(); performance.now() - startMs < loadMs;) {
      for (let sent = 0; sent < perTick; sent++) void this.put()
      await pause(tickMs)
    }
  }
}

/** Asks for the health of a node on and on. Ends with how long each answer took. */
function watchHealth(url: string): () => Promise<readonly number[]> {
  const tookMs: number[] = []
  const over = new AbortController()
  const watch = async (): Promise<void> => {
    while (!over.signal.aborted) {
      const startMs = performance.now()
      const status = await fetch(`${url}/livez`).then(
        async (answer) => (await answer.text()) && answer.status,
        // A connection that was kept may be closed just as it is used again.
        () => undefined,
      )
      if (status === 200) tookMs.push(performance.now() - startMs)
      await pause(100)
    }
  }
  const watching = watch()
  return async () => {
    over.abort()
    await watching
    return tookMs
  }
}

test('LOAD-5: under several times what they can do, nodes do it, refuse the rest in time, and answer health', async () => {
  const cluster = await startCluster()
  try {
    const { url } = cluster.node('a')
    const clients = await Promise.all(
      Array.from({ length: clientCount }, () =>
        connect({ endpoints: [url], follow: false, timeoutMs: 10_000 }),
      ),
    )
    const load = new Load(clients)
    const { told } = load
    const best = await load.closed()
    let [sentBefore, okBefore] = [load.sent, told.ok]
    const health = watchHealth(url)
    // A machine may be busy with other things while it is measured, and with nothing else afterwards.
    for (let factor = times; told.codes['overloaded'] === undefined; factor *= 2) {
      expect(factor).toBeLessThanOrEqual(timesMax)
      ;[sentBefore, okBefore] = [load.sent, told.ok]
      await load.open(factor * best)
      if (told.codes['overloaded'] === undefined) await Promise.all(load.underWay)
    }
    const goodput = (told.ok - okBefore) / (loadMs / 1_000)
    const healthMs = (await health()).toSorted((a, b) => a - b)
    // Far below what is reached on a machine that does nothing else: other tests have their times of load, too.
    expect(goodput).toBeGreaterThan(0.25 * best)
    expect(healthMs.length).toBeGreaterThan(4)
    expect(healthMs[Math.floor(healthMs.length / 2)]).toBeLessThan(1_000)
    // The outcome of nearly all is known: it was done, or refused before it began.
    await Promise.all(load.underWay)
    const { codes } = told
    expect(codes['overloaded']).toBeGreaterThan(0)
    expect(told.untimed).toBe(0)
    const sent = load.sent - sentBefore
    expect(told.ok - okBefore + (codes['overloaded'] ?? 0)).toBeGreaterThan(0.9 * sent)
    // As much as can be done: all of it is, soon.
    await pause(1_500)
    const before = told.ok
    await Promise.all(Array.from({ length: 50 }, () => load.put()))
    expect(told.ok - before).toBe(50)
    await Promise.all(clients.map((client) => client.close()))
  } finally {
    await cluster.close()
  }
})

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
