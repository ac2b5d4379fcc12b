/** The list-append checker on histories written by hand: each anomaly by its name, and clean ones. */
import { expect, test } from 'vitest'
import { checkHistory, explain } from '../../sim/history/check.ts'
import type { Promised } from '../../sim/history/edges.ts'
import type {
  Element,
  History,
  HistoryOperation,
  MicroOperation,
} from '../../sim/history/operation.ts'

const append = (key: string, element: Element, index?: number): MicroOperation => ({
  ...{ kind: 'append', key, element },
  ...(index === undefined ? {} : { index }),
})
const read = (key: string, ...elements: Element[]): MicroOperation => ({
  ...{ kind: 'read', key, elements, after: 0, isEnd: true },
})
const write = (key: string, version: number, value?: Element): MicroOperation => ({
  ...{ kind: 'write', key, version },
  ...(value === undefined ? {} : { value }),
})
const latest = (key: string, version?: number): MicroOperation => ({
  ...{ kind: 'latest', key },
  ...(version === undefined ? {} : { version }),
})
const got = (
  key: string,
  version: number,
  isPresent: boolean,
  value?: Element,
): MicroOperation => ({
  ...{ kind: 'get', key, version, isPresent },
  ...(value === undefined ? {} : { value }),
})

type Change = Partial<HistoryOperation>

/** An operation of a client from a time to another. */
function op(
  client: string,
  [start, end]: readonly [number, number],
  micro: readonly MicroOperation[],
  change: Change = {},
): HistoryOperation {
  return { client, micro, level: 'current', start, end, outcome: 'ok', ...change }
}

function unknown(
  client: string,
  start: number,
  micro: readonly MicroOperation[],
): HistoryOperation {
  return { client, micro, level: 'current', start, outcome: 'unknown' }
}

/** Everything at once: only the data order the operations. */
const at = [1, 100] as const

function namesOf(history: History, promised: Promised = 'strict-serializable'): string[] {
  return [...new Set(checkHistory(history, { promised }).anomalies.map(({ name }) => name))].sort()
}

test('TXN-1: G0 is two transactions whose writes are interleaved', () => {
  const history = [
    op('a', at, [append('x', 1), append('y', 1)]),
    op('b', at, [append('x', 2), append('y', 2)]),
    op('c', at, [read('x', 1, 2)]),
    op('d', at, [read('y', 2, 1)]),
  ]
  expect(namesOf(history)).toEqual(['G0'])
})

test('TXN-1: G1a is a read of what a failed transaction wrote', () => {
  const history = [op('a', at, [append('x', 1)], { outcome: 'fail' }), op('b', at, [read('x', 1)])]
  expect(namesOf(history)).toEqual(['G1a'])
})

test('TXN-1: G1b is a read of the middle of a transaction', () => {
  const history = [op('a', at, [append('x', 1), append('x', 2)]), op('b', at, [read('x', 1)])]
  expect(namesOf(history)).toEqual(['G-single', 'G1b'])
})

test('TXN-1: G1c is two transactions that see each other', () => {
  const history = [
    op('a', at, [append('x', 1), read('y', 1)]),
    op('b', at, [append('y', 1), read('x', 1)]),
  ]
  expect(namesOf(history)).toEqual(['G1c'])
})

test('TXN-1: G-single is a read that sees one write of a transaction and misses another', () => {
  const history = [
    op('a', at, [append('x', 1), append('y', 1)]),
    op('b', at, [read('x', 1), read('y')]),
    op('c', at, [read('y', 1)]),
  ]
  expect(namesOf(history)).toEqual(['G-single'])
})

test('TXN-1: the checker finds G-single even if no read ever shows the missed write', () => {
  const history = [
    op('a', at, [append('x', 1), append('y', 1)]),
    op('b', at, [read('x', 1), read('y')]),
  ]
  expect(namesOf(history)).toEqual(['G-single'])
})

test('TXN-4: a transaction of unknown outcome happened as a whole once part of it is seen', () => {
  const history = [
    unknown('a', 1, [append('x', 1), append('y', 1)]),
    op('b', [200, 210], [read('x', 1), read('y')]),
  ]
  expect(namesOf(history)).toEqual(['G-single'])
})

test('TXN-1: G2-item is two transactions that each miss what the other wrote', () => {
  const history = [
    op('a', at, [read('x'), append('y', 1)]),
    op('b', at, [read('y'), append('x', 1)]),
    op('c', at, [read('x', 1), read('y', 1)]),
  ]
  expect(namesOf(history)).toEqual(['G2-item'])
})

test('TXN-1: a cycle that needs the order of a session carries -session in its name', () => {
  const history = [
    op('a', [1, 2], [append('x', 1)]),
    op('a', [3, 100], [append('y', 1)]),
    op('b', at, [read('y', 1), read('x')]),
    op('c', at, [read('x', 1)]),
  ]
  expect(namesOf(history, 'strong-session')).toEqual(['G-single-session'])
  expect(namesOf(history, 'serializable')).toEqual([])
})

test('LEASE-3: a cycle that needs real time carries -realtime in its name', () => {
  const history = [
    op('a', [1, 2], [append('x', 1)]),
    op('b', [3, 100], [append('y', 1)]),
    op('c', at, [read('y', 1), read('x')]),
    op('d', at, [read('x', 1)]),
  ]
  expect(namesOf(history)).toEqual(['G-single-realtime'])
  expect(namesOf(history, 'strong-session')).toEqual([])
})

test('LEASE-3: G0-realtime is writes that stand in another order than they were acknowledged in', () => {
  const history = [
    op('a', [1, 2], [append('x', 1)]),
    op('b', [3, 4], [append('x', 2)]),
    op('c', [5, 6], [read('x', 2, 1)]),
  ]
  expect(namesOf(history)).toEqual(['G0-realtime'])
})

test('LEASE-3: G1c-realtime is a read that ended before what it shows was begun', () => {
  const history = [op('a', [1, 2], [read('x', 1)]), op('b', [3, 4], [append('x', 1)])]
  expect(namesOf(history)).toEqual(['G1c-realtime'])
})

test('LEASE-3: G2-item-realtime is two reads of an older state that real time makes a circle', () => {
  const history = [
    op('a', [11, 12], [read('x')]),
    op('b', [1, 100], [read('y'), append('x', 1)]),
    op('c', [1, 10], [append('y', 1)]),
  ]
  expect(namesOf(history)).toEqual(['G2-item-realtime'])
})

test('TXN-1: a lost update is two transactions that append to the same state', () => {
  const history = [
    op('a', at, [read('x', 0), append('x', 1)]),
    op('b', at, [read('x', 0), append('x', 2)]),
    op('c', at, [append('x', 0)]),
    op('d', at, [read('x', 0, 1, 2)]),
  ]
  expect(namesOf(history)).toEqual(['G-single', 'lost-update'])
})

test('TXN-1: a lost update is an acknowledged append that no read ever shows', () => {
  const history = [
    op('a', [1, 2], [append('x', 1)]),
    op('b', [3, 4], [append('x', 2)]),
    op('c', [5, 6], [read('x', 2)]),
  ]
  expect(namesOf(history)).toEqual(['G0-realtime', 'lost-update'])
})

test('TXN-1: a dirty update stands on top of what a failed transaction wrote', () => {
  const history = [
    op('a', at, [append('x', 1)], { outcome: 'fail' }),
    op('b', at, [append('x', 2)]),
    op('c', at, [read('x', 1, 2)]),
  ]
  expect(namesOf(history)).toEqual(['G1a', 'dirty-update'])
})

test('TXN-1: incompatible orders are two reads of which neither continues the other', () => {
  const history = [
    op('a', at, [append('x', 1)]),
    op('b', at, [append('x', 2)]),
    op('c', at, [read('x', 1, 2)]),
    op('d', at, [read('x', 2)]),
  ]
  expect(namesOf(history)).toEqual(['incompatible-order'])
})

test('LOG-3: an element stands in a list once', () => {
  const history = [op('a', at, [append('x', 1)]), op('b', at, [read('x', 1, 1)])]
  expect(namesOf(history)).toEqual(['duplicate-elements'])
  expect(namesOf([op('a', at, [append('x', 1)]), op('b', at, [append('x', 1)])])).toEqual([
    'duplicate-elements',
  ])
})

test('TXN-1: a read of an element that no writer wrote is a breach', () => {
  expect(namesOf([op('a', at, [read('x', 7)])])).toEqual(['unwritten'])
  expect(namesOf([op('a', at, [latest('r', 7)])])).toEqual(['unwritten'])
})

test('TXN-1: a transaction sees its own appends at the end of the list, and nothing change', () => {
  const good = op('a', at, [read('x', 1), append('x', 2), read('x', 1, 2)])
  const other = op('b', at, [append('x', 1)])
  expect(namesOf([good, other])).toEqual([])
  const without = op('a', at, [append('x', 2), read('x', 1)])
  expect(namesOf([without, other])).toEqual(['internal'])
  const changing = op('a', at, [read('x'), read('x', 1)])
  expect(namesOf([changing, other])).toEqual(['internal'])
  const early = op('a', at, [read('x', 1, 2), append('x', 2)])
  expect(namesOf([early, other])).toContain('internal')
})

test('LEASE-3: a stale read misses what was acknowledged before it began', () => {
  const history = [
    op('a', [1, 2], [append('x', 1)]),
    op('b', [3, 4], [read('x')]),
    op('c', [5, 6], [read('x', 1)]),
  ]
  expect(namesOf(history)).toEqual(['G-single-realtime', 'stale-read'])
})

test('LEASE-4: a read of any replica may be old, but not older than what its session has seen', () => {
  const any: Change = { level: 'snapshot' }
  const old = [
    op('a', [1, 2], [append('x', 1)]),
    op('b', [3, 4], [read('x')], any),
    op('b', [5, 6], [read('x', 1)], any),
  ]
  expect(namesOf(old)).toEqual([])
  const back = [...old, op('b', [7, 8], [read('x')], any)]
  expect(namesOf(back)).toEqual(['G-single-session', 'session-backwards'])
})

test('LEASE-4: a read from a place that showed nothing does not say that there was anything before', () => {
  const any: Change = { level: 'snapshot' }
  const from = (after: number, ...elements: Element[]): MicroOperation => ({
    ...{ kind: 'read', key: 'x', elements, after, isEnd: true },
  })
  const appends = [1, 2, 3].map((n) => op('a', [2 * n, 2 * n + 1], [append('x', n)]))
  const nothing = [op('b', [10, 11], [from(2)], any), op('b', [12, 13], [from(1)], any)]
  expect(namesOf([...appends, ...nothing])).toEqual([])
  const last = op('c', [20, 21], [read('x', 1, 2, 3)])
  expect(namesOf([...appends, ...nothing, last])).toEqual([])
  const shown = [op('b', [10, 11], [from(1, 2)], any), op('b', [12, 13], [from(1)], any)]
  expect(namesOf([...appends, ...shown, last])).toEqual(['G-single-session', 'session-backwards'])
})

test('LEASE-4: an old read of another group is no step back', () => {
  const [x, y]: Change[] = [{ group: 'x' }, { group: 'y', level: 'snapshot' }]
  const history = [
    op('a', [1, 2], [append('y', 1)], { group: 'y' }),
    op('b', [1, 4], [append('x', 1)], x),
    op('b', [5, 6], [read('y')], y),
    op('a', [3, 4], [read('x')], x),
    op('c', [9, 10], [read('x', 1)], x),
    op('c', [11, 12], [read('y', 1)], y),
  ]
  expect(namesOf(history)).toEqual([])
})

test('LEASE-3: a later current read sees what a read of any replica has shown', () => {
  const history = [
    unknown('a', 1, [append('x', 1)]),
    op('b', [3, 4], [read('x', 1)], { level: 'snapshot' }),
    op('c', [5, 6], [read('x')]),
  ]
  expect(namesOf(history)).toEqual(['G-single-realtime'])
})

test('LEASE-4: a session sees its own writes', () => {
  const history = [
    op('a', [1, 2], [append('x', 1)]),
    op('a', [3, 4], [read('x')], { level: 'snapshot' }),
    op('b', [3, 4], [read('x', 1)]),
  ]
  expect(namesOf(history)).toEqual(['G-single-session', 'session-backwards'])
})

test('CELL-2: the latest version of a register is the highest one acknowledged', () => {
  const writes = [op('a', [1, 2], [write('r', 5)]), op('c', [3, 4], [write('r', 3)])]
  expect(namesOf([...writes, op('b', [5, 6], [latest('r', 5), got('r', 3, true)])])).toEqual([])
  expect(namesOf([...writes, op('b', [5, 6], [latest('r', 3)])])).toEqual(['G-single-realtime'])
  expect(namesOf([...writes, op('b', [5, 6], [got('r', 3, false)])])).toEqual(['G-single-realtime'])
  expect(namesOf([...writes, op('b', [5, 6], [latest('r')], { level: 'snapshot' })])).toEqual([])
})

test('CELL-1: a version of a register never changes', () => {
  const history = [
    op('a', [1, 2], [write('r', 1, 'one')]),
    op('b', [3, 4], [got('r', 1, true, 'other')]),
  ]
  expect(namesOf(history)).toEqual(['changed-value'])
})

test('CELL-3: reads show an element at the place that its writer got', () => {
  const writes = [op('a', at, [append('x', 'a', 0)]), op('b', at, [append('x', 'b', 1)])]
  expect(namesOf([...writes, op('c', at, [read('x', 'a', 'b')])])).toEqual([])
  expect(namesOf([...writes, op('c', at, [read('x', 'b', 'a')])])).toEqual(['incompatible-order'])
  const twice = [op('a', at, [append('x', 'a', 0)]), op('b', at, [append('x', 'b', 0)])]
  expect(namesOf(twice)).toEqual(['incompatible-order'])
})

test('CELL-3: pages of a list are judged like whole reads', () => {
  const page = (after: number, isEnd: boolean, ...elements: Element[]): MicroOperation => ({
    ...{ kind: 'read', key: 'x', elements, after, isEnd },
  })
  const writes = [1, 2, 3].map((element) =>
    op(`w${element}`, [element * 10, element * 10 + 1], [append('x', element)]),
  )
  expect(namesOf([...writes, op('r', [50, 51], [page(0, false, 1, 2), page(2, true, 3)])])).toEqual(
    [],
  )
  const whole = op('s', [60, 61], [read('x', 1, 2, 3)])
  expect(namesOf([...writes, whole, op('r', [50, 51], [page(1, true, 2)])])).toEqual([
    'G-single-realtime',
    'stale-read',
  ])
})

test('TXN-1: failed operations and unknown ones, seen or unseen, break no rule', () => {
  const history = [
    op('a', [1, 2], [append('x', 1)]),
    op('b', [3, 4], [append('x', 2)], { outcome: 'fail' }),
    unknown('c', 5, [append('x', 3)]),
    op('d', [6, 7], [read('x', 1)]),
    op('d', [8, 9], [read('x', 1, 3)]),
  ]
  expect(namesOf(history)).toEqual([])
})

test('TXN-1: the checker takes none of several unknown writers for the writer', () => {
  const rivals = [
    unknown('a', 1, [append('x', 'one'), write('r', 1, 'one')]),
    unknown('b', 2, [append('x', 'two'), write('r', 1, 'two')]),
  ]
  const seesTwo = op('c', [3, 4], [got('r', 1, true, 'two'), read('x', 'two')])
  const missesOne = op('c', [5, 6], [read('x', 'two')])
  expect(namesOf([...rivals, seesTwo, missesOne])).toEqual([])
  expect(namesOf([...rivals, op('c', [3, 4], [got('r', 1, true, 'three')])])).toEqual(['unwritten'])
  const alike = [...rivals, unknown('d', 2, [append('x', 'two'), write('r', 1, 'two')])]
  expect(namesOf([...alike, seesTwo])).toEqual([])
  expect(namesOf([...alike, op('d', [3, 4], [read('x')]), seesTwo])).toEqual([])
})

test('TXN-1: an unread element may stand in a gap between the places that reads and writers show', () => {
  const late: MicroOperation = { kind: 'read', key: 'x', after: 2, elements: [], isEnd: true }
  const history = [
    unknown('a', 1, [append('x', 'one'), write('r', 1)]),
    op('b', [3, 4], [latest('r', 1)]),
    op('b', [5, 6], [append('x', 'two', 1), write('r', 2)]),
    op('b', [7, 8], [late]),
  ]
  expect(namesOf(history)).toEqual([])
  expect(namesOf([op('a', [1, 2], [append('x', 'one')]), ...history.slice(2)])).toEqual([])
  expect(namesOf([...history, op('b', [9, 10], [read('x', 'three', 'two')])])).toEqual(
    ['unwritten', 'G-single'].sort(),
  )
})

test('TXN-1: an anomaly is explained with the operations concerned', () => {
  const history = [
    op('a', [1, 2], [append('x', 1)]),
    op('b', [3, 4], [read('x')]),
    op('c', [5, 6], [read('x', 1)]),
  ]
  const { anomalies } = checkHistory(history)
  expect(anomalies.map((one) => explain(one, history)).join('\n')).toMatchInlineSnapshot(`
    "stale-read: a current read misses what was acknowledged before it began
      T1 appended 1 to x and was told so at 2; T2 began at 3 and read x as [], without it.
        T1 = a, 1 to 2, ok: append 1 to x
        T2 = b, 3 to 4, ok: read x as []
    G-single-realtime: an operation saw the state before a write that it must come after, once real time counts
      T1 is before T2: T1 read x as empty without 1, which T2 appended.
      T2 had ended (at 2) before T1 began (at 3).
      So each of them must come before itself.
        T1 = b, 3 to 4, ok: read x as []
        T2 = a, 1 to 2, ok: append 1 to x"
  `)
})
