import { expect, test } from 'vitest'
import { groupOfBytes, nodeId } from '../../src/base/ids.ts'
import { defaultLimits } from '../../src/base/limits.ts'
import { pack } from '../../src/base/pack.ts'
import { staticPlacement } from '../../src/placement/placement.ts'
import type { Put } from '../../src/ports/storage.ts'
import { encodeEntry } from '../../src/replication/entry.ts'
import { encodeTransaction } from '../../src/group/transaction.ts'
import { latin1 } from '../../src/base/bytes.ts'
import { hashOfNothing, RowsSum, type GroupHash } from '../../src/store/group-hash.ts'
import {
  decodeStored,
  encodeState,
  encodeStored,
  groupPrefix,
  joined,
  rowsPrefix,
  stagingKey,
  historyPrefix,
  stateKey,
  versionKey,
} from '../../src/store/row-format.ts'
import type { ChangedGroup } from '../../sim/checkers/data-disks.ts'
import { Judge } from '../../sim/checkers/judge.ts'
import { RowSum } from '../../sim/checkers/row-sum.ts'
import { noTimes } from '../../sim/world/turn-costs.ts'
import { Referee } from '../../sim/checkers/referee.ts'
import { Coverage } from '../../sim/coverage.ts'

const nodes = ['n1', 'n2', 'n3'].map(nodeId)
const group = groupOfBytes(Buffer.from('a\0group'))
const expiresAt = 10 ** 15

interface Write {
  readonly key: string
  readonly value: string
}

/** An entry with one transaction. */
function entry(
  position: number,
  write: Write,
  intent = position,
  timestamp = position,
  horizon = 0,
): Uint8Array {
  const transaction = encodeTransaction({
    ...{ session: 's', sequence: intent, attempt: 100 + position, floor: 0, expiresAt },
    allocations: [0],
    mutations: [
      {
        key: Buffer.from(write.key),
        value: Buffer.concat([Buffer.alloc(8), Buffer.from(write.value)]),
        slots: [{ allocation: 0, at: 'value', offset: 0 }],
      },
    ],
  })
  const nextLeader = { node: nodeId('n1'), incarnation: 1 }
  return encodeEntry({ position, timestamp, horizon, nextLeader, transactions: [transaction] })
}

/** The value of a row whose number was the `number`th drawn. */
function numbered(number: number, value: string): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64BE(BigInt(number))
  return Buffer.concat([bytes, Buffer.from(value)])
}

class Court {
  readonly referee = new Referee(() => 0)
  readonly judge = new Judge({
    ...{ placement: staticPlacement(nodes), referee: this.referee, coverage: new Coverage() },
    ...{ narrator: undefined, limits: defaultLimits, times: noTimes },
    monotonicMs: () => 0,
    nowMicros: () => 0,
  })

  readonly #rows = new Map<string, Map<string, Put>>()

  get rules(): string[] {
    return [...new Set(this.referee.violations.map((violation) => violation.rule))]
  }

  choose(position: number, value: Uint8Array): void {
    const view = this.judge.book.of(group, position)
    view.chosen = { ballot: { epoch: 1, round: 1, node: nodeId('n1'), incarnation: 1 }, value }
    this.judge.model.onChosen(view)
  }

  apply(node: string, position: number, value: Uint8Array): void {
    this.judge.onTrace(node, { kind: 'apply', group, position, value })
  }

  /** A batch on a data disk: rows, and the state record if a position is given. */
  batch(node: string, position: number | undefined, rows: readonly Put[]): void {
    if (position !== undefined) this.log(node, position)
    this.batchAlone(node, position, rows)
  }

  /** The choice at a position becomes durable in the node's log. */
  log(node: string, position: number): void {
    const { chosen } = this.judge.book.of(group, position)
    if (chosen === undefined) return
    this.judge.logFirst.onLogDurable(node, { kind: 'chosen', group, position, ...chosen })
  }

  /** `hash`: of all newest rows that batches have put on the disk, unless it is given. */
  batchAlone(
    node: string,
    position: number | undefined,
    rows: readonly Put[],
    hash = this.#hashWith(node, rows),
  ): void {
    const key = stateKey(groupPrefix(group))
    const state = Buffer.from(`state at ${position}`)
    const own = { flush: 0, snapshot: 0 }
    const puts =
      position === undefined ? [] : [{ key, value: encodeState(key, position, own, state, hash) }]
    this.judge.onDataDurable(node, [...rows, ...puts], 0)
  }

  #hashWith(node: string, puts: readonly Put[]): GroupHash {
    const rows = this.#rows.get(node) ?? new Map<string, Put>()
    this.#rows.set(node, rows)
    const prefix = rowsPrefix(groupPrefix(group))
    for (const put of puts) {
      if (prefix.equals(put.key.subarray(0, prefix.length))) rows.set(latin1(put.key), put)
    }
    const sum = new RowsSum()
    for (const { key, value } of rows.values()) {
      const stored = value && decodeStored(key, value)
      if (typeof stored !== 'object') continue
      sum.add(key.subarray(prefix.length), stored.stamp, stored.payload)
    }
    return sum.hash
  }
}

function row(key: string, timestamp: number, value: Uint8Array): Put {
  const whole = joined(rowsPrefix(groupPrefix(group)), Buffer.from(key))
  return { key: whole, value: encodeStored(whole, timestamp, value) }
}

const one = entry(1, { key: 'a', value: 'x' })
const two = entry(2, { key: 'b', value: 'y' })

test('LOG-1: applying in order what is chosen is clean; a hole or another value is found', () => {
  const court = new Court()
  court.choose(1, one)
  court.choose(2, two)
  court.judge.onStart('n1')
  court.apply('n1', 1, one)
  court.apply('n1', 2, two)
  expect(court.rules).toEqual([])
  court.apply('n2', 2, two)
  expect(court.rules).toEqual(['LOG-1'])
  const other = new Court()
  other.choose(1, one)
  other.apply('n1', 1, entry(1, { key: 'a', value: 'not this' }))
  expect(other.rules).toEqual(['LOG-1'])
})

test('LOG-1: after a restart a node goes on from its data disk, not from before it', () => {
  const court = new Court()
  court.choose(1, one)
  court.choose(2, two)
  court.apply('n1', 1, one)
  court.batch('n1', 1, [row('a', 1, numbered(1, 'x'))])
  court.apply('n1', 2, two)
  court.judge.onStart('n1')
  court.apply('n1', 2, two)
  expect(court.rules).toEqual([])
  court.judge.onStart('n1')
  court.apply('n1', 1, one)
  expect(court.rules).toEqual(['LOG-1'])
})

test('LOG-2: rows that differ from what their position says are found', () => {
  const court = new Court()
  court.choose(1, one)
  const right = new RowSum()
  right.toggle(Buffer.from('a'), numbered(1, 'x'), 1, true)
  court.judge.log.onRowsSeen('n1', group, 1, right)
  expect(court.rules).toEqual([])
  const wrong = new RowSum()
  wrong.toggle(Buffer.from('a'), numbered(2, 'x'), 1, true)
  court.judge.log.onRowsSeen('n1', group, 1, wrong)
  expect(court.rules).toEqual(['LOG-2'])
})

test('LOG-2: state records that differ at one position are found', () => {
  const court = new Court()
  court.judge.log.onDurableState('n1', group, 1, 'a hash')
  court.judge.log.onDurableState('n2', group, 1, 'a hash')
  expect(court.rules).toEqual([])
  court.judge.log.onDurableState('n3', group, 1, 'another')
  expect(court.rules).toEqual(['LOG-2'])
})

test('LOG-3: an intent that takes effect at two positions is found', () => {
  const court = new Court()
  court.choose(1, entry(1, { key: 'a', value: 'x' }, 7))
  expect(court.rules).toEqual([])
  court.choose(2, entry(2, { key: 'a', value: 'x' }, 7))
  expect(court.rules).toEqual(['LOG-3'])
})

test('LOG-4: an answered commit that is not chosen at its position is found', () => {
  const court = new Court()
  court.choose(1, one)
  const verdict = { kind: 'committed', position: 1, attempt: 101 }
  court.judge.onTrace('n1', { kind: 'settled', group, verdict })
  expect(court.rules).toEqual([])
  court.judge.onTrace('n1', { kind: 'settled', group, verdict: { ...verdict, attempt: 102 } })
  expect(court.rules).toEqual(['LOG-4'])
})

test('LOG-6: rows without their applied position, or the other way round, are found', () => {
  const whole = new Court()
  whole.choose(1, one)
  whole.choose(2, two)
  whole.batch('n1', 2, [row('a', 1, numbered(1, 'x')), row('b', 2, numbered(2, 'y'))])
  expect(whole.rules).toEqual([])
  const ahead = new Court()
  ahead.choose(1, one)
  ahead.batch('n1', undefined, [row('a', 1, numbered(1, 'x'))])
  expect(ahead.rules).toEqual(['LOG-6'])
  const behind = new Court()
  behind.choose(1, one)
  behind.batch('n1', 1, [])
  expect(behind.rules).toEqual(['LOG-6'])
})

test('HASH-1: a hash that is not that of the rows beside it, or not the one of another replica, is found', () => {
  const rows = [row('a', 1, numbered(1, 'x'))]
  const court = new Court()
  court.choose(1, one)
  court.batch('n1', 1, rows)
  court.batch('n2', 1, rows)
  expect([court.rules, (court.referee.judgements()['HASH-1'] ?? 0) > 0]).toEqual([[], true])
  const wrong = new Court()
  wrong.choose(1, one)
  wrong.log('n1', 1)
  wrong.batchAlone('n1', 1, rows, hashOfNothing)
  expect(wrong.rules).toEqual(['HASH-1'])
  // A count by another way than the first replica has told.
  const other = new Court()
  other.judge.log.onDurableRows('n1', changedGroup('one'))
  other.judge.log.onDurableRows('n2', changedGroup('one'))
  expect(other.rules).not.toContain('HASH-1')
  other.judge.log.onDurableRows('n3', changedGroup('two'))
  expect(other.rules).toContain('HASH-1')
})

/** At position 1, told and counted alike. */
function changedGroup(hash: string): ChangedGroup {
  const digests = { rowsDigest: '', pastDigest: '' }
  const hashes = { toldHash: hash, countedHash: hash, stateHash: '' }
  return { group, position: 1, ...digests, ...hashes, isSnapshot: false }
}

test('LEASE-3: a read served beyond what is applied is found', () => {
  const court = new Court()
  court.choose(1, one)
  court.apply('n1', 1, one)
  court.judge.onTrace('n1', { kind: 'serve', group, level: 'current', position: 1 })
  expect(court.rules).toEqual([])
  court.judge.onTrace('n1', { kind: 'serve', group, level: 'current', position: 2 })
  expect(court.rules).toEqual(['LEASE-3'])
})

test('MVCC-2: a timestamp that does not rise with the position is found', () => {
  const court = new Court()
  court.choose(1, entry(1, { key: 'a', value: 'x' }, 1, 50))
  court.choose(2, entry(2, { key: 'a', value: 'y' }, 2, 50))
  expect(court.rules).toEqual(['MVCC-2'])
})

/** A version in history. */
function past(key: string, start: number, end: number, value: Uint8Array): Put {
  const whole = versionKey(historyPrefix(groupPrefix(group)), Buffer.from(key), start)
  return { key: whole, value: encodeStored(whole, end, value) }
}

const again = entry(2, { key: 'a', value: 'z' })

test('LOG-14: a data disk that is ahead of what the log holds as chosen is found', () => {
  const court = new Court()
  court.choose(1, one)
  court.choose(2, two)
  court.log('n1', 1)
  court.batchAlone('n1', 1, [row('a', 1, numbered(1, 'x'))])
  expect(court.rules).toEqual([])
  court.batchAlone('n1', 2, [row('b', 2, numbered(2, 'y'))])
  expect(court.rules).toEqual(['LOG-14'])
})

/** Of a vote. */
const ballot = { epoch: 1, round: 1, node: nodeId('n1'), incarnation: 1 }

test('PAX-8: a vote at a position that its node has applied is found', () => {
  for (const kind of ['promise', 'accept']) {
    const court = new Court()
    court.choose(1, one)
    court.judge.onTrace('n1', { kind, group, position: 1, ballot })
    court.apply('n1', 1, one)
    court.judge.onTrace('n1', { kind, group, position: 2, ballot })
    expect(court.rules).toEqual([])
    court.judge.onTrace('n1', { kind, group, position: 1, ballot })
    expect(court.rules).toEqual(['PAX-8'])
  }
})

test('SNAP-4: a step of a group that a snapshot is taking over is found', () => {
  for (const kind of ['promise', 'accept', 'apply']) {
    const court = new Court()
    court.choose(1, one)
    court.choose(2, two)
    court.judge.onTrace('n1', { kind: 'aside', group, position: 1 })
    court.judge.onTrace('n2', { kind, group, position: 1, ballot, value: one })
    expect(court.rules).toEqual([])
    court.judge.onTrace('n1', { kind, group, position: 1, ballot, value: one })
    expect(court.rules).toEqual(['SNAP-4'])
  }
})

test('SNAP-4: a group takes steps again that a snapshot has taken over, or whose node has started anew', () => {
  const court = new Court()
  court.choose(1, one)
  court.choose(2, two)
  for (const node of ['n1', 'n2']) {
    court.judge.onTrace(node, { kind: 'aside', group, position: 1 })
  }
  court.batch('n1', 1, [row('a', 1, numbered(1, 'x'))])
  court.judge.onTrace('n1', { kind: 'installed', group, position: 1 })
  court.apply('n1', 2, two)
  court.judge.onStart('n2')
  court.apply('n2', 1, one)
  expect(court.rules).toEqual([])
})

test('LOG-6: rows that a snapshot was replacing are looked at again once its record is gone', () => {
  const court = new Court()
  court.choose(1, one)
  court.batch('n1', 1, [row('a', 1, numbered(1, 'x'))])
  const key = stagingKey(groupPrefix(group))
  const phase = (number: number): Buffer => pack([1, number, group])
  court.batchAlone('n1', undefined, [{ key, value: encodeStored(key, 0, phase(1)) }])
  court.batchAlone('n1', undefined, [row('a', 2, numbered(2, 'y'))])
  expect(court.rules).toEqual([])
  court.batchAlone('n1', undefined, [{ key }])
  expect(court.rules).toEqual(['LOG-6'])
})

test('MVCC-1: a superseded version that is missing, or ends at another time, is found', () => {
  const newest = row('a', 2, numbered(2, 'z'))
  for (const [history, rules] of [
    [[past('a', 1, 2, numbered(1, 'x'))], []],
    [[], ['MVCC-1']],
    [[past('a', 1, 3, numbered(1, 'x'))], ['MVCC-1']],
  ] as const) {
    const court = new Court()
    court.choose(1, one)
    court.choose(2, again)
    court.batch('n1', 1, [row('a', 1, numbered(1, 'x'))])
    court.batch('n1', 2, [newest, ...history])
    expect(court.rules).toEqual(rules)
  }
})

test('MVCC-1: a version may leave the disk once the horizon has passed its end, not before', () => {
  for (const [horizon, rules] of [
    [2, []],
    [1, ['MVCC-1']],
  ] as const) {
    const court = new Court()
    court.choose(1, one)
    court.choose(2, again)
    court.choose(3, entry(3, { key: 'b', value: 'y' }, 3, 3, horizon))
    const version = past('a', 1, 2, numbered(1, 'x'))
    court.batch('n1', 2, [row('a', 2, numbered(2, 'z')), version])
    expect(court.rules).toEqual([])
    court.batch('n1', 3, [row('b', 3, numbered(3, 'y')), { key: version.key }])
    expect(court.rules).toEqual(rules)
  }
})

test('MVCC-1: the model knows the rows of every moment, deleted and written anew', () => {
  const court = new Court()
  court.choose(1, one)
  court.choose(2, again)
  const valuesAt = (at: number): unknown[] =>
    court.judge.model.rowsAt(group, at).map(({ value, timestamp }) => [value, timestamp])
  expect([valuesAt(0), valuesAt(1), valuesAt(9)]).toEqual([
    [],
    [[numbered(1, 'x'), 1]],
    [[numbered(2, 'z'), 2]],
  ])
  const rows = court.judge.model.rowsAt(group, 1)
  court.judge.log.onPastSeen('n1', group, 1, rows, rows)
  expect(court.rules).toEqual([])
  court.judge.log.onPastSeen('n1', group, 1, rows, court.judge.model.rowsAt(group, 2))
  expect(court.rules).toEqual(['MVCC-1'])
})

test('MVCC-2: a snapshot served beyond the timestamp of what is applied is found', () => {
  const court = new Court()
  court.choose(1, one)
  court.apply('n1', 1, one)
  const serve = { kind: 'serve', group, level: 'at', position: 1 }
  court.judge.onTrace('n1', { ...serve, timestamp: 1 })
  expect(court.rules).toEqual([])
  court.judge.onTrace('n1', { ...serve, timestamp: 2 })
  expect(court.rules).toEqual(['MVCC-2'])
})
