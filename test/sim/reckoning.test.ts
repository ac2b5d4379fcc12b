/** The reckoning of an audit finds each kind of fault that it is there for. */
import { expect, test } from 'vitest'
import {
  cellComplaints,
  indexComplaints,
  ledgerReport,
  logComplaints,
  readMicros,
  spanComplaints,
  type Logs,
  type SeenCell,
  type SeenEntry,
} from '../../sim/audit/reckoning.ts'
import { computeFare, type Trip } from '../../sim/audit/trips.ts'

const trips: readonly Trip[] = [1, 2, 3].map((n) => ({
  rowKey: `row-${n}`,
  body: { zone: n === 3 ? 8 : 7, at: `2018-10-0${n}T00:00:00Z`, total: n / 10, row: {} },
}))

/** Each trip and its fare, in one shard. */
function soundCells(): SeenCell[] {
  const cells = trips.flatMap(({ rowKey, body }) => [
    { rowKey, column: 'BASE', body },
    { rowKey, column: 'FARE', body: computeFare(body) },
  ])
  return cells.map((cell, i) => ({ ...cell, shard: 5, addedId: i + 1, refKey: 0 }))
}

function logsOf(cells: readonly SeenCell[]): Logs {
  return new Map([[5, cells.map((cell, i) => ({ ...cell, addedId: i + 1 }))]])
}

function soundEntries(zone: number): readonly SeenEntry[] {
  return trips
    .filter(({ body }) => body.zone === zone)
    .map(({ rowKey, body }) => ({ rowKey, at: readMicros(body), total: body.total }))
}

const soundLines = ['5 1 row-1', '5 3 row-2', '5 5 row-3']

test('AUDIT-1, AUDIT-2, AUDIT-3, AUDIT-4: a sound audit has no complaint', () => {
  const logs = logsOf(soundCells())
  expect(cellComplaints(trips, logs)).toEqual([])
  expect(logComplaints(new Map(['a', 'b', 'c'].map((id) => [id, logs])))).toEqual([])
  expect(indexComplaints(trips, new Map([7, 8].map((zone) => [zone, soundEntries(zone)])))).toEqual(
    [],
  )
  const again = [...soundLines, '5 1 row-1']
  expect(ledgerReport(again, logs)).toEqual({ complaints: [], again: 1 })
})

test.each<
  readonly [what: string, change: (cells: SeenCell[]) => readonly SeenCell[], said: string]
>([
  ['a trip is lost', (cells) => cells.slice(1), 'row-1 BASE 0 is missing'],
  ['a fare is lost', (cells) => cells.slice(0, -1), 'row-3 FARE 0 is missing'],
  [
    'a trip is another one',
    ([first, ...rest]) => [{ ...present(first), body: { zone: 1 } }, ...rest],
    'row-1 BASE 0 is {"zone":1}, not what was put',
  ],
  [
    'a fare is written twice',
    (cells) => [...cells, { ...present(cells[1]), refKey: 1 }],
    'row-1 FARE 1 was never put, or is there twice',
  ],
  [
    'a cell is in the log twice',
    (cells) => [...cells, present(cells[0])],
    'row-1 BASE 0 was never put, or is there twice',
  ],
])('AUDIT-1, AUDIT-2: %s', (_, change, said) => {
  expect(cellComplaints(trips, logsOf(change(soundCells())))).toEqual([said])
})

test('AUDIT-1: a log has a gap, and replicas differ', () => {
  const [first, ...rest] = soundCells()
  const gap = [present(first), ...rest.map((cell) => ({ ...cell, addedId: cell.addedId + 1 }))]
  expect(cellComplaints(trips, new Map([[5, gap]]))).toContain('shard 5: row-1 FARE 0 is 3, not 2')
  const [sound, other] = [logsOf(soundCells()), logsOf(soundCells().toReversed())]
  expect(logComplaints(new Map([...pairs('a', sound), ...pairs('b', other)]))).toEqual([
    'shard 5 has another log at b than at a',
  ])
  expect(logComplaints(new Map([...pairs('a', sound), ...pairs('b', new Map())]))).toHaveLength(1)
})

test('AUDIT-3: the index lacks an entry, has one too many, or has them out of order', () => {
  const [first, second] = soundEntries(7)
  const of = (entries: readonly (SeenEntry | undefined)[]): readonly string[] =>
    indexComplaints(
      trips,
      new Map([
        [7, entries.map(present)],
        [8, soundEntries(8)],
      ]),
    )
  expect(of([first])).toEqual([expect.stringContaining('zone 7: 1 entries are missing, 0 should')])
  expect(of([first, second, { ...present(second), rowKey: 'row-9' }])).toEqual([
    expect.stringContaining('zone 7: 0 entries are missing, 1 should not'),
  ])
  expect(of([first, second, second])).toEqual([expect.stringContaining('one is there twice')])
  expect(of([second, first])).toEqual(['zone 7: entries are out of order'])
  const span = { zone: 7, from: present(first).at, to: present(second).at }
  expect(spanComplaints(trips, span, [present(first)])).toEqual([])
  expect(spanComplaints(trips, span, [])).toHaveLength(1)
  expect(spanComplaints(trips, span, [present(first), present(second)])).toHaveLength(1)
})

test('AUDIT-4: a trigger was not called, was called out of order, or for nothing', () => {
  const logs = logsOf(soundCells())
  const said = (lines: readonly string[]): readonly string[] => ledgerReport(lines, logs).complaints
  expect(said(soundLines.slice(1))).toEqual(['never handled: 5 1 row-1'])
  expect(said(soundLines.toReversed())).toEqual([
    '5 3 row-2 was handled after 5',
    '5 1 row-1 was handled after 5',
  ])
  expect(said([...soundLines, '5 2 row-1'])).toEqual(['called for what is no trip: 5 2 row-1'])
})

function* pairs(id: string, logs: Logs): Generator<readonly [string, Logs]> {
  yield [id, logs]
}

function present<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('the example has it')
  return value
}
