/** Versions, rows, pages and batches in histories: what a session is shown, and how it is written down. */
import { expect, test } from 'vitest'
import type { Cell } from '../../src/cells/cell.ts'
import { shardOf } from '../../src/client/row-shard.ts'
import { checkHistory } from '../../sim/history/check.ts'
import { HistoryLog } from '../../sim/history/history-log.ts'
import { historyText } from '../../sim/history/lines.ts'
import type { History, HistoryOperation, MicroOperation } from '../../sim/history/operation.ts'
import { parseHistory } from '../../sim/history/parse.ts'
import { recordCells, type CellCalls } from '../../sim/history/record-client.ts'

const write = (version: number): MicroOperation => ({ kind: 'write', key: 'x', version })
const got = (version: number, isPresent: boolean): MicroOperation => ({
  ...{ kind: 'get', key: 'x', version, isPresent },
})
const range = (from: number, to: number | undefined, ...versions: number[]): MicroOperation => ({
  ...{ kind: 'range', key: 'x', from, ...(to !== undefined && { to }) },
  versions: versions.map((version) => ({ version })),
})

function op(
  client: string,
  [start, end]: readonly [number, number],
  micro: readonly MicroOperation[],
  change: Partial<HistoryOperation> = {},
): HistoryOperation {
  return { client, micro, level: 'current', start, end, outcome: 'ok', ...change }
}

const any = { level: 'snapshot' } as const

function namesOf(history: History): string[] {
  return [...new Set(checkHistory(history).anomalies.map(({ name }) => name))].toSorted()
}

const written = [op('w', [1, 2], [write(3)]), op('w', [3, 4], [write(7)])]

test('LEASE-4: a session that has found a version finds it in later ranges over it', () => {
  const seen = op('a', [5, 6], [got(7, true)], any)
  const shown = op('a', [7, 8], [range(0, undefined, 3, 7)], any)
  expect(namesOf([...written, seen, shown])).toEqual([])
  // A page that ends before the version says nothing of it.
  expect(namesOf([...written, seen, op('a', [7, 8], [range(0, 6, 3)], any)])).toEqual([])
  const missed = op('a', [7, 8], [range(4, undefined)], any)
  expect(namesOf([...written, seen, missed])).toContain('session-backwards')
  // Another session, or one that was at it at the same time, may be shown less.
  expect(namesOf([...written, seen, { ...missed, client: 'b' }])).toEqual([])
  expect(namesOf([...written, seen, { ...missed, start: 6 }])).toEqual([])
})

test('LEASE-4: a session that was shown a range finds its versions one by one', () => {
  const shown = op('a', [5, 6], [range(0, undefined, 3, 7)], any)
  expect(namesOf([...written, shown, op('a', [7, 8], [got(3, true)], any)])).toEqual([])
  const lost = op('a', [7, 8], [got(3, false)], any)
  expect(namesOf([...written, shown, lost])).toContain('session-backwards')
})

test('LEASE-4: a session finds its own writes in a range', () => {
  const own = op('a', [1, 2], [write(3)])
  expect(namesOf([own, op('a', [3, 4], [range(0, undefined, 3)], any)])).toEqual([])
  const missed = op('a', [3, 4], [range(0, undefined)], any)
  expect(namesOf([own, missed])).toContain('session-backwards')
})

test('LEASE-3: a current range misses nothing that was acknowledged before', () => {
  expect(namesOf([...written, op('b', [5, 6], [range(0, undefined, 3, 7)])])).toEqual([])
  expect(namesOf([...written, op('b', [5, 6], [range(0, undefined, 3)])])).toEqual([
    'G-single-realtime',
  ])
})

test('a range survives the way through JSON lines, and one that is none is refused', () => {
  const history = [...written, op('a', [5, 6], [range(0, 9, 3, 7), range(2, undefined)])]
  const parsed = parseHistory(historyText(history))
  expect(parsed).toEqual({ ok: true, history })
  const line = (micro: string): string =>
    `{"client":"a","op":"txn","value":[${micro}],"start":1,"end":2,"outcome":"ok"}`
  for (const micro of ['["range","x",-1,null,[]]', '["range","x",4,9,[[3]]]', '["range","x",0]']) {
    expect(parseHistory(line(micro)).ok).toBe(false)
  }
})

const rowKey = '00000000-0000-4000-8000-000000000001'
const shard = shardOf(rowKey)

function cell(column: string, refKey: number, addedId: number): Cell {
  return { rowKey, column, refKey, addedId, createdAt: addedId, body: { refKey } }
}

/** Cells that answer what a test says. */
function answering(answers: Partial<CellCalls>): { cells: CellCalls; log: HistoryLog } {
  let now = 0
  const log = new HistoryLog(() => (now += 1))
  const never = (): never => {
    throw new Error('nobody asks for this here')
  }
  const others = { put: never, get: never, latestAll: never, versions: never }
  const batches = { shardLog: never, getMany: never, shardLogs: never, purgeShard: never }
  const calls = { ...others, ...batches, ...answers }
  return { cells: recordCells(calls, 'd', { client: 'a', log }), log }
}

test('LEASE-4: a page of versions is written down as what it covers', async () => {
  const page = { items: [cell('A', 5, 2), cell('A', 3, 1)], cursor: 2 }
  const { cells, log } = answering({ versions: () => Promise.resolve(page) })
  await cells.versions(rowKey, 'A', { cursor: 6, limit: 2, reverse: true, read: 'snapshot' })
  const [micro] = log.history()[0]?.micro ?? []
  expect(micro).toMatchObject({ kind: 'range', from: 3, to: 6, versions: [{ version: 5 }, {}] })
  expect(log.history()[0]).toMatchObject({ level: 'snapshot', group: `d/shard ${shard}` })
})

test('LEASE-4: a row without a column that was there before is a step back', async () => {
  let shown = [cell('A', 1, 1), cell('B', 4, 2)]
  const put = (): ReturnType<CellCalls['put']> =>
    Promise.resolve({ shard, addedId: 2, createdAt: 2, created: true })
  const { cells, log } = answering({ put, latestAll: () => Promise.resolve({ items: shown }) })
  await cells.put(cell('B', 4, 2))
  await cells.latestAll(rowKey, { read: 'snapshot' })
  expect(namesOf(log.history()).filter((name) => name !== 'unwritten')).toEqual([])
  shown = [cell('A', 1, 1)]
  await cells.latestAll(rowKey, { read: 'snapshot' })
  expect(namesOf(log.history())).toContain('session-backwards')
})

test('LEASE-4: a page of a row can miss only columns before the next page', async () => {
  let cursor: string | undefined = 'B'
  const latestAll = (): ReturnType<CellCalls['latestAll']> =>
    Promise.resolve({ items: [cell('A', 1, 1)], ...(cursor !== undefined && { cursor }) })
  const get = (): ReturnType<CellCalls['get']> => Promise.resolve(cell('B', 4, 2))
  const { cells, log } = answering({ latestAll, get })
  await cells.get({ rowKey, column: 'B', refKey: 4 }, { read: 'snapshot' })
  await cells.latestAll(rowKey, { limit: 1, read: 'snapshot' })
  expect(namesOf(log.history())).not.toContain('session-backwards')
  cursor = undefined
  await cells.latestAll(rowKey, { limit: 1, read: 'snapshot' })
  expect(namesOf(log.history())).toContain('session-backwards')
})

test('LEASE-4: each log of a batch is a read of its shard, which goes on from where it was', async () => {
  const full = { shard, items: [cell('A', 1, 1), cell('A', 2, 2)], cursor: 2, asOf: 9 }
  let page: { shard: number; items: Cell[]; cursor: number; asOf?: number } = full
  const { cells, log } = answering({
    shardLogs: (places) => Promise.resolve(places.map(() => ({ kind: 'ok', value: page }))),
  })
  const places = [{ kind: 'after', shard, addedId: 0 }] as const
  await cells.shardLogs(places, { read: 'snapshot' })
  // It may have been cut for its size.
  page = { shard, items: [cell('A', 1, 1)], cursor: 1 }
  await cells.shardLogs(places, { read: 'snapshot' })
  expect(namesOf(log.history())).not.toContain('session-backwards')
  page = { ...page, asOf: 8 }
  await cells.shardLogs(places, { read: 'snapshot' })
  expect(namesOf(log.history())).toContain('session-backwards')
})

test('an item of a batch that failed saw nothing, and the others did', async () => {
  const problem = { code: 'unavailable', message: 'nobody answers', detail: {} } as const
  const { cells, log } = answering({
    getMany: () =>
      Promise.resolve([
        { kind: 'ok', value: cell('A', 1, 1) },
        { kind: 'problem', problem },
      ]),
  })
  await cells.getMany([
    { rowKey, column: 'A' },
    { rowKey, column: 'B' },
  ])
  expect(log.history().map(({ outcome }) => outcome)).toEqual(['ok', 'fail'])
})
