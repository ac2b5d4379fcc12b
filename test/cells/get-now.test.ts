/** A cell that is read at once, and the same read by the way of all others. */
import { expect, test } from 'vitest'
import type { Answered, GetCells, GetItem, ReadFrom } from '../../src/cells/operation.ts'
import { shardOf } from '../../src/client/row-shard.ts'
import { any, createBench, current, datastore, put, rowKey, settled, type Bench } from './kit.ts'

const base = { rowKey: rowKey(1), column: 'BASE', refKey: 0 }

async function written(): Promise<Bench & ReturnType<Bench['node']>> {
  const bench = createBench()
  const node = bench.node('n1')
  await settled(bench.world, put(node.store, base, { fare: 12.5 }))
  await settled(bench.world, put(node.store, { ...base, refKey: 7 }, { fare: 13 }))
  node.replica.isAtOnce = true
  return { ...bench, ...node }
}

function getOf(item: GetItem, read: ReadFrom = current): GetCells {
  return { kind: 'get', datastore, read, items: [item] }
}

/** Bytes as bytes, whichever class they are of. */
function plain(answered: Answered | undefined): unknown {
  if (answered?.answer.kind !== 'get') return answered
  const items = answered.answer.items.map((item) => {
    if (item.kind === 'problem' || item.value === undefined) return item
    return { ...item.value, body: [...item.value.body] }
  })
  return { ...answered, answer: items }
}

test('CELL-1: a cell that is read at once is the one that a read gives that waits', async () => {
  const { world, store } = await written()
  const seen = [[shardOf(base.rowKey), 2]] as const
  const items = [
    ...[base, { ...base, refKey: 7 }, { ...base, rowKey: base.rowKey.toUpperCase() }],
    ...[
      { ...base, refKey: 1 },
      { ...base, column: 'OTHER' },
      { ...base, rowKey: rowKey(2) },
    ],
  ]
  for (const item of items) {
    for (const read of [current, any, { level: 'snapshot', atLeast: seen } as const]) {
      const now = store.answerNow(getOf(item, read))
      expect(now).toBeDefined()
      const waited = await settled(world, store.execute(getOf(item, read), { timeoutMs: 1_000 }))
      expect(plain(now)).toStrictEqual(plain(waited))
    }
  }
})

test('CELL-5: a read that must wait, be refused or search gets no immediate answer', async () => {
  const { store, replica } = await written()
  const ahead = { level: 'snapshot', atLeast: [[shardOf(base.rowKey), 3]] } as const
  const { refKey: _, ...latest } = base
  const open: GetCells[] = [
    ...[getOf(latest), getOf({ ...base, rowKey: 'none' }), getOf({ ...base, column: '1' })],
    ...[getOf(base, ahead), { ...getOf(base), items: [base, base] }],
    ...[
      { ...getOf(base), items: [] },
      { ...getOf(base), datastore: 'No' },
    ],
  ]
  for (const operation of open) expect(store.answerNow(operation)).toBeUndefined()
  replica.isAtOnce = false
  expect(store.answerNow(getOf(base))).toBeUndefined()
  replica.isAtOnce = true
  store.stop()
  expect(store.answerNow(getOf(base))).toBeUndefined()
})
