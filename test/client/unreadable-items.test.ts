/**
 * Values that cannot be read, or would lose something in a copy: refused in words, and in a batch by item.
 */
import { expect, test } from 'vitest'
import { StoreError } from '../../src/base/errors.ts'
import type { GetItem } from '../../src/cells/operation.ts'
import type { NewCell } from '../../src/cells/cell.ts'
import type { GivenPlace } from '../../src/client/options.ts'
import { typed } from '../../src/tables/types.ts'
import { rowKey, settled } from '../cells/kit.ts'
import { createCluster } from './cluster.ts'

const base = { rowKey: rowKey(1), column: 'BASE', refKey: 0 }
const boom = new Error('boom')
const symbol = Symbol('s')

function throwing(name: string, members: object = {}): object {
  const get = (): never => {
    throw boom
  }
  return Object.defineProperty({ ...members }, name, { enumerable: true, get })
}

function revoked(): object {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
}

/** Gives the first value once, and the other from then on. */
function changing(name: string, [first, later]: readonly unknown[], members: object): object {
  let reads = 0
  const get = (): unknown => (reads++ === 0 ? first : later)
  return Object.defineProperty({ ...members }, name, { enumerable: true, get })
}

function bench() {
  const cluster = createCluster()
  const client = cluster.client()
  const { world } = cluster.bench
  const cells = client.cells('trips')
  return { client, cells, run: <Value>(work: Promise<Value>) => settled(world, work) }
}

const odd: readonly (readonly [string, object, string])[] = [
  ['a getter that throws', throwing('rowKey', base), 'a cell cannot be read: Error: boom'],
  ['a revoked proxy', revoked(), 'a cell is a proxy that was revoked; expected an object of'],
  ['a symbol', { ...base, [symbol]: 1 }, 'a cell: it has a member that a symbol names; leave it'],
  ['another name', { ...base, refkey: 1 }, 'a cell: unknown property "refkey"'],
]

test.each(odd)(
  'batchGet answers an item with %s by itself, and the others',
  async (_, item, words) => {
    const { cells, run } = bench()
    await run(cells.put({ ...base, body: 7 }))
    const items = [base, typed<GetItem>(item), { ...base, refKey: 1 }]
    const [good, bad, absent] = await run(cells.getMany(items))
    expect(good).toMatchObject({ kind: 'ok', value: { body: 7 } })
    expect(bad).toMatchObject({
      ...{ kind: 'problem', problem: { code: 'invalid' } },
      problem: { message: expect.stringContaining(words.slice(0, 30)) },
    })
    expect(absent).toEqual({ kind: 'ok', value: undefined })
    expect(await run(cells.getMany([typed<GetItem>(item)]))).toMatchObject([{ kind: 'problem' }])
  },
)

test.each(odd)(
  'batchPut answers a cell with %s by itself, and puts the others',
  async (_, item) => {
    const { cells, run } = bench()
    const cell = typed<NewCell>(Object.defineProperties({ body: 1 }, own(item)))
    const outcomes = await run(cells.putMany([cell, { ...base, refKey: 5, body: 8 }]))
    expect(outcomes).toMatchObject([
      { kind: 'problem', problem: { code: 'invalid' } },
      { kind: 'ok', value: { created: true } },
    ])
    expect(await run(cells.putMany([cell]))).toMatchObject([{ kind: 'problem' }])
    await expect(run(cells.put(cell))).rejects.toBeInstanceOf(StoreError)
  },
)

/** The members of an object that can be asked for them. */
function own(item: object): PropertyDescriptorMap {
  try {
    return Object.getOwnPropertyDescriptors(item)
  } catch {
    return { rowKey: { enumerable: true, value: item } }
  }
}

test('batchShardLog answers a place that cannot be read by itself, and the others', async () => {
  const { cells, run } = bench()
  const places: readonly unknown[] = [
    { kind: 'after', shard: 1, addedId: 0 },
    throwing('shard', { kind: 'after', addedId: 0 }),
    { kind: 'after', shard: 2, addedId: 0, [symbol]: 1 },
    { kind: 'since', shard: 3, timestamp: 5 },
  ]
  const outcomes = await run(cells.shardLogs(typed<readonly GivenPlace[]>(places)))
  expect(outcomes).toMatchObject([
    { kind: 'ok', value: { shard: 1 } },
    { problem: { message: 'cells.shardLogs: a place cannot be read: Error: boom' } },
    { problem: { message: expect.stringContaining('a place has a member that a symbol names') } },
    { kind: 'ok', value: { shard: 3 } },
  ])
})

test('a list with more than its elements is no batch', async () => {
  const { cells, run } = bench()
  const items = Object.assign([base], { more: 1 })
  await expect(run(cells.getMany(items))).rejects.toMatchObject({
    ...{ code: 'invalid' },
    message: 'cells.getMany: the items: the list has a member beside its elements; leave it out',
  })
})

test('what a cell says when it is read once is what is put and asked for', async () => {
  const { cells, run } = bench()
  const cell = changing('column', ['BASE', 'OTHER'], { ...base, body: 1 })
  await run(cells.put(typed<NewCell>(cell)))
  expect(await run(cells.get(base))).toMatchObject({ column: 'BASE', body: 1 })
  const asked = changing('refKey', [0, 9], { rowKey: base.rowKey, column: 'BASE' })
  expect(await run(cells.get(typed(asked)))).toMatchObject({ refKey: 0, body: 1 })
})

test.each<[string, object, string]>([
  ['a field', throwing('city'), 'index by_city: the query cannot be read: Error: boom'],
  ['a comparison', { city: throwing('gte') }, 'index by_city: city cannot be read: Error: boom'],
  ['a symbol', { city: { gte: 1, [symbol]: 1 } }, 'city has a member that a symbol names'],
])('a query with %s that cannot be read is refused in words', async (_, where, words) => {
  const { cells, run } = bench()
  await expect(run(cells.index('by_city').query(typed(where)))).rejects.toMatchObject({
    ...{ code: 'invalid', message: expect.stringContaining(words) },
  })
})

const column = { column_key: 'BASE', fields: [{ field: 'city', type: 'string' }] }
const definition = { table: 'by_city', datastore: 'trips', column_defs: [column] }

test.each<[string, object, string]>([
  ['a getter', throwing('table', definition), 'the definition cannot be read: Error: boom'],
  ['a symbol', { ...definition, [symbol]: 1 }, 'the definition has a member that a symbol names'],
  [
    'a getter of a column',
    { ...definition, column_defs: [throwing('fields', column)] },
    'column_defs.0 cannot be read: Error: boom',
  ],
  [
    'a list with more than its elements',
    { ...definition, column_defs: Object.assign([column], { more: 1 }) },
    'column_defs: the list has a member beside its elements',
  ],
  [
    'a type that is a bigint',
    { ...definition, column_defs: [{ ...column, fields: [{ field: 'city', type: 5n }] }] },
    '5n is no type of a field',
  ],
])('the definition of an index with %s is refused in words', async (_, given, words) => {
  const { client, run } = bench()
  await expect(run(client.cells('trips').indexes.apply(given))).rejects.toMatchObject({
    ...{ code: 'invalid', message: expect.stringContaining(words) },
  })
})
