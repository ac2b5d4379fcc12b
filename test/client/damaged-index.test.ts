/** Definitions of indexes over cells that are none: refused as they come, passed over where they are stored. */
import { expect, test } from 'vitest'
import { openCellTables } from '../../src/cells/cell-table.ts'
import { datastoreKey, putDefinitions, scanDefinitions } from '../../src/cells/definition-table.ts'
import { shardCountMax } from '../../src/cells/datastore-form.ts'
import { shardOf } from '../../src/client/row-shard.ts'
import type { CellIndexEntry } from '../../src/client/cell-indexes.ts'
import { rowKey, settled } from '../cells/kit.ts'
import { createCluster } from './cluster.ts'
import { allShardsOf } from '../../src/cells/shard.ts'

const datastore = 'trips'
const fields = [{ field: 'city', type: 'string' }]

function definition(table: string): object {
  return { table, datastore, column_defs: [{ column_key: 'BASE', fields }] }
}

function bench() {
  const damaged: string[] = []
  const cluster = createCluster({ onDamagedIndex: ({ message }) => damaged.push(message) })
  const { world, random } = cluster.bench
  const client = cluster.client({ schemaTrustMs: 10 })
  const { clock } = cluster.clockOf('tables')
  const tables = openCellTables(client.groups, { clock, random: random.fork('tables') })
  const run = <Value>(work: Promise<Value>): Promise<Value> => settled(world, work)
  const cells = client.cells(datastore)
  /** Puts another text in the place of a stored definition. */
  const damage = (name: string, text: string): Promise<unknown> =>
    run(
      tables.transaction(datastoreKey(datastore), async (tx) => {
        const { version, rows, ttls } = await scanDefinitions(tx, datastore)
        const damaged = rows.map((row) =>
          row.index_name === name ? { ...row, definition: text } : row,
        )
        await putDefinitions(tx, datastore, { version: version + 1, rows: damaged, ttls })
      }),
    )
  return {
    ...{ damaged, client, run, damage, cells, indexes: client.cells(datastore).indexes },
    rest: () => run(world.sleep(60_000_000)),
    put: (row: number, body: { readonly city: string }) =>
      run(cells.put({ rowKey: rowKey(row), column: 'BASE', refKey: 1, body: { ...body } })),
    found: async (name: string, city: string): Promise<readonly CellIndexEntry[]> =>
      (await run(cells.index(name).query({ city }))).items,
  }
}

const holed: unknown[] = []
holed.length = 1
const lying: readonly unknown[] = new Proxy([{ column_key: 'BASE', fields }], {
  get: (list, name): unknown => (name === 'length' ? -1 : Reflect.get(list, name)),
})

test.each<[string, object, string]>([
  ['a hole for a column', { column_defs: holed }, 'column_key is the name of a column'],
  [
    'a hole for a field',
    { column_defs: [{ column_key: 'BASE', fields: holed }] },
    'field is a member of the cell',
  ],
  [
    'a hole behind a field',
    { column_defs: [{ column_key: 'BASE', fields: [...fields, ...holed] }] },
    'field is a member of the cell',
  ],
  [
    'a list of columns whose length is a lie',
    { column_defs: lying },
    'column_defs: the list has a m',
  ],
])('an index is refused for %s, and nothing is stored', async (_, members, words) => {
  const { run, indexes, put } = bench()
  await expect(run(indexes.apply({ ...definition('odd'), ...members }))).rejects.toMatchObject({
    code: 'invalid',
    message: expect.stringContaining(words),
  })
  expect(await run(indexes.list())).toEqual([])
  expect(await put(1, { city: 'Oslo' })).toMatchObject({ created: true })
})

test.each([
  ['a definition of no fields', JSON.stringify({ table: 'bad', datastore, column_defs: [] })],
  ['text that is no JSON', '{'],
  ['the definition of another index', JSON.stringify(definition('other'))],
  ['the definition of another datastore', JSON.stringify({ ...definition('bad'), datastore: 'x' })],
])('IDX-11: a registry row that holds %s stops no put, list or drop', async (_, text) => {
  const { run, indexes, put, damage, rest, damaged } = bench()
  for (const name of ['bad', 'good']) await run(indexes.apply(definition(name)))
  await damage('bad', text)
  await rest()
  expect(await put(1, { city: 'Oslo' })).toMatchObject({ created: true })
  await rest()
  expect(await put(2, { city: 'Oslo' })).toMatchObject({ created: true })
  const told = (await run(indexes.list())).map((one) => [one.definition.name, one.isDamaged])
  expect(told).toEqual([
    ['bad', true],
    ['good', false],
  ])
  expect(new Set(damaged)).toEqual(
    new Set([
      'index bad of datastore trips: its stored definition cannot be read, so the index takes part in nothing; take it out with trilithon index drop --datastore trips bad, and declare it anew',
    ]),
  )
  await run(indexes.drop('bad', { graceMs: 0 }))
  expect(await run(indexes.apply(definition('bad')))).toBe('new')
})

test('IDX-11: a damaged index is not asked, built or checked, and others of its datastore are', async () => {
  const { run, indexes, cells, damage, rest, put, found } = bench()
  for (const name of ['bad', 'good']) await run(indexes.apply(definition(name)))
  await run(indexes.build('good', { graceMs: 0 }))
  await damage('bad', '[]')
  await rest()
  await put(1, { city: 'Oslo' })
  const refused = { code: 'corrupt', message: expect.stringContaining('trilithon index drop') }
  await expect(run(cells.index('bad').query({ city: 'Oslo' }))).rejects.toMatchObject(refused)
  await expect(run(indexes.build('bad'))).rejects.toMatchObject(refused)
  await expect(run(indexes.check('bad'))).rejects.toMatchObject(refused)
  expect(await found('good', 'Oslo')).toEqual([])
  const { faults } = await run(indexes.check('good', { shards: [shardOf(rowKey(1))] }))
  expect(faults).toEqual([])
})

test('an index of another datastore is not applied through a handle of this one', async () => {
  const { run, indexes, client } = bench()
  const other = { ...definition('by_city'), datastore: 'other' }
  await expect(run(indexes.apply(other))).rejects.toMatchObject({
    code: 'invalid',
    message: expect.stringMatching(/datastore other.*of trips.*cells\('other'\)\.indexes/),
  })
  expect(await run(client.cells('other').indexes.list())).toEqual([])
  expect(await run(client.cells('other').indexes.apply(other))).toBe('new')
})

test('a build of some shards leaves an index unready, and one of all shards makes it ready', async () => {
  const { run, indexes } = bench()
  await run(indexes.apply(definition('by_city')))
  const build = (shards?: readonly number[]): Promise<object> =>
    run(indexes.build('by_city', { graceMs: 0, ...(shards !== undefined && { shards }) }))
  const isBuilding = async (): Promise<boolean> => (await run(indexes.list()))[0]?.state !== 'ready'
  await expect(build([])).rejects.toMatchObject({
    code: 'invalid',
    message: expect.stringContaining('one at least'),
  })
  await expect(run(indexes.check('by_city', { shards: [] }))).rejects.toThrow('one at least')
  expect(await isBuilding()).toBe(true)
  expect(await build([shardOf(rowKey(1))])).toEqual({ shards: 0, rows: 0 })
  expect(await isBuilding()).toBe(true)
  // One shard named as often as there are shards is one shard.
  await build(Array.from({ length: shardCountMax }, () => shardOf(rowKey(1))))
  expect(await isBuilding()).toBe(true)
  await build(allShardsOf(datastore).slice(0, -1))
  expect(await isBuilding()).toBe(true)
  await build(allShardsOf(datastore))
  expect(await isBuilding()).toBe(false)
})
