/**
 * Reads of bounded staleness at real processes: a node answers them from its own rows, and they have every write that was
 * acknowledged longer ago than the bound. Where its peers stand still, it does not take what it has for fresh.
 */
import { randomUUID } from 'node:crypto'
import { afterEach, expect, test } from 'vitest'
import { connect, StoreError, type Cells, type Client } from '../../src/index.ts'
import { eventually, patienceMs, startCluster, type TestCluster } from './harness.ts'

const boundMs = 400
const readsWanted = 60
const column = 'COUNT'
const rowKey = randomUUID()

const clients: Client[] = []
afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.close()))
})

async function cellsAt(cluster: TestCluster, id: string, timeoutMs = patienceMs): Promise<Cells> {
  const endpoints = [cluster.node(id).url]
  const client = await connect({ endpoints, follow: false, timeoutMs })
  clients.push(client)
  return client.cells('counts')
}

/** How the node has answered such reads so far. */
async function answers(cluster: TestCluster, id: string): Promise<Record<string, number>> {
  const text = await (await fetch(`${cluster.node(id).url}/metrics`)).text()
  const told = text.matchAll(/trilithon_bounded_reads_total\{answer="(\w+)"[^}]*\} (\d+)/g)
  return Object.fromEntries([...told].map(([, answer = '', count]) => [answer, Number(count)]))
}

interface Acknowledged {
  readonly refKey: number
  readonly atMs: number
}

/** Puts the next cell of the column again and again, and notes when each was acknowledged. */
async function write(cells: Cells, acknowledged: Acknowledged[], isOver: () => boolean) {
  for (let refKey = 0; !isOver(); refKey++) {
    await cells.put({ rowKey, column, refKey, body: refKey })
    acknowledged.push({ refKey, atMs: performance.now() })
  }
}

/** The last write that a read has to show that begins now. */
function mustSee(acknowledged: readonly Acknowledged[]): number {
  const untilMs = performance.now() - boundMs
  return acknowledged.findLast(({ atMs }) => atMs < untilMs)?.refKey ?? -1
}

async function codeOf(read: () => Promise<unknown>): Promise<string> {
  try {
    await read()
    return 'answered'
  } catch (error) {
    if (error instanceof StoreError) return `${error.code}: ${error.message}`
    throw error
  }
}

test(
  'STALE-1: a follower answers from its own rows all that was acknowledged before the bound, and refuses where it is cut off',
  { timeout: 4 * patienceMs },
  async () => {
    const cluster = await startCluster()
    try {
      const follower = await cellsAt(cluster, 'b')
      const acknowledged: Acknowledged[] = []
      let isOver = false
      const writing = write(await cellsAt(cluster, 'a'), acknowledged, () => isOver)
      const get = async (maxStalenessMs: number): Promise<number> => {
        return (await follower.get({ rowKey, column }, { maxStalenessMs }))?.refKey ?? -1
      }
      await eventually('most reads are answered at once', async () => {
        await get(boundMs)
        return ((await answers(cluster, 'b'))['local'] ?? 0) >= 5 || undefined
      })
      for (let read = 0; read < readsWanted; read++) {
        const least = mustSee(acknowledged)
        expect(await get(boundMs)).toBeGreaterThanOrEqual(least)
        await new Promise((resolve) => setTimeout(resolve, 10))
      }
      expect(mustSee(acknowledged)).toBeGreaterThan(0)
      isOver = true
      await writing
      const told = await answers(cluster, 'b')
      expect(told['local']).toBeGreaterThan(readsWanted / 2)
      // The first one at least.
      expect(told['current']).toBeGreaterThan(0)

      // The node has applied the last write, and a round has told so, before the peers stand still.
      const last = acknowledged.length - 1
      await eventually('the follower has all', async () => {
        return (await get(patienceMs)) === last || undefined
      })
      for (const id of ['a', 'c']) cluster.node(id).signal('SIGSTOP')
      const hasty = await cellsAt(cluster, 'b', 1_000)
      const refusal = await eventually('the follower is cut off', async () => {
        const code = await codeOf(() => hasty.get({ rowKey, column }, { maxStalenessMs: boundMs }))
        return code === 'answered' ? undefined : code
      })
      expect(refusal).toMatch(/^(unavailable|timeout): \w/)
      // With a longer bound it still answers, without them.
      expect(await get(2 * patienceMs)).toBe(last)
      for (const id of ['a', 'c']) cluster.node(id).signal('SIGCONT')
      await eventually('the follower hears of the others', async () => {
        const code = await codeOf(() => hasty.get({ rowKey, column }, { maxStalenessMs: boundMs }))
        return code === 'answered' || undefined
      })
    } finally {
      await cluster.close()
    }
  },
)
