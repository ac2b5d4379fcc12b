/** Six real processes in two replica sets: a group is moved from one set to the other and back, while clients write to it. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { connect } from '../../src/client/connect.ts'
import type { GroupId } from '../../src/base/ids.ts'
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

function clientOf(id: string): Promise<Client> {
  const endpoints = [cluster.node(id).url]
  return connect({ endpoints, follow: false, timeoutMs: patienceMs })
}

async function add(
  client: Client,
  name: string,
): Promise<{ readonly group: GroupId; readonly position: number }> {
  const db = await client.tables(accounts)
  return db.transaction(rootKey(account, { name }), async (tx) => {
    const before = await tx.get(account, { name })
    await tx.put(account, { name, amount: (before?.amount ?? 0) + 1 })
  })
}

async function amountAt(client: Client, name: string): Promise<number | undefined> {
  const db = await client.tables(accounts)
  const { value } = await db.read(rootKey(account, { name }), 'current', (rows) =>
    rows.get(account, { name }),
  )
  return value?.amount
}

test('MOVE-9 MOVE-10: a group goes to another set and back, and each write of many clients takes effect once', async () => {
  const clients = await Promise.all(['a', 'b', 'd', 'e'].map(clientOf))
  const [first] = clients
  if (first === undefined) throw new Error('there are clients')
  try {
    await first.applySchema(accounts)
    const name = 'moved'
    const { group, position } = await add(first, name)
    let written = 1
    let isOver = false
    const writers = clients.map(async (client) => {
      while (!isOver) {
        await add(client, name)
        written += 1
      }
    })
    const gaps: number[] = []
    for (const set of ['west', 'east', 'west', 'east']) {
      const since = performance.now()
      await first.groups.move(group, set, patienceMs)
      gaps.push(Math.round(performance.now() - since))
      const before = written
      await expect.poll(() => written, { timeout: patienceMs }).toBeGreaterThan(before + 8)
    }
    isOver = true
    await Promise.all(writers)
    console.log(`moves took ${gaps.join(', ')} ms, ${written} writes`)
    for (const client of clients) expect(await amountAt(client, name)).toBe(written)
    const last = await add(first, name)
    expect(last.position).toBeGreaterThan(position + 8)
  } finally {
    await Promise.all(clients.map((client) => client.close()))
  }
})
