/** Lists that have a bound are counted before one of their items is looked at. */
import { expect, test } from 'vitest'
import { readElements } from '../../src/base/readable.ts'
import { settled } from '../cells/kit.ts'
import { createCluster } from './cluster.ts'

/** A list of this length, which throws when a caller reads an element of it. */
function untouched(length: number): never[] {
  return new Proxy<never[]>([], {
    get: (list, name): unknown => {
      if (name === 'length') return length
      if (typeof name === 'string' && /^\d+$/.test(name)) throw new Error('an element was read')
      return Reflect.get(list, name)
    },
  })
}

const { bench, client } = (() => {
  const cluster = createCluster()
  return { bench: cluster.bench, client: cluster.client() }
})()
const cells = client.cells('trips')
const nothing: never[] = []

test.each<[string, (list: never[]) => Promise<unknown>, number, string]>([
  ['cells.putMany', (list) => cells.putMany(list), 1_001, 'batchItemsMax'],
  ['cells.getMany', (list) => cells.getMany(list), 1_001, 'batchItemsMax'],
  ['cells.shardLogs', (list) => cells.shardLogs(list), 4_097, 'shardCount'],
])(
  '%s refuses a list that is too long before it looks at an item',
  async (_, call, over, limit) => {
    for (const length of [over, 2e6, 1e9]) {
      await expect(settled(bench.world, call(untouched(length)))).rejects.toMatchObject({
        code: 'too-large',
        detail: { limit, limitValue: over - 1, actual: length },
      })
    }
    for (const length of [-1, 0.5, Number.NaN]) {
      await expect(settled(bench.world, call(untouched(length)))).rejects.toMatchObject({
        code: 'invalid',
        message: expect.stringContaining('the length of the list is'),
      })
    }
    await expect(settled(bench.world, call(nothing))).rejects.toThrow('at least one item')
  },
)

test('a batch of as many bad items as there may be tells what is wrong with each', async () => {
  const holes: never[] = []
  holes.length = 1_000
  const calls: readonly Promise<readonly object[]>[] = [cells.putMany(holes), cells.getMany(holes)]
  for (const call of calls) {
    const outcomes = await settled(bench.world, call)
    expect(outcomes).toHaveLength(1_000)
    for (const outcome of outcomes) {
      expect(outcome).toMatchObject({
        kind: 'problem',
        problem: { code: 'invalid', message: expect.stringContaining('a cell is absent') },
      })
    }
  }
})

test.each<[string, (list: never[]) => Promise<unknown>, number]>([
  ['cells.purge', (shards) => cells.purge({ before: 1, shards }).next(), 4_097],
  ['cells.tail', (shards) => cells.tail({ shards }).next(), 4_097],
  ['cells.indexes.build', (shards) => client.cells('trips').indexes.build('ix', { shards }), 4_097],
  ['index.query', (columns) => cells.index('ix').query({ a: 1 }, { columns }), 1_001],
  ['index.query', (select) => cells.index('ix').query({ a: 1 }, { select }), 1_001],
  [
    'cells.indexes.apply',
    (column_defs) =>
      client.cells('trips').indexes.apply({ table: 'ix', datastore: 'trips', column_defs }),
    33,
  ],
])('%s refuses a list that is too long, and reads nothing of it', async (_, call, over) => {
  for (const length of [over, 1e9]) {
    await expect(settled(bench.world, call(untouched(length)))).rejects.toMatchObject({
      code: 'invalid',
    })
  }
})

test('the elements of a list are read once, and its holes are undefined', () => {
  const read: PropertyKey[] = []
  const holed: unknown[] = ['a']
  holed.length = 2
  const list = new Proxy(holed, {
    get: (target, name): unknown => {
      read.push(name)
      return Reflect.get(target, name)
    },
  })
  expect(readElements(list)).toEqual(['a', undefined])
  expect(read).toEqual(['length', '0', '1'])
  expect(readElements(list, 1)).toBeUndefined()
})
