/** Rows that a node reads at once, and the same by the way of all others. */
import { expect, test } from 'vitest'
import { groupOfBytes } from '../../src/base/ids.ts'
import type { Clock } from '../../src/ports/clock.ts'
import type { Row } from '../../src/group/replica-port.ts'
import { answerBytesMax } from '../../src/txn/limits.ts'
import type { ReadGroup } from '../../src/txn/group-operation.ts'
import { GroupService } from '../../src/txn/group-service.ts'
import { createBench, settled, type Bench } from '../cells/kit.ts'
import type { MemoryReplica } from '../cells/memory-replica.ts'

const group = groupOfBytes(Buffer.from('g'))
const [key, other] = [Buffer.from('k'), Buffer.from('none')]

const rowBytes = 512 * 1024
const largeKeys = Array.from({ length: 40 }, (_, i) =>
  Buffer.from(`k${String(i).padStart(2, '0')}`),
)

interface Written extends Pick<Bench, 'world'> {
  readonly replica: MemoryReplica
  readonly service: GroupService
  readonly clock: Clock
  readonly timestamp: number
}

/** A transaction a row. */
async function written(rows = [{ key, value: Buffer.from('v') }]): Promise<Written> {
  const { world, node, clockOf } = createBench()
  const { replica } = node('n1')
  const clock = clockOf('n1')
  const expiresAt = clock.wallMicros() + 60_000_000
  let timestamp = 0
  for (const [at, row] of rows.entries()) {
    const outcome = await settled(
      world,
      replica.submit(
        {
          ...{ group, readPosition: 0, reads: [], ranges: [], allocations: [], attempt: 1 },
          intent: { session: 's', sequence: at + 1, floor: 1, expiresAt },
          mutations: [row],
        },
        1_000,
      ),
    )
    if (outcome.kind !== 'committed') throw new Error(outcome.kind)
    timestamp = outcome.timestamp
  }
  replica.isAtOnce = true
  const service = new GroupService({ replica, clock })
  return { world, replica, service, clock, timestamp }
}

function readOf(from: ReadGroup['from'], rest: Partial<ReadGroup> = {}): ReadGroup {
  return { kind: 'read-group', group, from, atLeast: 0, keys: [key, other], ...rest }
}

test('MVCC-1: rows that are read at once are those of a read that waits, and so is their view', async () => {
  const { world, service, timestamp } = await written()
  const froms = [{ kind: 'current' }, { kind: 'snapshot' }, { kind: 'at', timestamp }] as const
  for (const from of froms) {
    for (const keys of [[key, other], [other], []]) {
      const now = service.answerNow(readOf(from, { keys }))
      expect(now).toMatchObject({ kind: 'read-group', view: { position: 1, asOf: timestamp } })
      expect(now).toStrictEqual(
        await settled(world, service.execute(readOf(from, { keys }), 1_000)),
      )
    }
  }
})

test('MVCC-1: a read of the past or of a range, or one that must wait, gets no immediate answer', async () => {
  const { replica, service, timestamp } = await written()
  const current = { kind: 'current' } as const
  const open = [
    readOf({ kind: 'at', timestamp: timestamp - 1 }),
    ...[readOf({ kind: 'inconsistent' }), readOf(current, { range: {} })],
    ...[readOf(current, { atLeast: 2 }), readOf({ kind: 'at', timestamp }, { atLeast: 2 })],
    readOf(current, { keys: Array.from({ length: 17 }, () => key) }),
    { kind: 'list-groups', group, limit: 1 } as const,
  ]
  for (const operation of open) expect(service.answerNow(operation)).toBeUndefined()
  replica.isAtOnce = false
  expect(service.answerNow(readOf(current))).toBeUndefined()
  replica.isAtOnce = true
  service.stop()
  expect(service.answerNow(readOf(current))).toBeUndefined()
})

/** Twenty MiB of rows; and the bytes of those that the replica gave to readers. */
async function writtenLarge(): Promise<Written & { readonly given: () => number }> {
  const value = Buffer.alloc(rowBytes)
  const made = await written(largeKeys.map((one) => ({ key: one, value })))
  const { replica } = made
  let given = 0
  const count = <Some extends readonly (Row | undefined)[]>(rows: Some): Some => {
    for (const row of rows) given += row?.value.length ?? 0
    return rows
  }
  const { scan, getAt, get } = replica
  replica.scan = async (...asked) => count(await scan.apply(replica, asked))
  replica.getAt = async (...asked) => count(await getAt.apply(replica, asked))
  replica.get = (...asked) => count([get.apply(replica, asked)])[0]
  return { ...made, given: () => given }
}

test('a page of large rows takes no more from the replica than an answer holds, and pages join up', async () => {
  const { world, service, timestamp, given } = await writtenLarge()
  for (const reverse of [false, true]) {
    const found: string[] = []
    for (let bounds = {}, isEnd = false; !isEnd;) {
      const before = given()
      const read = readOf({ kind: 'at', timestamp }, { keys: [], range: { reverse, ...bounds } })
      const answer = await settled(world, service.execute(read, 1_000))
      if (answer.kind !== 'read-group' || answer.page === undefined) throw new Error(answer.kind)
      expect(given() - before).toBeLessThanOrEqual(answerBytesMax + rowBytes)
      const { rows, isWhole } = answer.page
      found.push(...rows.map((row) => Buffer.from(row.key).toString()))
      const last = rows.at(-1)?.key ?? new Uint8Array()
      bounds = reverse ? { lt: last } : { gt: last }
      isEnd = isWhole
    }
    const all = largeKeys.map(String)
    expect(found).toEqual(reverse ? all.toReversed() : all)
  }
})

test('a read of large rows by key takes from the replica only a few beyond one answer', async () => {
  const { world, service, timestamp, given } = await writtenLarge()
  for (const from of [{ kind: 'at', timestamp }, { kind: 'inconsistent' }] as const) {
    const before = given()
    const answer = await settled(world, service.execute(readOf(from, { keys: largeKeys }), 1_000))
    expect(answer).toMatchObject({ kind: 'read-group' })
    if (answer.kind !== 'read-group') return
    expect(answer.rows.map((row) => row?.key)).toEqual(largeKeys.slice(0, 7))
    expect(given() - before).toBeLessThanOrEqual(16 * rowBytes)
  }
})

test('many rows by their keys are all answered while they fit, and others have turns between', async () => {
  const { world, replica, clock, service, timestamp } = await written()
  let turn = 0
  const turns: number[] = []
  const others = (): void => {
    turn += 1
    clock.defer(others)
  }
  clock.defer(others)
  const { getAt } = replica
  replica.getAt = (...asked) => {
    turns.push(turn)
    return getAt.apply(replica, asked)
  }
  const keys = Array.from({ length: 100 }, (_, i) => (i % 2 === 0 ? key : other))
  const read = readOf({ kind: 'at', timestamp }, { keys })
  const answer = await settled(world, service.execute(read, 1_000))
  if (answer.kind !== 'read-group') throw new Error(answer.kind)
  const expected = keys.map((one) => (one === key ? key : undefined))
  expect(answer.rows.map((row) => row?.key)).toEqual(expected)
  expect(turns.length).toBeGreaterThanOrEqual(100 / 16)
  expect(new Set(turns).size).toBe(turns.length)
})
