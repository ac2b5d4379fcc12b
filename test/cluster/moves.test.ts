/** Six real processes in two replica sets: a group is moved from one set to the other and back, while clients write to it. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { systemClock } from '../../src/adapters/system-clock.ts'
import { systemRandom } from '../../src/adapters/system-random.ts'
import { connect } from '../../src/client/connect.ts'
import type { GroupId } from '../../src/base/ids.ts'
import { encodeMove, movedKey, movedNoteKey } from '../../src/group/moved-row.ts'
import { runTransaction } from '../../src/txn/run.ts'
import { Sessions } from '../../src/txn/session.ts'
import { rootKey, type Client } from '../../src/index.ts'
import { defineSchema } from '../../schema/define.ts'
import { t } from '../../schema/property.ts'
import { table } from '../../schema/table.ts'
import { patienceMs, runProgram, startCluster, type TestCluster } from './harness.ts'

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

test('MOVE-9 MOVE-10 MOVE-12: a group goes to another set and back, and each write of many clients takes effect once', async () => {
  const clients = await Promise.all(['a', 'b', 'd', 'e'].map(clientOf))
  const [first] = clients
  if (first === undefined) throw new Error('there are clients')
  try {
    await first.applySchema(accounts)
    const name = 'moved'
    const { group, position } = await add(first, name)
    let written = 1
    const writing = { isOver: false }
    const writers = clients.map(async (client) => {
      while (!writing.isOver) {
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
    writing.isOver = true
    await Promise.all(writers)
    console.log(`moves took ${gaps.join(', ')} ms, ${written} writes`)
    for (const client of clients) expect(await amountAt(client, name)).toBe(written)
    const last = await add(first, name)
    expect(last.position).toBeGreaterThan(position + 8)
  } finally {
    await Promise.all(clients.map((client) => client.close()))
  }
})

/** A group of about 20 MiB: many pages. */
const rowBytes = 100_000
const rowCount = 200

const file = table('File', { name: t.string() }).key('name').root()
const part = table('Part', { name: t.string(), number: t.integer(), text: t.string() })
  .key('name', 'number')
  .childOf(file)
const files = defineSchema('Files', [file, part])

/** The answer of `trilithon groups` with `--json`, at a node. */
async function groups(words: readonly string[], id: string): Promise<unknown> {
  const url = cluster.node(id).url
  const { code, stdout, stderr } = await runProgram(['groups', ...words, '--json', '--url', url])
  if (code !== 0) throw new Error(`exit ${code}: ${stderr}`)
  return JSON.parse(stdout)
}

test('MOVE-11 MOVE-13: a large group goes to another set whole, and the old set forgets its rows', async () => {
  const client = await clientOf('d')
  try {
    await client.applySchema(files)
    const db = await client.tables(files)
    const key = rootKey(file, { name: 'large' })
    await db.transaction(key, (tx) => tx.put(file, { name: 'large' }))
    const text = 'x'.repeat(rowBytes)
    for (let number = 0; number < rowCount; number += 20) {
      await db.transaction(key, async (tx) => {
        for (let next = number; next < number + 20; next++) {
          await tx.put(part, { name: 'large', number: next, text })
        }
      })
    }
    const named = ['--schema', 'Files', '--key', '{"name":"large"}']
    const before = await groups(['where', ...named], 'a')
    expect(before).not.toHaveProperty('begins')
    const { set: from, group } = toWhere(before)
    const to = from === 'east' ? 'west' : 'east'
    const plan = await groups(['move', ...named, '--to', to, '--dry-run'], 'b')
    expect(plan).toEqual({ group, from, to, hasMoved: false, dryRun: true })
    expect(toWhere(await groups(['where', ...named], 'b')).set).toBe(from)

    const moved = await groups(['move', ...named, '--to', to], 'b')
    console.log('the large group', moved)
    expect(moved).toMatchObject({ group, from, to, hasMoved: true, tookMs: expect.any(Number) })
    for (const id of ['a', 'f']) {
      const where = await groups(['where', group], id)
      expect(where).toMatchObject({ set: to, begins: from })
      expect(where).not.toHaveProperty('unsure')
    }
    expect(await groups(['move', group, '--to', to], 'e')).toMatchObject({
      ...{ from: to, to, hasMoved: false },
    })
    const { value: texts } = await db.read(key, 'current', async (rows) => {
      const found: string[] = []
      for await (const row of rows.scan(part, { name: 'large' })) found.push(row.text)
      return found
    })
    expect(texts.length).toBe(rowCount)
    expect(texts.every((one) => one === text)).toBe(true)
    await expect.poll(() => clearedAt(from), { timeout: patienceMs }).toBeGreaterThanOrEqual(3)
  } finally {
    await client.close()
  }
})

function toWhere(value: unknown): { readonly set: string; readonly group: string } {
  if (typeof value === 'object' && value !== null && 'set' in value && 'group' in value) {
    const { set, group } = value
    if (typeof set === 'string' && typeof group === 'string') return { set, group }
  }
  throw new Error('the answer names no set')
}

/** Groups whose rows the nodes of a set have deleted, together. */
async function clearedAt(set: string): Promise<number> {
  let sum = 0
  for (const id of set === 'east' ? east : west) {
    const response = await fetch(`${cluster.node(id).url}/metrics`)
    const text = await response.text()
    sum += Number(/^trilithon_groups_cleared_total\{[^}]*\} (\d+)$/m.exec(text)?.[1] ?? 0)
  }
  return sum
}

test('MOVE-13: nodes end a move whose mover has ended behind the last entry, and clear their copies', async () => {
  const client = await clientOf('a')
  try {
    const { group } = await add(client, 'left alone')
    const from = await client.groups.locate(group, patienceMs)
    const to = from === 'east' ? 'west' : 'east'
    const before = await clearedAt(from)
    const options = { clock: systemClock, random: systemRandom, timeoutMs: patienceMs }
    const intents = new Sessions(systemClock, systemRandom)
    await runTransaction(client.groups, group, { ...options, intents }, async (transaction) => {
      transaction.put(movedKey, encodeMove(to))
      transaction.put(movedNoteKey, new Uint8Array())
    })
    await expect
      .poll(() => clearedAt(from), { timeout: patienceMs })
      .toBeGreaterThanOrEqual(before + 3)
    expect(await client.groups.locate(group, patienceMs)).toBe(to)
    expect(await amountAt(client, 'left alone')).toBe(1)
  } finally {
    await client.close()
  }
})

test.each([
  [
    'a set that is none',
    ['--schema', 'Files', '--key', '{"name":"x"}', '--to', 'north'],
    'no replica set has the name "north"; there are east, west',
  ],
  [
    'a shard of cells',
    ['--datastore', 'trips', '--row', '5f1d7e0c-8a52-4d7c-9a1f-0f2f6f6a1a11', '--to', 'west'],
    'a shard of a datastore stays in its set',
  ],
  [
    'no name of a group',
    ['xyz', '--to', 'west'],
    '"xyz" is no name of a group in hexadecimal digits',
  ],
])('groups move refuses %s in words, and nothing moves', async (_, words, why) => {
  const url = cluster.node('a').url
  const { code, stderr } = await runProgram(['groups', 'move', ...words, '--url', url])
  expect(code).not.toBe(0)
  expect(stderr).toContain(why)
})
