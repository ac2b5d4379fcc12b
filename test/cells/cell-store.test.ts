import { expect, test } from 'vitest'
import type { Json } from '../../src/cells/body.ts'
import type { CellOperation, GetCells, GetVersions } from '../../src/cells/operation.ts'
import { shardOf } from '../../src/client/row-shard.ts'
import { cellBytesMax } from '../../src/base/limits.ts'
import {
  any,
  ask,
  bodyOf,
  createBench,
  current,
  datastore,
  first,
  get,
  intents,
  packed,
  put,
  putItem,
  rowKey,
  settled,
} from './kit.ts'

const base = { rowKey: rowKey(1), column: 'BASE', refKey: 0 }

test('CELL-1: a cell is written once; the same body again changes nothing and says so', async () => {
  const { world, node, log } = createBench()
  const { store } = node('n1')
  const created = await settled(world, put(store, base, { fare: 12.5, tip: 1 }))
  expect(created).toMatchObject({ shard: shardOf(base.rowKey), addedId: 1, created: true })
  const again = await settled(world, put(store, base, { tip: 1, fare: 12.5 }))
  expect(again).toStrictEqual({ ...created, created: false })
  expect(log.entryCount()).toBe(1)
})

test('CELL-1: another body is refused, and the cell stays as it was', async () => {
  const { world, node } = createBench()
  const { store } = node('n1')
  await settled(world, put(store, base, { fare: 1 }))
  const other = settled(world, put(store, base, { fare: 2 }))
  await expect(other).rejects.toMatchObject({ code: 'immutable', retry: 'never' })
  expect(bodyOf(await settled(world, get(store, base)))).toStrictEqual({ fare: 1 })
})

test('CELL-1: of two nodes that write the same cell at once, one wins and the other gets an error', async () => {
  const { world, node } = createBench()
  const [a, b] = [node('n1'), node('n2')]
  const both = await settled(
    world,
    Promise.allSettled([put(a.store, base, { by: 'a' }), put(b.store, base, { by: 'b' })]),
  )
  expect(both.map(({ status }) => status).sort()).toStrictEqual(['fulfilled', 'rejected'])
  const winner = both[0].status === 'fulfilled' ? 'a' : 'b'
  for (const { store } of [a, b]) {
    expect(bodyOf(await settled(world, get(store, base)))).toStrictEqual({ by: winner })
  }
})

test('CELL-1: a replica that is behind finds the cell when it writes it, and does not write it anew', async () => {
  const { world, node, log } = createBench()
  const [ahead, behind] = [node('n1'), node('n2')]
  behind.replica.isBehind = true
  const created = await settled(world, put(ahead.store, base, { fare: 1 }))
  expect(await settled(world, get(behind.store, base, any))).toBeUndefined()
  const again = await settled(world, put(behind.store, base, { fare: 1 }))
  expect(again).toStrictEqual({ ...created, created: false })
  await expect(settled(world, put(behind.store, base, { fare: 2 }))).rejects.toMatchObject({
    code: 'immutable',
  })
  expect(log.entryCount()).toBe(1)
})

test('a put goes on when others write into its shard all the while', async () => {
  const { world, node, log } = createBench()
  const [a, b] = [node('n1'), node('n2')]
  log.limits.validationWindowMax = 0
  b.replica.isBehind = true
  await settled(world, put(a.store, base, 1))
  const written = await settled(world, put(b.store, { ...base, refKey: 1 }, 2))
  expect(written).toMatchObject({ addedId: 2, created: true })
})

test('CELL-4: a retried put takes effect once and gives the outcome that the first try hid', async () => {
  const { world, node, log, clockOf } = createBench()
  const [a, b] = [node('n1'), node('n2')]
  const intent = { intents: intents('client-1', 1, clockOf('client')) }
  a.replica.mishaps.push('answer-lost')
  const lost = settled(world, put(a.store, base, { fare: 1 }, intent))
  await expect(lost).rejects.toMatchObject({ code: 'unknown-outcome', retry: 'check-first' })
  const retried = await settled(world, put(b.store, base, { fare: 1 }, intent))
  expect(retried).toMatchObject({ addedId: 1, created: true })
  const stranger = { intents: intents('client-2', 1, clockOf('other')) }
  const other = await settled(world, put(b.store, base, { fare: 1 }, stranger))
  expect(other).toStrictEqual({ ...retried, created: false })
  expect(log.entryCount()).toBe(1)
})

test('CELL-4: a retry at a replica that is behind gets the outcome the first try had', async () => {
  const { world, node, log, clockOf } = createBench()
  const [a, b] = [node('n1'), node('n2')]
  const intent = { intents: intents('client-1', 1, clockOf('client')) }
  b.replica.isBehind = true
  a.replica.mishaps.push('answer-lost')
  await settled(
    world,
    put(a.store, base, { fare: 1 }, intent).catch(() => undefined),
  )
  const retried = await settled(world, put(b.store, base, { fare: 1 }, intent))
  expect(retried).toMatchObject({ addedId: 1, created: true })
  expect(log.entryCount()).toBe(1)
})

test('the store refuses a session that reuses a sequence number for another cell', async () => {
  const { world, node, clockOf } = createBench()
  const { store } = node('n1')
  const intent = { intents: intents('client-1', 1, clockOf('client')) }
  await settled(world, put(store, base, 1, intent))
  const other = settled(world, put(store, { ...base, refKey: 1 }, 1, intent))
  await expect(other).rejects.toMatchObject({ code: 'invalid' })
})

test.each([
  ['overloaded', 'overloaded'],
  ['expired', 'expired'],
  ['request-lost', 'unknown-outcome'],
] as const)('the store passes on the replica’s verdict of a put: %s', async (mishap, code) => {
  const { world, node } = createBench()
  const { store, replica } = node('n1')
  replica.mishaps.push(mishap)
  await expect(settled(world, put(store, base, 1))).rejects.toMatchObject({ code })
  expect(await settled(world, get(store, base))).toBeUndefined()
})

test('CELL-2: the latest cell has the highest ref key, in whatever order they were written', async () => {
  const { world, node } = createBench()
  const { store } = node('n1')
  for (const refKey of [5, 300, 7, 2 ** 40, 0]) {
    await settled(world, put(store, { ...base, refKey }, { refKey }))
  }
  await settled(world, put(store, { ...base, column: 'BASE2', refKey: 9 }, 'not of this column'))
  const operation: GetCells = {
    ...{ kind: 'get', datastore, read: current },
    items: [
      { rowKey: base.rowKey, column: 'BASE' },
      { rowKey: base.rowKey, column: 'NONE' },
    ],
  }
  const { items } = await settled(world, ask(store, operation))
  expect(items).toMatchObject([
    { kind: 'ok', value: { refKey: 2 ** 40 } },
    { kind: 'ok', value: undefined },
  ])
})

async function refKeys(
  bench: ReturnType<typeof createBench>,
  store: Parameters<typeof ask>[0],
  options: { readonly from?: number; readonly limit?: number; readonly reverse?: boolean },
): Promise<{ readonly keys: readonly number[]; readonly next: number | undefined }> {
  const { limit = 1000, reverse = false, from } = options
  const operation: GetVersions = {
    ...{ kind: 'versions', datastore, read: current, rowKey: base.rowKey, column: 'BASE' },
    ...{ limit, reverse, ...(from !== undefined && { from }) },
  }
  const { page } = await settled(bench.world, ask(store, operation))
  return { keys: page.cells.map(({ refKey }) => refKey), next: page.next }
}

test('CELL-2: versions come by ref key in both directions, in pages that meet', async () => {
  const bench = createBench()
  const { store } = bench.node('n1')
  const written = [0, 3, 4, 8, 1000]
  for (const refKey of [8, 0, 1000, 4, 3]) {
    await settled(bench.world, put(store, { ...base, refKey }, refKey))
  }
  expect(await refKeys(bench, store, {})).toStrictEqual({ keys: written, next: undefined })
  expect(await refKeys(bench, store, { limit: 2 })).toStrictEqual({ keys: [0, 3], next: 4 })
  expect(await refKeys(bench, store, { limit: 2, from: 4 })).toMatchObject({ keys: [4, 8] })
  expect(await refKeys(bench, store, { from: 5 })).toMatchObject({ keys: [8, 1000] })
  const down = { reverse: true, limit: 2 }
  expect(await refKeys(bench, store, down)).toStrictEqual({ keys: [1000, 8], next: 4 })
  expect(await refKeys(bench, store, { ...down, from: 4 })).toMatchObject({ keys: [4, 3], next: 0 })
  expect(await refKeys(bench, store, { ...down, from: 0 })).toStrictEqual({
    keys: [0],
    next: undefined,
  })
})

test('a row gives the latest cell of each column, in pages', async () => {
  const { world, node } = createBench()
  const { store } = node('n1')
  for (const [column, refKey] of [
    ['B', 1],
    ['A', 7],
    ['A', 2],
    ['AA', 0],
    ['B', 3],
  ] as const) {
    await settled(world, put(store, { ...base, column, refKey }, null))
  }
  await settled(world, put(store, { ...base, rowKey: rowKey(2), column: 'X' }, null))
  const operation = {
    kind: 'row',
    datastore,
    read: current,
    rowKey: base.rowKey,
    limit: 2,
  } as const
  const one = await settled(world, ask(store, operation))
  expect(one.page).toMatchObject({
    cells: [
      { column: 'A', refKey: 7 },
      { column: 'AA', refKey: 0 },
    ],
    next: 'B',
  })
  const two = await settled(world, ask(store, { ...operation, from: 'B' }))
  expect(two.page).toStrictEqual({ cells: [expect.objectContaining({ refKey: 3 })] })
})

test('pages end where their bodies are too much for an answer, and go on from there', async () => {
  const bench = createBench()
  const { store } = bench.node('n1')
  const body = 'x'.repeat(cellBytesMax - 2)
  for (let refKey = 0; refKey < 6; refKey++) {
    await settled(bench.world, put(store, { ...base, refKey }, body))
  }
  expect(await refKeys(bench, store, {})).toStrictEqual({ keys: [0, 1, 2], next: 3 })
  expect(await refKeys(bench, store, { from: 3 })).toStrictEqual({
    keys: [3, 4, 5],
    next: undefined,
  })
  const items = [0, 1, 2, 3].map((refKey) => ({ ...base, refKey }))
  const batch = { kind: 'get', datastore, read: current, items } as const
  const { items: found } = await settled(bench.world, ask(store, batch))
  expect(found.map((item) => (item.kind === 'ok' ? 'ok' : item.problem.code))).toStrictEqual([
    ...['ok', 'ok', 'ok', 'too-large'],
  ])
})

test('a batch is as good as its cells are one by one', async () => {
  const { world, node } = createBench()
  const { store } = node('n1')
  await settled(world, put(store, base, { fare: 1 }))
  const items = [
    putItem(base, { fare: 1 }),
    putItem(base, { fare: 2 }),
    putItem({ ...base, refKey: 1 }, { fare: 3 }),
    { ...base, rowKey: 'no-uuid', body: packed(1) },
    { ...base, refKey: -1, body: packed(1) },
    { ...base, column: 'a b', body: packed(1) },
    { ...base, refKey: 2, body: Buffer.from('d6ff00000000', 'hex') },
  ]
  const answer = await settled(world, ask(store, { kind: 'put', datastore, items }))
  const said = answer.items.map((item) =>
    item.kind === 'ok' ? item.value.created : item.problem.code,
  )
  expect(said).toStrictEqual([false, 'immutable', true, ...Array<string>(4).fill('invalid')])
})

test('CELL-5: a replica that is behind what a session has seen asks the others before it answers', async () => {
  const { world, node } = createBench()
  const [ahead, behind] = [node('n1'), node('n2')]
  behind.replica.isBehind = true
  const items = [putItem(base, { fare: 1 })]
  const options = { timeoutMs: 1_000 }
  const { positions } = await settled(
    world,
    ahead.store.execute({ kind: 'put', datastore, items }, options),
  )
  expect(positions).toStrictEqual([[shardOf(base.rowKey), 1]])
  const seen = { level: 'snapshot', atLeast: positions } as const
  expect(await settled(world, get(behind.store, base, seen))).toBeDefined()
  expect(behind.replica.currentReads).toBe(1)
  expect(await settled(world, get(behind.store, base, seen))).toBeDefined()
  expect(behind.replica.currentReads).toBe(1)
})

test('CELL-5: a read is of the position it says, although its replica has gone on meanwhile', async () => {
  const bench = createBench()
  const { world } = bench
  const [a, b] = [bench.node('n1'), bench.node('n2')]
  const { rowKey: key } = base
  const shard = shardOf(key)
  await settled(world, put(a.store, { ...base, refKey: 1 }, 'old'))
  const whole = { datastore, read: current, rowKey: key, limit: 10 }
  const operations: CellOperation[] = [
    { kind: 'get', datastore, read: current, items: [{ rowKey: key, column: 'BASE' }] },
    { kind: 'versions', ...whole, column: 'BASE', reverse: false },
    { kind: 'row', ...whole },
    {
      ...{ kind: 'log', datastore, read: current, limit: 10, waitMs: 0 },
      items: [{ kind: 'after', shard, addedId: 0 }],
    },
    { kind: 'get', datastore, read: current, items: [{ ...base, refKey: 14 }] },
  ]
  for (const [i, operation] of operations.entries()) {
    b.replica.afterRead.push(() => put(a.store, { ...base, refKey: 10 + i }, 'new'))
    const { answer, positions } = await settled(
      world,
      b.store.execute(operation, { timeoutMs: 900 }),
    )
    expect(positions).toStrictEqual([[shard, 1 + i]])
    const shown = JSON.stringify(answer).matchAll(/"refKey":(\d+)/g)
    const newest = Math.max(0, ...[...shown].map(([, of]) => Number(of)))
    expect(newest).toBe([1, 10, 11, 12, 0][i])
  }
})

test('a position that was never given out is refused and not waited for', async () => {
  const { world, node } = createBench()
  const { store } = node('n1')
  const seen = { level: 'snapshot', atLeast: [[shardOf(base.rowKey), 10 ** 12]] } as const
  await expect(settled(world, get(store, base, seen))).rejects.toMatchObject({ code: 'invalid' })
})

test('reads at a replica that reaches no majority say so, any-reads answer', async () => {
  const { world, node } = createBench()
  const { store, replica } = node('n1')
  await settled(world, put(store, base, 1))
  replica.isCutOff = true
  await expect(settled(world, get(store, base))).rejects.toMatchObject({ code: 'unavailable' })
  expect(bodyOf(await settled(world, get(store, base, any)))).toBe(1)
})

const row = { kind: 'row', datastore, read: current, rowKey: base.rowKey, limit: 1 } as const
const mebibyte = packed('x'.repeat(cellBytesMax - 2))
const wrongOperations: readonly [string, CellOperation, string][] = [
  ['a bad datastore', { ...row, datastore: 'Trips' }, 'invalid'],
  ['a limit of none', { ...row, limit: 0 }, 'invalid'],
  ['a limit above the page', { ...row, limit: 1001 }, 'invalid'],
  ['an empty batch', { kind: 'put', datastore, items: [] }, 'invalid'],
  [
    'more items than a batch holds',
    { kind: 'get', datastore, read: current, items: Array.from({ length: 1001 }, () => base) },
    'too-large',
  ],
  [
    'more bytes than a batch holds',
    {
      ...{ kind: 'put', datastore },
      items: Array.from({ length: 9 }, () => ({ ...base, body: mebibyte })),
    },
    'too-large',
  ],
  [
    'a wait above the bound',
    { kind: 'log', datastore, read: current, items: [], limit: 1, waitMs: 1 },
    'invalid',
  ],
]

test.each(wrongOperations)(
  'the store refuses a malformed operation as a whole: %s',
  async (...row) => {
    const [, operation, code] = row
    const { world, node } = createBench()
    const { store } = node('n1')
    const { answer } = await settled(world, store.execute(operation, { timeoutMs: 1_000 }))
    expect(answer).toMatchObject({ kind: 'problem', problem: { code } })
  },
)

test('CLOCK-2: intents from a clock that is far off are refused, by the node alone not for good', async () => {
  const { world, node, clockOf } = createBench()
  const { store } = node('n1')
  const good = intents('client-1', 1, clockOf('client'))
  const late = { ...good, expiresAt: good.expiresAt - 700_000_000 }
  await expect(settled(world, put(store, base, 1, { intents: late }))).rejects.toMatchObject({
    code: 'expired',
  })
  const early = { ...good, expiresAt: good.expiresAt + 7_200_000_000 }
  await expect(settled(world, put(store, base, 1, { intents: early }))).rejects.toMatchObject({
    code: 'unavailable',
    message: expect.stringContaining('clocks'),
  })
})

test('a store that stops refuses what comes, and says where to go', async () => {
  const { world, node } = createBench()
  const { store } = node('n1')
  store.stop()
  await expect(settled(world, get(store, base))).rejects.toMatchObject({ code: 'closed' })
})

test('cells of all JSON kinds come back', async () => {
  const { world, node } = createBench()
  const { store } = node('n1')
  const bodies: Json[] = [null, true, 0, -1.5, '', 'é😀', [], {}, [[{ a: [null] }]], 1e21]
  for (const [refKey, body] of bodies.entries()) {
    await settled(world, put(store, { ...base, refKey }, body))
  }
  for (const [refKey, body] of bodies.entries()) {
    expect(bodyOf(await settled(world, get(store, { ...base, refKey })))).toStrictEqual(body)
  }
  expect(first([{ kind: 'ok', value: bodies.length }])).toBe(10)
})
