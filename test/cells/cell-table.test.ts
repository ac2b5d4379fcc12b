import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { printSchema } from '../../schema/ddl-print.ts'
import { defineSchema } from '../../schema/define.ts'
import { t } from '../../schema/property.ts'
import { table } from '../../schema/table.ts'
import { bytesOfGroup } from '../../src/base/ids.ts'
import { unpackBody } from '../../src/cells/body.ts'
import { isColumn, isDatastore, isRowKey, nameProblem } from '../../src/cells/cell.ts'
import { cellVersion } from '../../src/cells/cell-table.ts'
import { shardGroup } from '../../src/cells/shard.ts'
import { shardCountMax } from '../../src/cells/datastore-form.ts'
import { shardOf } from '../../src/client/row-shard.ts'
import { openTables } from '../../src/tables/open.ts'
import { rootKey } from '../../src/tables/tables.ts'
import { LocalGroups } from '../../src/txn/local-groups.ts'
import { createBench, datastore, log, put, rowKey, settled } from './kit.ts'

test('the documentation shows the schema that cells are stored by', () => {
  const page = readFileSync(new URL('../../src/docs/cells.md', import.meta.url), 'utf8')
  expect(page).toContain(printSchema(cellVersion.schema).trim())
})

test('shards are the first 12 bits of the SHA-256 of the row key, in either case', () => {
  // printf '00112233445566778899aabbccddeeff' | xxd -r -p | sha256sum
  expect(shardOf('00112233-4455-6677-8899-aabbccddeeff')).toBe(0xa8f)
  expect(shardOf('00112233-4455-6677-8899-AABBCCDDEEFF')).toBe(0xa8f)
  const counts = new Map<number, number>()
  for (let seed = 0; seed < 20_000; seed++) {
    const shard = shardOf(rowKey(seed))
    counts.set(shard, (counts.get(shard) ?? 0) + 1)
  }
  expect(Math.max(...counts.keys())).toBeLessThan(shardCountMax)
  expect(counts.size).toBeGreaterThan(4000)
})

test('a shard is a group of its own, named by the key of its root row', () => {
  const names = [shardGroup('trips', 12), shardGroup('trips', 13), shardGroup('trip', 12)]
  expect(new Set(names).size).toBe(3)
  const name = Buffer.from(bytesOfGroup(shardGroup('trips', 12)))
  expect(name.toString('latin1')).toContain('Schemaless')
  expect(name.subarray(-4).readUInt32BE()).toBe(2 ** 31 + 12)
})

test('the checks tell valid names from invalid ones', () => {
  expect(['trips', 'a', 'a_1', 'a'.repeat(64)].every(isDatastore)).toBe(true)
  const bad = ['', 'Trips', '1a', '_a', 'a-b', 'a/b', 'a'.repeat(65), 'é', 'a\n']
  expect(bad.some(isDatastore)).toBe(false)
  expect(['BASE', '_x', 'a1', 'A'.repeat(64)].every(isColumn)).toBe(true)
  expect(['', '1a', 'a-b', 'a b', 'A'.repeat(65), 'a\n', '__proto__\0'].some(isColumn)).toBe(false)
  expect(isRowKey('00112233-4455-6677-8899-AABBCCDDEEFF')).toBe(true)
  expect(['', '0011', 'g0112233-4455-6677-8899-aabbccddeeff'].some(isRowKey)).toBe(false)
  for (const refKey of [-1, 1.5, Number.NaN, 2 ** 53, Infinity]) {
    expect(nameProblem({ refKey })?.code).toBe('invalid')
  }
  expect(nameProblem({ refKey: Number.MAX_SAFE_INTEGER })).toBeUndefined()
})

// As a program would declare it that wants to read cells as rows.
const Shard = table('Shard', { datastore: t.string(), shard: t.int32() })
  .key('datastore', 'shard')
  .root()
const Cell = table('Cell', {
  ...{ datastore: t.string(), shard: t.int32(), row_key: t.uuid(), column: t.string() },
  ...{ ref_key: t.integer(), added_id: t.sequence() },
  ...{ creator: t.bytes(), body_hash: t.bytes(), body: t.bytes() },
})
  .key('datastore', 'shard', 'row_key', 'column', 'ref_key')
  .in(Shard)
  .localIndex('CellsByAddedId', ['datastore', 'shard', 'added_id'])

test('cells are rows that a program with the same schema reads, and their index agrees with them', async () => {
  const { world, random, node, clockOf } = createBench()
  const { store, replica } = node('n1')
  const name = { rowKey: rowKey(1), column: 'BASE' }
  for (const refKey of [3, 1, 2]) {
    await settled(world, put(store, { ...name, refKey }, { refKey }))
  }
  const page = await settled(
    world,
    log(store, { kind: 'after', shard: shardOf(name.rowKey), addedId: 0 }),
  )
  const place = { datastore, shard: shardOf(name.rowKey) }
  const clock = clockOf('program')
  const db = openTables(defineSchema('Schemaless', [Shard, Cell]), new LocalGroups(replica), {
    ...{ clock, random },
  })
  const reading = db.read(rootKey(Shard, place), 'current', async (rows) => {
    const entries = await rows.index(Cell, 'CellsByAddedId', place)
    const cells = await entries.rows()
    return cells.map((cell) => ({ ...cell, createdAt: rows.timestampOf(cell) }))
  })
  const { value } = await settled(world, reading)
  expect(value.map(({ ref_key, added_id, createdAt }) => [ref_key, added_id, createdAt])).toEqual(
    page.cells.map(({ refKey, addedId, createdAt }) => [refKey, addedId, createdAt]),
  )
  expect(value.map(({ body }) => unpackBody(body))).toEqual([3, 1, 2].map((refKey) => ({ refKey })))
  const report = await settled(world, db.checkIndexes(rootKey(Shard, place)))
  expect(report).toEqual({ rows: 3, entries: 3, faults: [] })
})
