/**
 * Clients, a gateway and a node of another set that follow the nodes: of two replica sets on real processes one grows from one
 * node to two, and loses the node that all of them were given.
 */
import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { connect } from '../../src/client/connect.ts'
import { shardGroup } from '../../src/cells/shard.ts'
import { shardOf } from '../../src/client/row-shard.ts'
import { hashToBucket } from '../../src/placement/placement.ts'
import {
  eventually,
  patienceMs,
  runProgram,
  startCluster,
  startGateway,
  type TestCluster,
} from './harness.ts'

const testTimeoutMs: number = 8 * patienceMs

async function nodes(cluster: TestCluster, at: string, ...words: string[]): Promise<string> {
  const url = cluster.node(at).url
  const told = await runProgram(['nodes', ...words, '--url', url], { timeoutMs: 2 * patienceMs })
  const logs = cluster.nodes.map(({ id, log }) => `--- ${id}\n${log().slice(-3_000)}`).join('\n')
  expect(told.code, `${words.join(' ')}: ${told.stdout}${told.stderr}\n${logs}`).toBe(0)
  return told.stdout
}

/** A row whose cells are in the set of this number, of two. */
function rowKeyOf(set: number): string {
  for (;;) {
    const rowKey = randomUUID()
    if (hashToBucket(shardGroup('trips', shardOf(rowKey))) % 2 === set) return rowKey
  }
}

function isNode(
  value: unknown,
): value is { readonly url: string; readonly from?: string; readonly isUp: boolean } {
  return typeof value === 'object' && value !== null && 'url' in value && 'isUp' in value
}

/** The nodes that a gateway has links with, by its status: each with how it came to know it. */
async function linksOf(gateway: string): Promise<Readonly<Record<string, string>>> {
  const status: unknown = await (await fetch(`${gateway}/status`)).json()
  const listed: unknown =
    typeof status === 'object' && status !== null && 'nodes' in status ? status.nodes : []
  const all = Array.isArray(listed) ? listed.filter(isNode) : []
  return Object.fromEntries(all.filter(({ isUp }) => isUp).map(({ url, from = '' }) => [url, from]))
}

test(
  'MAP-1, MAP-4: clients and a gateway go on through the removal of the one node that they were given',
  { timeout: testTimeoutMs },
  async () => {
    const ids = ['a', 'b', 'c']
    const setOf = (id: string): string => (id === 'b' ? 'west' : 'east')
    const cluster = await startCluster({ ids, joining: ['c'], setOf })
    const [a, b, c] = ids.map((id) => cluster.node(id).url)
    const gateway = await startGateway([String(a)])
    const client = await connect({ endpoints: [String(a)], timeoutMs: patienceMs })
    const alone = await connect({ endpoints: [String(a)], follow: false, timeoutMs: 2_000 })
    try {
      const trips = client.cells('trips')
      const put = (set: number): Promise<unknown> =>
        trips.put({ rowKey: rowKeyOf(set), column: 'BASE', refKey: 0, body: set })
      await Promise.all([put(0), put(1)])
      await eventually('the gateway follows', async () => {
        const found = await linksOf(gateway.url)
        return (found[String(a)] === 'given' && found[String(b)] === 'learned') || undefined
      })

      const said = await nodes(cluster, 'a', 'add', 'c', '--at', String(c))
      const [, seat = ''] = /--seat (\d+)/.exec(said) ?? []
      cluster.node('c').spawn({ environment: { TRILITHON_SEAT: seat } })
      await nodes(cluster, 'a', 'add', 'c', '--at', String(c), '--wait')
      await cluster.node('c').ready()
      await eventually('the gateway has a link with c', async () => {
        return (await linksOf(gateway.url))[String(c)] === 'learned' || undefined
      })

      let isOver = false
      const until = (): boolean => isOver
      const failures: unknown[] = []
      const writing = (async () => {
        for (let turn = 0; !until(); turn++) {
          await put(turn % 2).catch((error: unknown) => failures.push(error))
        }
      })()
      await nodes(cluster, 'c', 'remove', 'a', '--wait')
      expect(await cluster.node('a').exited()).toMatchObject({ code: 1 })
      await Promise.all([put(0), put(1)])
      isOver = true
      await writing
      expect(failures).toEqual([])
      await expect(
        alone.cells('trips').get({ rowKey: rowKeyOf(0), column: 'BASE', refKey: 0 }),
      ).rejects.toThrow('no node could be reached')

      // The gateway, too; and b of the other set, whose configuration names a alone in the first one.
      expect(
        await eventually('the gateway has left a', async () => {
          const found = await linksOf(gateway.url)
          return found[String(a)] === undefined ? found : undefined
        }),
      ).toEqual({ [String(b)]: 'learned', [String(c)]: 'learned' })
      for (const url of [gateway.url, String(b)]) {
        const other = await connect({ endpoints: [url], follow: false, timeoutMs: patienceMs })
        const cells = other.cells('trips')
        for (const set of [0, 1]) {
          const cell = { rowKey: rowKeyOf(set), column: 'BASE', refKey: 0 }
          await cells.put({ ...cell, body: url })
          expect(await cells.get(cell)).toMatchObject({ body: url })
        }
        await other.close()
      }
    } finally {
      await client.close()
      await alone.close()
      await gateway.stop()
      await cluster.close()
    }
  },
)
