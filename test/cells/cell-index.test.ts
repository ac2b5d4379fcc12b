/** Indexes over cells: kept by every put, asked through the client library, filled from cells that are there. */
import { expect, test } from 'vitest'
import { checkDefinition } from '../../src/cells/index-definition.ts'
import { findShardGroup } from '../../src/cells/cell-table.ts'
import { buildCellIndex, compareCellIndex } from '../../src/cells/index-build.ts'
import { applyIndex } from '../../src/cells/index-registry.ts'
import type { Page } from '../../src/base/page.ts'
import type { CellIndexEntry } from '../../src/client/cell-indexes.ts'
import { shardOf } from '../../src/client/row-shard.ts'
import { upkeepBounds } from '../../src/indexes/limits.ts'
import { waitForGrace } from '../../src/indexes/grace.ts'
import type { GroupPort } from '../../src/group/group-port.ts'
import { ann, bench, bob, declared, definition } from './driver-index.ts'
import { ask, datastore, put, putItem, rowKey } from './kit.ts'
import { makeReady } from './ready-index.ts'

const note = { field: 'note', type: 'string', column: 'BASE' } as const

function shown({ items: entries }: Page<CellIndexEntry>): unknown[] {
  return entries.map(({ fields }) => Object.values(fields))
}

test('IDX-7: an index has of each row what its latest cells say, in whatever order they come', async () => {
  const { tables, clock, run, rest, write, index, parts } = bench()
  await run(applyIndex(tables, definition(), clock))
  await run(makeReady(tables, clock, declared()))
  await write(1, 'BASE', 5, {
    driver: ann.toUpperCase(),
    at: '2026-01-05T00:00:00Z',
    fare: { total: 9.5 },
  })
  await write(1, 'BASE', 3, { driver: bob, at: '2026-01-03T00:00:00Z' })
  await write(2, 'BASE', 1, { driver: ann, at: '2026-01-04T00:00:00Z', fare: { total: 'much' } })
  await write(2, 'STATUS', 1, { done: true })
  await write(3, 'BASE', 1, { driver: 'nobody', at: '2026-01-04T00:00:00Z' })
  await rest()
  const day = (text: string): number => Date.parse(text) * 1000
  expect(shown(await run(index.query({ driver: ann })))).toEqual([
    [ann, day('2026-01-04'), null, true],
    [ann, day('2026-01-05'), 9.5, null],
  ])
  expect(shown(await run(index.query({ driver: bob })))).toEqual([])
  // The shard field of a row changes with a later cell.
  await write(1, 'BASE', 6, { driver: bob, at: '2026-01-06T00:00:00Z' })
  await rest()
  expect((await run(index.query({ driver: bob }))).items.map((one) => one.rowKey)).toEqual([
    rowKey(1),
  ])
  expect(shown(await run(index.query({ driver: ann })))).toHaveLength(1)
  expect(await run(compareCellIndex(parts))).toEqual({ shards: 3, rows: 3, faults: [] })
})

test('queries filter, select, order and page, and bring cells of the rows found', async () => {
  const { tables, clock, run, rest, write, index } = bench()
  await run(applyIndex(tables, definition(), clock))
  await run(makeReady(tables, clock, declared()))
  for (let row = 1; row <= 6; row++) {
    const fare = { total: (row * 7) % 5 }
    await write(row, 'BASE', 1, { driver: ann, at: `2026-01-0${row}T00:00:00Z`, fare })
    if (row > 4) await write(row, 'STATUS', 1, { done: row === 5 })
  }
  await rest()
  const fares = async (where: object, options: object = {}): Promise<unknown> => {
    const page = await run(
      index.query({ driver: ann, ...where }, { select: ['fare.total'], ...options }),
    )
    return page.items.map(({ fields }) => fields['fare.total'])
  }
  expect(await fares({ at: { gte: '2026-01-02T00:00:00Z', lt: '2026-01-04T00:00:00Z' } })).toEqual([
    4, 1,
  ])
  expect(await fares({ 'fare.total': { ne: 4, gt: 1 } })).toEqual([2, 3, 2])
  expect(await fares({ done: true })).toEqual([0])
  expect(await fares({}, { reverse: true, limit: 2 })).toEqual([2, 0])
  expect(await fares({}, { order: 'fare.total' })).toEqual([0, 1, 2, 2, 3, 4])
  const seen: unknown[] = []
  for (let cursor: string | undefined; ;) {
    const options = { limit: 2, ...(cursor !== undefined && { cursor }) }
    const page = await run(index.query({ driver: ann }, { order: 'fare.total', ...options }))
    seen.push(...page.items.map(({ fields }) => fields['fare.total']))
    cursor = page.cursor
    if (cursor === undefined) break
  }
  expect(seen).toEqual([0, 1, 2, 2, 3, 4])
  const found = await run(
    index.query({ driver: ann, at: '2026-01-05T00:00:00Z' }, { columns: 'all' }),
  )
  expect(Object.keys(found.items[0]?.cells ?? {})).toEqual(['BASE', 'STATUS'])
  expect(found.items[0]?.cells?.['STATUS']?.body).toEqual({ done: true })
  await expect(run(index.query({ at: 5 }))).rejects.toThrow(
    'name the value of its shard field, driver',
  )
  await expect(run(index.query({ driver: ann, city: 'x' }))).rejects.toThrow(
    'has no field city, only',
  )
  await expect(run(index.query({ driver: 'x' }))).rejects.toThrow(
    'is of type uuid, and "x" is no value',
  )
})

test.each([false, true])(
  'pages by another field join up while entries come and go; reverse %s',
  async (reverse) => {
    const { tables, clock, run, rest, write, index } = bench()
    await run(applyIndex(tables, definition(), clock))
    await run(makeReady(tables, clock, declared()))
    let refKey = 0
    const put = async (row: number, total: number): Promise<void> => {
      refKey += 1
      await write(row, 'BASE', refKey, { driver: ann, at: '2026-01-01T00:00:00Z', fare: { total } })
    }
    for (let row = 1; row <= 6; row++) await put(row, 10 * row)
    await rest()
    const page = (cursor?: string): Promise<Page<CellIndexEntry>> => {
      const from = cursor === undefined ? {} : { cursor }
      return run(index.query({ driver: ann }, { order: 'fare.total', reverse, limit: 2, ...from }))
    }
    const totals = ({ items: entries }: Page<CellIndexEntry>): unknown =>
      entries.map(({ fields }) => fields['fare.total'])
    const first = await page()
    expect(totals(first)).toEqual(reverse ? [60, 50] : [10, 20])
    // One that was shown goes behind all, another one comes before all.
    await put(reverse ? 5 : 2, reverse ? 5 : 95)
    await put(7, reverse ? 90 : 1)
    await rest()
    const second = await page(first.cursor)
    expect(totals(second)).toEqual(reverse ? [40, 30] : [30, 40])
    const third = await page(second.cursor)
    expect(totals(third)).toEqual(reverse ? [20, 10] : [50, 60])
    const last = await page(third.cursor)
    expect(totals(last)).toEqual(reverse ? [5] : [95])
    expect(last.cursor).toBeUndefined()
    await expect(page('2')).rejects.toThrow('this cursor is of another query')
  },
)

test('a query whose filters leave most out reads more at a time, and its pages join up', async () => {
  const { replica, tables, clock, run, rest, write, index } = bench()
  await run(applyIndex(tables, definition(), clock))
  await run(makeReady(tables, clock, declared()))
  const wanted: string[] = []
  for (let row = 1; row <= 60; row++) {
    const at = 1_000_000 + row
    const isWanted = row % 9 === 0 || row > 55
    await write(row, 'BASE', 1, { driver: ann, at, fare: { total: isWanted ? 1 : 0 } })
    if (isWanted) wanted.push(rowKey(row))
  }
  await rest()
  const found: string[] = []
  const before = replica.currentReads
  for (let cursor: string | undefined, isEnd = false; !isEnd;) {
    const options = { limit: 2, ...(cursor !== undefined && { cursor }) }
    const page = await run(index.query({ driver: ann, 'fare.total': 1 }, options))
    expect(page.items.length).toBeLessThanOrEqual(2)
    found.push(...page.items.map((one) => one.rowKey))
    cursor = page.cursor
    isEnd = cursor === undefined
  }
  expect(found).toEqual(wanted)
  const seldom = replica.currentReads
  expect(await run(index.query({ driver: ann, 'fare.total': 2 }, { limit: 1 }))).toEqual({
    items: [],
  })
  expect(replica.currentReads - seldom).toBeLessThan(10)
  expect(seldom - before).toBeGreaterThan(0)
})

/** All pages of a query, by the entries that each has. */
async function pagesOf(
  query: (cursor: { readonly cursor?: string }) => Promise<Page<CellIndexEntry>>,
): Promise<(readonly string[])[]> {
  const pages: (readonly string[])[] = []
  for (let cursor: string | undefined; ;) {
    const page = await query(cursor === undefined ? {} : { cursor })
    pages.push(page.items.map((one) => one.rowKey))
    cursor = page.cursor
    if (cursor === undefined) return pages
  }
}

test('CELL-6: a page ends where its cells are as much as an answer unpacks to, and the next one goes on', async () => {
  const { tables, clock, run, rest, write, index } = bench()
  await run(applyIndex(tables, definition(), clock))
  await run(makeReady(tables, clock, declared()))
  const rows = Array.from({ length: 8 }, (_, row) => rowKey(row))
  for (const row of rows.keys()) {
    await write(row, 'BASE', 1, { driver: ann, at: row, fare: { total: -row } })
    await write(row, 'NOTES', 1, { text: 'x'.repeat(900_000) })
  }
  await rest()
  const orders: readonly [object, readonly string[]][] = [
    [{}, rows],
    [{ order: 'fare.total' }, rows.toReversed()],
  ]
  for (const [order, expected] of orders) {
    for (const columns of ['all', ['NOTES']] as const) {
      const pages = await pagesOf((cursor) =>
        run(index.query({ driver: ann }, { ...order, ...cursor, columns })),
      )
      expect(pages.flat()).toEqual(expected)
      expect(pages.map((page) => page.length)).toEqual([4, 4])
    }
  }
  await write(7, 'BASE', 2, { driver: bob })
  for (const column of ['MORE', 'EVEN_MORE', 'ALL', 'REST']) {
    await write(7, column, 1, { text: 'x'.repeat(900_000) })
  }
  await rest()
  await expect(run(index.query({ driver: bob }, { columns: 'all' }))).rejects.toMatchObject({
    code: 'too-large',
    detail: { limit: 'answerBytesMax' },
  })
})

test('a row of more columns than one page has is not shown in part', async () => {
  const { store, tables, clock, run, rest, write, index } = bench()
  await run(applyIndex(tables, definition(), clock))
  await run(makeReady(tables, clock, declared()))
  await write(1, 'BASE', 1, { driver: ann })
  const columns = Array.from({ length: 1_000 }, (_, nth) => `C${nth}`)
  const items = columns.map((column) => putItem({ rowKey: rowKey(1), column, refKey: 1 }, 1))
  await run(ask(store, { kind: 'put', datastore, items }, { timeoutMs: 5_000 }))
  await rest()
  await expect(run(index.query({ driver: ann }, { columns: 'all' }))).rejects.toMatchObject({
    code: 'too-large',
    detail: { limit: 'pageItemsMax' },
  })
  const some = await run(index.query({ driver: ann }, { columns: ['BASE', 'C1'] }))
  expect(Object.keys(some.items[0]?.cells ?? {})).toEqual(['BASE', 'C1'])
})

test('CELL-6: a page ends where the values of its entries are as much as an answer holds', async () => {
  const { tables, clock, run, rest, write, index } = bench()
  const fields = [...definition().fields.slice(0, 2), note]
  await run(applyIndex(tables, { ...definition(), fields }, clock))
  await run(makeReady(tables, clock, { ...declared(), fields }))
  const rows = Array.from({ length: 10 }, (_, row) => rowKey(row))
  for (const row of rows.keys()) {
    await write(row, 'BASE', 1, { driver: ann, at: row, note: `${9 - row}${'é'.repeat(450_000)}` })
  }
  await rest()
  const orders: readonly [object, readonly string[]][] = [
    [{}, rows],
    [{ order: 'note' }, rows.toReversed()],
  ]
  for (const [order, expected] of orders) {
    const pages = await pagesOf((cursor) =>
      run(index.query({ driver: ann }, { ...order, ...cursor })),
    )
    expect(pages.flat()).toEqual(expected)
    for (const page of pages) expect(page.length).toBeLessThanOrEqual(4)
  }
})

test('more than there is room for to be sorted is refused', async () => {
  const { tables, clock, run, rest, write, index } = bench()
  const fields = [...definition().fields.slice(0, 2), note]
  await run(applyIndex(tables, { ...definition(), fields }, clock))
  await run(makeReady(tables, clock, { ...declared(), fields }))
  for (let row = 0; row < 40; row++) {
    await write(row, 'BASE', 1, { driver: ann, at: row, note: 'x'.repeat(900_000) })
  }
  await rest()
  const sorted = run(index.query({ driver: ann }, { order: 'note' }))
  await expect(sorted).rejects.toMatchObject({
    code: 'too-large',
    detail: { limit: 'indexSortBytesMax' },
  })
})

test('IDX-6: an index answers queries once it holds the cells written before it', async () => {
  const { tables, clock, run, rest, write, index, parts } = bench()
  await write(1, 'BASE', 1, { driver: ann, at: '2026-01-01T00:00:00Z' })
  await run(applyIndex(tables, definition(), clock))
  expect(await run(applyIndex(tables, definition(), clock))).toBe('same')
  await expect(run(index.query({ driver: ann }))).rejects.toMatchObject({
    ...{ code: 'unavailable', detail: { index: 'declared' } },
    message: expect.stringContaining('is declared: earlier rows are not in it yet'),
  })
  await rest()
  await write(2, 'BASE', 1, { driver: ann, at: '2026-01-02T00:00:00Z' })
  const { faults } = await run(compareCellIndex(parts))
  expect(faults).toEqual([{ kind: 'missing', index: declared().name, entry: rowKey(1) }])
  const started = clock.wallMicros()
  await run(waitForGrace(parts, started, 700_000))
  expect(await run(buildCellIndex(parts))).toMatchObject({ filled: { length: 2 }, rows: 2 })
  expect((clock.wallMicros() - started) / 1_000_000).toBeGreaterThan(700)
  await run(makeReady(tables, clock, declared()))
  expect((await run(index.query({ driver: ann }))).items).toHaveLength(2)
  expect((await run(compareCellIndex(parts))).faults).toEqual([])
  const other = { ...definition(), fields: definition().fields.slice(0, 2) }
  await expect(run(applyIndex(tables, other, clock))).rejects.toThrow('is defined differently')
})

test('IDX-6: a build waits for no more than the grace, however far ahead the clock is by which it was declared', async () => {
  const { tables, clock, run, parts } = bench()
  await run(applyIndex(tables, definition(), clock))
  const ahead = clock.wallMicros() + 150_000_000
  const startedMs = clock.monotonicMs()
  await run(waitForGrace(parts, ahead, 0))
  expect(clock.monotonicMs() - startedMs).toBeLessThan(10_000)
})

test('IDX-6: a build waits for worklist rows behind a page of newer changes', async () => {
  const { tables, clock, run, write, parts } = bench()
  await write(1, 'BASE', 1, { driver: ann })
  await run(applyIndex(tables, definition(), clock))
  let looks = 0
  const bytes = new Uint8Array()
  const newer = { timestamp: Number.MAX_SAFE_INTEGER, key: bytes, value: bytes }
  const full = { rows: Array.from({ length: upkeepBounds.changesAtOnceMax }, () => newer) }
  const port: GroupPort = {
    view: (...asked) => parts.port.view(...asked),
    get: (group, view, keys) => parts.port.get(group, view, keys),
    commit: (...asked) => parts.port.commit(...asked),
    scan: () => {
      looks += 1
      return Promise.resolve(looks < 3 ? { ...full, isWhole: false } : { rows: [], isWhole: true })
    },
  }
  await run(buildCellIndex({ ...parts, port }))
  expect(looks).toBe(3)
})

test('IDX-6: a build waits for entries of rows that changed again before they were relayed', async () => {
  const { world, relay, newRelay, store, tables, clock, run, rest, write, parts, index } = bench()
  await run(relay.stop())
  await write(1, 'BASE', 1, { driver: ann, fare: { total: 1 } })
  await run(applyIndex(tables, definition(), clock))
  // From now on puts keep it.
  await rest()
  const ends: number[] = []
  const changed = new Promise<unknown>((resolve) => {
    const later = { rowKey: rowKey(1), column: 'BASE', refKey: 2 }
    // The row was put on its shard's worklist, and is changed before the first look there.
    const onProgress = ({ phase }: { phase: string }): void => {
      if (phase === 'filling') resolve(put(store, later, { driver: ann, fare: { total: 2 } }))
    }
    const only = { shards: [shardOf(rowKey(1))], onProgress }
    void buildCellIndex({ ...parts, ...only }).then(() => ends.push(world.nowMicros))
  })
  await run(changed)
  await run(world.sleep(5_000_000))
  expect(ends).toEqual([])
  newRelay().start()
  await run(world.sleep(5_000_000))
  expect(ends).toHaveLength(1)
  await run(makeReady(tables, clock, declared()))
  expect(shown(await run(index.query({ driver: ann })))).toEqual([[ann, null, 2, null]])
})

test('IDX-6: a build takes a position in every shard, in case one replica alone accepted a write', async () => {
  const { replica, tables, clock, run, write, parts } = bench()
  await run(applyIndex(tables, definition(), clock))
  await write(1, 'BASE', 1, { driver: ann, at: '2026-01-01T00:00:00Z' })
  const positions = async (): Promise<readonly number[]> => {
    const groups = parts.shards.map((shard) => findShardGroup({ datastore, shard }))
    const points = await run(Promise.all(groups.map((one) => replica.read(one, 'snapshot', 1_000))))
    return points.map(({ position }) => position)
  }
  expect(await positions()).toEqual([1, 0, 0])
  await run(buildCellIndex(parts))
  const [, ...empty] = await positions()
  expect(empty).toEqual([1, 1])
})

test('a malformed index definition is refused with the path of each mistake', () => {
  const bad = {
    ...{ table: 'Bad Name', datastore, extra: 1 },
    column_defs: [
      {
        column_key: 'BASE',
        fields: [
          { field: 'a b', type: 'UUID' },
          { field: 'x', type: 'blob' },
        ],
      },
      { column_key: '1', fields: [] },
    ],
  }
  const checked = checkDefinition(bad)
  expect(checked.ok ? [] : checked.problems.map(({ at }) => at.join('.'))).toEqual([
    ...['extra', 'table', 'column_defs.0.fields.0.field', 'column_defs.0.fields.1.type'],
    'column_defs.1.column_key',
  ])
})
