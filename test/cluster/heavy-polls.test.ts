/** One client asks for much at once, at real nodes: they go on answering others, and give all of it back. */
import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { connect, StoreError } from '../../src/index.ts'
import type { LogPlace } from '../../src/cells/operation.ts'
import { patienceMs, startCluster, type TestCluster } from './harness.ts'

const megabyte = 1024 * 1024

/** How long `/livez` took at most, until it is stopped. */
class LifeWatch {
  readonly #url: string
  readonly #watching: Promise<void>
  #longestMs = 0
  #isOver = false

  constructor(url: string) {
    this.#url = url
    this.#watching = this.#watch()
    // `stop` gives the error; a test that fails before it calls that has its own reason.
    this.#watching.catch(() => undefined)
  }

  async stop(): Promise<number> {
    this.#isOver = true
    await this.#watching
    return this.#longestMs
  }

  async #watch(): Promise<void> {
    while (!this.#isOver) {
      const startMs = performance.now()
      await (await fetch(`${this.#url}/livez`)).text()
      this.#longestMs = Math.max(this.#longestMs, performance.now() - startMs)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
}

/** Of a node in a process of its own. */
async function residentBytes(pid: number | undefined): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) * 1024
}

function placesOf(count: number): LogPlace[] {
  return Array.from({ length: count }, (_, shard) => ({ kind: 'after', shard, addedId: 0 }))
}

let cluster: TestCluster
beforeAll(async () => {
  cluster = await startCluster()
})
afterAll(() => cluster?.close())

test('polls of many shards leave a node time for others, and little in its memory', async () => {
  const { url, pid } = cluster.node('a')
  const client = await connect({ endpoints: [url], follow: false, timeoutMs: patienceMs })
  const cells = client.cells('x')
  // Once, so that what is kept of shards is there.
  await cells.shardLogs(placesOf(64), { limit: 10 })
  const before = await residentBytes(pid)
  const life = new LifeWatch(url)
  // The test does not poll this one: it is as slow as the machine is.
  const idle = new LifeWatch(cluster.node('b').url)
  // A machine that is busy has the node refuse some: then they come again.
  const poll = (): ReturnType<typeof cells.shardLogs> =>
    cells.shardLogs(placesOf(64), { waitMs: 2_000, limit: 10 }).catch(async (error: unknown) => {
      const isRefused = error instanceof StoreError && error.retry === 'safe'
      if (!isRefused || performance.now() > untilMs) throw error
      await new Promise((resolve) => setTimeout(resolve, 100))
      return poll()
    })
  const untilMs = performance.now() + 3 * patienceMs
  const answers = await Promise.all(Array.from({ length: 150 }, poll))
  for (const pages of answers) expect(pages).toHaveLength(64)
  const longestMs = await life.stop()
  expect(longestMs).toBeLessThan(1_000 + (await idle.stop()))
  expect((await residentBytes(pid)) - before).toBeLessThan(150 * megabyte)
  await client.close()
})

test('COST-4: a client that goes away leaves nothing at work', async () => {
  // Far longer than it takes to notice that a client is gone.
  const waitMs = 40_000
  const { url } = cluster.node('a')
  const client = await connect({ endpoints: [url], follow: false, timeoutMs: patienceMs })
  const cells = client.cells('x')
  const polls = Array.from({ length: 50 }, () =>
    cells.shardLogs(placesOf(64), { waitMs, limit: 10 }).catch(() => undefined),
  )
  const atWork = async (): Promise<number> => {
    const text = await (await fetch(`${url}/metrics`)).text()
    return Number(/^trilithon_client_requests\S* (\d+)/m.exec(text)?.[1] ?? -1)
  }
  await expect.poll(atWork, { timeout: patienceMs }).toBe(50)
  await client.close()
  await Promise.all(polls)
  await expect.poll(atWork, { timeout: waitMs / 2 }).toBe(0)
})
