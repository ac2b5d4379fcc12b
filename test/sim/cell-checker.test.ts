import { expect, test } from 'vitest'
import { CellChecker, type CellName, type SeenCell } from '../../sim/checkers/cell-checker.ts'
import { Referee } from '../../sim/checkers/referee.ts'

const row = '00000000-0000-4000-8000-000000000001'

function named(refKey: number): CellName {
  return { shard: 1, row, column: 'BASE', refKey }
}

function cell(refKey: number, addedId: number, body = `body ${refKey}`): SeenCell {
  return { ...named(refKey), addedId, createdAt: String(1000 + addedId), body }
}

class Court {
  readonly referee = new Referee(() => 0)
  readonly checker = new CellChecker(this.referee)

  get rules(): string[] {
    return [...new Set(this.referee.violations.map((violation) => violation.rule))]
  }

  put(written: SeenCell, isCreated = true): void {
    const startTick = this.checker.begin()
    this.checker.onPutSent(written, written.body)
    this.checker.onPutAcknowledged(written, startTick, isCreated)
  }

  reader(isCurrent = true): { client: string; startTick: number; isCurrent: boolean } {
    return { client: 'c1', startTick: this.checker.begin(), isCurrent }
  }
}

test('CELL-1: equal puts, repeated and read back, are clean', () => {
  const court = new Court()
  court.put(cell(1, 1))
  court.put(cell(1, 1), false)
  court.checker.onGot(named(1), cell(1, 1), court.reader())
  court.checker.onLatest(row, 'BASE', 1, cell(1, 1), court.reader())
  court.checker.onShardRead(1, { after: 0, limit: 10 }, [cell(1, 1)], court.reader())
  expect(court.rules).toEqual([])
})

test('CELL-1: the checker finds a cell that changes or that no writer wrote', () => {
  const changed = new Court()
  changed.put(cell(1, 1))
  changed.checker.onPutSent(named(1), 'other')
  changed.checker.onGot(named(1), cell(1, 1, 'other'), changed.reader())
  expect(changed.rules).toEqual(['CELL-1'])
  const invented = new Court()
  invented.checker.onGot(named(1), cell(1, 1), invented.reader())
  expect(invented.rules).toEqual(['CELL-1'])
})

test('CELL-1: a refusal without another body to refuse for is found', () => {
  const court = new Court()
  court.checker.onPutSent(named(1), 'mine')
  court.checker.onPutRefused(named(1), 'mine')
  expect(court.rules).toEqual(['CELL-1'])
  const fair = new Court()
  fair.checker.onPutSent(named(1), 'mine')
  fair.checker.onPutSent(named(1), 'theirs')
  fair.checker.onPutRefused(named(1), 'mine')
  expect(fair.rules).toEqual([])
})

test('CELL-2: an older version than the newest known one is found, also out of order', () => {
  const court = new Court()
  court.put(cell(1, 1))
  court.put(cell(2, 2))
  court.checker.onLatest(row, 'BASE', 1, cell(1, 1), court.reader())
  expect(court.rules).toEqual(['LEASE-3'])
  const asked = { shard: 1, row, column: 'BASE' }
  const range = { from: 0, limit: 10, reverse: false }
  court.checker.onVersions(asked, range, [cell(2, 2), cell(1, 1)], court.reader())
  expect(court.rules).toEqual(['LEASE-3', 'CELL-2'])
})

test('CELL-3: a gap, a number used twice, or one that went back is found', () => {
  const gap = new Court()
  gap.put(cell(1, 1))
  gap.put(cell(2, 3))
  gap.checker.onShardRead(1, { after: 0, limit: 10 }, [cell(1, 1), cell(2, 3)], gap.reader())
  expect(gap.rules).toContain('CELL-3')
  const twice = new Court()
  twice.put(cell(1, 1))
  twice.checker.onPutSent(named(2), 'body 2')
  twice.put(cell(2, 1), false)
  expect(twice.rules).toEqual(['CELL-3'])
  const back = new Court()
  back.put(cell(1, 5))
  back.put(cell(2, 4))
  expect(back.rules).toEqual(['CELL-3'])
})

test('LOG-3: a cell that is created twice is found', () => {
  const court = new Court()
  court.put(cell(1, 1))
  court.checker.onPutAcknowledged(cell(1, 1), court.checker.begin(), true)
  expect(court.rules).toContain('LOG-3')
})

test('LEASE-3: a current read that misses an acknowledged cell is found, on every path', () => {
  const paths: readonly ((court: Court) => void)[] = [
    (court) => court.checker.onGot(named(1), undefined, court.reader()),
    (court) => court.checker.onLatest(row, 'BASE', 1, undefined, court.reader()),
    (court) =>
      court.checker.onVersions(
        { shard: 1, row, column: 'BASE' },
        { from: 0, limit: 10, reverse: false },
        [],
        court.reader(),
      ),
    (court) => court.checker.onShardRead(1, { after: 0, limit: 10 }, [], court.reader()),
  ]
  for (const path of paths) {
    const court = new Court()
    court.put(cell(1, 1))
    path(court)
    expect(court.rules).toEqual(['LEASE-3'])
  }
})

test('LEASE-3: a later current read must show what an earlier read showed', () => {
  const court = new Court()
  court.checker.onPutSent(named(1), 'body 1')
  court.checker.onGot(named(1), cell(1, 1), court.reader())
  court.checker.onGot(named(1), undefined, court.reader())
  expect(court.rules).toEqual(['LEASE-3'])
})

test('LEASE-3: a read that began before, or that promised nothing, may miss a cell', () => {
  const court = new Court()
  const early = court.reader()
  court.put(cell(1, 1))
  court.checker.onGot(named(1), undefined, early)
  court.checker.onGot(named(1), undefined, court.reader(false))
  expect(court.rules).toEqual([])
})

/** Cells 1 to 3 of a column, and a purge of those before the third. */
function purged(keepsLatest: boolean, isAcknowledged = true): Court {
  const court = new Court()
  for (const n of [1, 2, 3]) court.put(cell(n, n))
  const before = court.checker.timeAfter(1, 2) ?? 0
  const purge = court.checker.onPurgeSent({ shard: 1, before, keepsLatest })
  if (isAcknowledged) court.checker.onPurgeAcknowledged(purge)
  return court
}

test('CELL-7: a read that shows a purged cell is found, unless it began before', () => {
  const court = purged(true)
  court.checker.onGot(named(1), undefined, court.reader())
  court.checker.onShardRead(1, { after: 0, limit: 10 }, [cell(3, 3)], court.reader())
  court.checker.onGot(named(2), cell(2, 2), court.reader(false))
  expect(court.rules).toEqual([])
  court.checker.onGot(named(2), cell(2, 2), court.reader())
  expect(court.rules).toEqual(['CELL-7'])
  const early = purged(true, false)
  early.checker.onGot(named(2), cell(2, 2), early.reader())
  early.checker.onGot(named(2), undefined, early.reader())
  expect(early.rules).toEqual([])
})

test('CELL-8: a cell that no purge named must be there', () => {
  const court = purged(true)
  court.checker.onLatest(row, 'BASE', 1, undefined, court.reader())
  expect(court.rules).toEqual(['CELL-8'])
  const newer = purged(false)
  newer.checker.onVersions(
    { row, column: 'BASE', shard: 1 },
    { from: 0, limit: 10, reverse: false },
    [],
    newer.reader(),
  )
  expect(newer.rules).toEqual(['CELL-8'])
  const gap = purged(true)
  gap.put(cell(5, 5))
  gap.checker.onShardRead(1, { after: 0, limit: 10 }, [cell(5, 5)], gap.reader())
  expect(gap.rules).toEqual(['CELL-3'])
})

test('CELL-1: a purged cell that comes back with another body is found', () => {
  const court = purged(true)
  court.put(cell(1, 4, 'another'))
  expect(court.rules).toEqual(['CELL-1', 'LOG-3'])
})

test('CELL-4: the checker finds a put that met its cell though no other writer put it', () => {
  const court = new Court()
  court.put(cell(1, 1), false)
  expect(court.rules).toEqual(['CELL-4'])
  const fair = new Court()
  fair.checker.onPutSent(named(1), 'body 1')
  fair.put(cell(1, 1), false)
  expect(fair.rules).toEqual([])
})

test('CELL-4: the checker finds a cell whose puts all failed with nothing written', () => {
  const before = new Court()
  before.checker.onPutSent(named(1), 'body 1')
  before.checker.onPutFailed(named(1), 'body 1')
  before.checker.onGot(named(1), cell(1, 1), before.reader())
  expect(before.rules).toEqual(['CELL-4'])
  const after = new Court()
  after.checker.onPutSent(named(1), 'body 1')
  after.checker.onGot(named(1), cell(1, 1), after.reader())
  after.checker.onPutFailed(named(1), 'body 1')
  expect(after.rules).toEqual(['CELL-4'])
  const fair = new Court()
  fair.checker.onPutSent(named(1), 'body 1')
  fair.checker.onPutFailed(named(1), 'body 1')
  fair.put(cell(1, 1))
  expect(fair.rules).toEqual([])
})

test('CELL-5: a session that is shown an earlier position than it named is found', () => {
  const court = new Court()
  court.checker.onPosition('c1', 1, 7, 7)
  court.checker.onPosition('c1', 1, 7, 9)
  expect(court.rules).toEqual([])
  court.checker.onPosition('c1', 1, 7, 6)
  expect(court.rules).toEqual(['CELL-5'])
})

test('CELL-3: a log since a time begins with the first cell of that time, or later', () => {
  const begun = (time: number, next: number, first?: SeenCell): string[] => {
    const court = new Court()
    for (const addedId of [1, 2, 3]) court.put(cell(addedId, addedId))
    court.checker.onLogSince(1, time, { next, first }, court.reader())
    return court.rules
  }
  expect(begun(1002, 2, cell(2, 2))).toEqual([])
  expect(begun(0, 1, cell(1, 1))).toEqual([])
  expect(begun(1004, 3)).toEqual([])
  expect(begun(1003, 2, cell(2, 2))).toEqual(['CELL-3'])
  expect(begun(1002, 3, cell(3, 3))).toEqual(['CELL-3'])
  expect(begun(1003, 3)).toEqual(['CELL-3'])
})

test('CELL-2: a page that names a place it has shown, or that has room left, is found', () => {
  const judged = (next: number | string, limit: number): string[] => {
    const court = new Court()
    court.put(cell(1, 1))
    court.put(cell(2, 2))
    court.checker.onCursor(next, [cell(1, 1), cell(2, 2)], limit)
    return court.rules
  }
  expect(judged(3, 2)).toEqual([])
  expect(judged(2, 2)).toEqual(['CELL-2'])
  expect(judged('BASE', 2)).toEqual(['CELL-2'])
  expect(judged(3, 1)).toEqual(['CELL-2'])
})
