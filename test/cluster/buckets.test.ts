/** Six real processes in two replica sets: one set gives buckets to the other, while clients write to old groups and begin new ones. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { connect } from '../../src/client/connect.ts'
import { rootKey, type Client } from '../../src/index.ts'
import { defineSchema } from '../../schema/define.ts'
import { t } from '../../schema/property.ts'
import { table } from '../../schema/table.ts'
import { patienceMs, startCluster, type TestCluster } from './harness.ts'

const east = ['a', 'b', 'c']
const west = ['d', 'e', 'f']

let cluster: TestCluster
beforeAll(async () => {
  const setOf = (id: string): string => (east.includes(id) ? 'east' : 'west')
  cluster = await startCluster({ ids: [...east, ...west], setOf })
})
afterAll(() => cluster?.close())

const account = table('Account', { name: t.string(), amount: t.integer() }).key('name').root()
const accounts = defineSchema('Accounts', [account])

interface Report {
  readonly set: string
  readonly buckets: number
  readonly leaving?: unknown
  readonly shares: readonly { readonly phase: string }[]
}

async function report(id: string, path = '/sets', method = 'GET'): Promise<Report> {
  const answer = await fetch(`${cluster.node(id).url}${path}`, { method })
  const body: unknown = await answer.json()
  if (!answer.ok) throw new Error(JSON.stringify(body))
  return body as Report
}

test('MOVE-14 MOVE-15: a set gives half of its buckets to another one, and each write of many clients takes effect once', async () => {
  const clients = await Promise.all(
    ['a', 'b', 'd', 'e'].map((id): Promise<Client> => {
      return connect({ endpoints: [cluster.node(id).url], follow: false, timeoutMs: patienceMs })
    }),
  )
  const [first] = clients
  if (first === undefined) throw new Error('there are clients')
  try {
    await first.applySchema(accounts)
    const written = new Map<string, number>()
    const add = async (client: Client, name: string): Promise<void> => {
      const db = await client.tables(accounts)
      const since = performance.now()
      await db.transaction(rootKey(account, { name }), async (tx) => {
        const before = await tx.get(account, { name })
        await tx.put(account, { name, amount: (before?.amount ?? 0) + 1 })
      })
      longest = Math.max(longest, performance.now() - since)
      written.set(name, (written.get(name) ?? 0) + 1)
    }
    let longest = 0
    for (let at = 0; at < 300; at++) await add(first, `old-${at}`)
    longest = 0
    const writing = { isOver: false }
    const writers = clients.map(async (client, nth) => {
      for (let turn = 0; !writing.isOver; turn++) {
        await add(client, `old-${(turn * 7 + nth * 75) % 300}`)
        await add(client, `new-${nth}-${turn}`)
        await new Promise((resolve) => setTimeout(resolve, 200))
      }
    }).map((one) => one.catch((error: unknown) => console.log(String(error))))
    const since = performance.now()
    expect(await report('a', '/sets/give?to=west&buckets=1024', 'POST')).toMatchObject({ set: 'east' })
    await expect
      .poll(async () => { const r = await Promise.all(['a','b','c'].map((one) => report(one))); console.log(JSON.stringify(r.map(({leaving})=>leaving)), written.size, Math.round(longest)); return r[0] }, { timeout: 60_000, interval: 2000 })
      .toMatchObject({ buckets: 1024, shares: [{ phase: 'gone', set: 'west', buckets: 1024 }] })
    console.log(`took ${performance.now() - since} ms, longest ${longest}`)
    await new Promise((resolve) => setTimeout(resolve, 500))
    writing.isOver = true
    await Promise.all(writers)
    expect(await report('d')).toMatchObject({ buckets: 3072, shares: [{ phase: 'here' }] })
    for (const client of clients) {
      const db = await client.tables(accounts)
      for (const [name, count] of written) {
        const { value } = await db.read(rootKey(account, { name }), 'current', (rows) =>
          rows.get(account, { name }),
        )
        if (value?.amount !== count) throw new Error(`${name}: ${value?.amount} of ${count}`)
      }
    }
    console.log(`${written.size} groups`)
  } finally {
    await Promise.all(clients.map((client) => client.close()))
  }
}, 120_000)
