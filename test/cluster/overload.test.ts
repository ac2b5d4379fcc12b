/** More is asked of real nodes than they can do: they refuse the rest at once, do what they can, and stay awake. */
import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { connect, StoreError } from '../../src/index.ts'
import { startCluster } from './harness.ts'

/** 5,000 a second: more than three nodes do on a machine that runs other tests, too. */
const perTick = 50
const tickMs = 10
const clientCount = 60

interface Told {
  sent: number
  ok: number
  untimed: number
  readonly codes: Record<string, number>
}

test('LOAD-5: under several times what they can do, nodes do it, refuse the rest in time, and answer health', async () => {
  const cluster = await startCluster()
  try {
    const { url } = cluster.node('a')
    const clients = await Promise.all(
      Array.from({ length: clientCount }, () => connect({ nodes: [url], timeoutMs: 10_000 })),
    )
    const told: Told = { sent: 0, ok: 0, untimed: 0, codes: {} }
    const under: Promise<void>[] = []
    const put = async (nth: number): Promise<void> => {
      const cell = { rowKey: randomUUID(), column: 'A', refKey: 0, body: { nth } }
      try {
        await clients[nth % clientCount]?.cells('load').put(cell)
        told.ok += 1
      } catch (error) {
        if (!(error instanceof StoreError)) throw error
        told.codes[error.code] = (told.codes[error.code] ?? 0) + 1
        const isTimed = (error.detail.retryAfterMs ?? 0) > 0
        if (error.code === 'overloaded' && !isTimed) told.untimed += 1
      }
    }
    // What this process has no time for is not made up for: it would be all that it does.
    const offer = async (ms: number): Promise<void> => {
      for (const startMs = performance.now(); performance.now() - startMs < ms;) {
        for (let sent = 0; sent < perTick; sent++) under.push(put(told.sent++))
        await new Promise((resolve) => setTimeout(resolve, tickMs))
      }
    }
    let longestMs = 0
    const health = setInterval(() => {
      const startMs = performance.now()
      void fetch(`${url}/livez`)
        .then((answer) => answer.text())
        .then(() => (longestMs = Math.max(longestMs, performance.now() - startMs)))
    }, 100)
    await offer(5_000)
    const okUnderLoad = told.ok
    clearInterval(health)
    expect(okUnderLoad).toBeGreaterThan(20)
    expect(told.codes['overloaded']).toBeGreaterThan(500)
    expect(told.untimed).toBe(0)
    // What became of nearly all is known: it was done, or refused before it began.
    await Promise.all(under)
    const { ok, sent, codes } = told
    expect(ok + (codes['overloaded'] ?? 0)).toBeGreaterThan(0.9 * sent)
    expect(longestMs).toBeLessThan(2_000)
    // As much as can be done: all of it is, soon.
    await new Promise((resolve) => setTimeout(resolve, 1_500))
    const before = told.ok
    await Promise.all(Array.from({ length: 50 }, () => put(told.sent++)))
    expect(told.ok - before).toBe(50)
    await Promise.all(clients.map((client) => client.close()))
  } finally {
    await cluster.close()
  }
}, 60_000)
