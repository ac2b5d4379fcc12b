/** The content of a stopped node's stores, as figures and as lines. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { groupOfBytes, type GroupId } from '../../src/base/ids.ts'
import { shardGroup } from '../../src/cells/shard.ts'
import { shardOf } from '../../src/client/row-shard.ts'
import { formatGroup, parseGroup, makeReadable } from '../../src/cli/store-readable.ts'
import { DataLooks } from '../../src/inspect/data-looks.ts'
import { dump, type DumpOptions, type Line } from '../../src/inspect/dump.ts'
import { formatGroupHex } from '../../src/inspect/finding.ts'
import { readableBytes, readableKey } from '../../src/inspect/readable.ts'
import { collectStats } from '../../src/inspect/stats.ts'
import { openStoppedNode, type StoppedNode } from '../../src/inspect/stopped-node.ts'
import { encodeTuple } from '../../src/base/tuple.ts'
import { rootKey } from '../../src/tables/tables.ts'
import { remove, rowKey, runNode, makeFolderOfRuns } from './node-folder.ts'
import { defineSchema } from '../../schema/define.ts'
import { t } from '../../schema/property.ts'
import { table } from '../../schema/table.ts'

const users = table('User', { user_id: t.integer(), name: t.string() }).key('user_id').root()
const schema = defineSchema('People', [users])

let folder = ''
let node: StoppedNode
const shard: GroupId = shardGroup('trips', shardOf(rowKey))
beforeAll(async () => {
  folder = await makeFolderOfRuns()
  await runNode(folder, async (client) => {
    await client.applySchema(schema)
    const db = await client.tables(schema)
    await db.transaction(rootKey(users, { user_id: 7 }), (tx) =>
      tx.insert(users, { user_id: 7, name: 'Ada' }),
    )
  })
  node = await openStoppedNode(folder, () => undefined)
})
afterAll(async () => {
  await node.close()
  await remove(folder)
})

async function collectLines(asked: Partial<DumpOptions>): Promise<Line[]> {
  const lines: Line[] = []
  const readable = makeReadable(node.data && new DataLooks(node.data))
  const none = { showsFlushes: false, showsRecords: false, showsRows: false }
  const all = { from: 0, to: Number.MAX_SAFE_INTEGER, readable, ...none, ...asked }
  for await (const line of dump(node, all)) lines.push(line)
  return lines
}

test('figures add up: records of flushes, rows by kind, groups by what they take', async () => {
  const bytes = { log: 0, data: 0 }
  const { identity, peers, log, data } = await collectStats(node, {
    nameGroup: formatGroupHex,
    onBytes: (store, more) => (bytes[store] += more),
  })
  expect(identity).toMatchObject({ node: 'a', cluster: 'test', incarnation: 4 })
  expect(peers).toEqual([])
  expect(log).toMatchObject({ first: 1, flushes: log.last, damagedFlushes: 0 })
  expect(log.incarnations.map(({ incarnation }) => incarnation)).toEqual([1, 2, 3, 4])
  expect(log.records).toBe((await collectLines({ showsRecords: true })).length)
  expect(log.flushBytes).toBe(bytes.log)
  const rows = await collectLines({ showsRows: true })
  const counted = Object.values(data?.kinds ?? {}).reduce((sum, kind) => sum + kind.rows, 0)
  expect(counted).toBe(rows.length)
  expect(data?.groups).toBe(rows.filter(({ kind }) => kind === 'state').length)
  expect(data?.largest[0]).toMatchObject({ group: formatGroupHex(shard) })
  // Each cell has an entry in the shard's own index.
  expect(data?.largest[0]?.rows).toBeGreaterThanOrEqual(120)
  expect(data?.largest).toHaveLength(10)
  expect(data?.flushesAfterMark).toBe(log.last - (data?.mark?.number ?? 0))
})

test('rows show what the schemas of the folder say, and cells their bodies', async () => {
  const cells = await collectLines({ showsRows: true, group: shard })
  const bodies: readonly (readonly [string, unknown])[] = cells
    .flatMap(({ value }) =>
      typeof value === 'object' && value !== null ? Object.entries(value) : [],
    )
    .filter(([name]) => name === 'body')
  expect(bodies.map(([, body]) => body)).toContainEqual({ city: 'Berlin', run: 0, at: 0 })
  expect(bodies.length).toBeGreaterThanOrEqual(60)
  const rows = await collectLines({ showsRows: true })
  expect(rows).toContainEqual(
    expect.objectContaining({
      ...{ kind: 'row', of: 'User (user_id 7)', key: 'User (user_id 7)' },
      value: { user_id: 7, name: 'Ada' },
    }),
  )
})

test('records show the entry that they bring, and a group only its own', async () => {
  const records = await collectLines({ showsRecords: true, group: shard })
  expect(new Set(records.map(({ of }) => of))).toEqual(
    new Set([`Shard (datastore "trips", shard ${shardOf(rowKey)})`]),
  )
  expect(records.map(({ says }) => says)).toEqual(expect.arrayContaining(['accept', 'chosen']))
  expect(records.find(({ says }) => says === 'accept')).toMatchObject({
    ...{ position: 1, ballot: '0.a.1' },
    entry: { nextLeader: 'a.1', transactions: [{ writes: [{ value: { ref_key: 0 } }, {}] }] },
  })
  const flushes = await collectLines({ showsFlushes: true, from: 3, to: 4 })
  expect(flushes.map(({ kind, flush }) => [kind, flush])).toEqual([
    ['flush', 3],
    ['flush', 4],
  ])
})

test('bytes are shown as text where they are text, and --group takes the name that stats prints', () => {
  expect(readableBytes(Buffer.from('größer'))).toBe('größer')
  expect(readableBytes(Uint8Array.of(0, 255))).toEqual({ base64: 'AP8=' })
  expect(readableKey(encodeTuple(['version', 3]))).toEqual(['version', 3])
  expect(formatGroup(formatGroupHex(shard))).toBe(`trips/${shardOf(rowKey)}`)
  expect(parseGroup(formatGroup(formatGroupHex(shard)))).toBe(shard)
  const other = groupOfBytes(encodeTuple(['schemas', 'People']))
  expect(parseGroup(formatGroup(formatGroupHex(other)))).toBe(other)
  expect(() => parseGroup('trips/5000')).toThrow('--group wants')
})
