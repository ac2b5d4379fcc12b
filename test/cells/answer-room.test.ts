/** A read takes the room of its answer as it goes: it reads little more than fits. */
import { expect, test } from 'vitest'
import { StoreError } from '../../src/base/errors.ts'
import { cellBytesMax } from '../../src/base/limits.ts'
import { AnswerRoom } from '../../src/cells/answer-room.ts'
import { bodiesReadAtOnceMax } from '../../src/cells/limits.ts'
import type { StoredCell } from '../../src/cells/cell.ts'
import type { LogPlace } from '../../src/cells/operation.ts'
import { shardOf } from '../../src/client/row-shard.ts'
import { gone, type Pace } from '../../src/ports/pace.ts'
import { answerBytesMax } from '../../src/txn/limits.ts'
import { ask, createBench, current, datastore, packed, rowKey, settled } from './kit.ts'

const large = packed('x'.repeat(cellBytesMax - 2))
const column = 'BASE'

/** Rows in shards of their own, of one cell each, and the count of their reads from here on. */
async function manyLarge(count: number) {
  const { world, node } = createBench()
  const { store, replica } = node('n1')
  const byShard = new Map<number, string>()
  for (let row = 0; byShard.size < count; row++) byShard.set(shardOf(rowKey(row)), rowKey(row))
  const rows = [...byShard.values()]
  for (const row of rows) {
    const items = [{ rowKey: row, column, refKey: 1, body: large }]
    await settled(world, ask(store, { kind: 'put', datastore, items }))
  }
  const read = { bodies: 0 }
  const getAt = replica.getAt.bind(replica)
  replica.getAt = async (...asked) => {
    const found = await getAt(...asked)
    read.bodies += found.filter((row) => (row?.value.length ?? 0) >= large.length).length
    return found
  }
  return { world, store, rows, read }
}

test('CELL-6: a batch over many shards reads little more than one answer holds', async () => {
  const { world, store, rows, read } = await manyLarge(120)
  const items = rows.map((row) => ({ rowKey: row, column, refKey: 1 }))
  const { items: found } = await settled(
    world,
    ask(store, { kind: 'get', datastore, read: current, items }),
  )
  const codes = found.map((item) => (item.kind === 'ok' ? 'ok' : item.problem.code))
  expect(codes).toEqual(rows.map((_, nth) => (nth < 3 ? 'ok' : 'too-large')))
  expect(read.bodies).toBeLessThan(70)
})

test('CELL-6: logs of many shards read little more than one answer holds, and all come in the end', async () => {
  const { world, store, rows, read } = await manyLarge(120)
  const given = { kind: 'log', datastore, read: current, limit: 10, waitMs: 0 } as const
  let places = rows.map((row): LogPlace => ({ kind: 'after', shard: shardOf(row), addedId: 0 }))
  const seen: string[] = []
  for (let look = 0; places.length > 0; look++) {
    const { items } = await settled(world, ask(store, { ...given, items: places }))
    if (look === 0) expect(read.bodies).toBeLessThan(70)
    const before = seen.length
    places = items.flatMap((item): readonly LogPlace[] => {
      if (item.kind === 'problem') throw new Error(item.problem.message)
      const { shard, cells, next, asOf } = item.value
      seen.push(...cells.map((cell) => cell.rowKey))
      return asOf === undefined ? [{ kind: 'after', shard, addedId: next }] : []
    })
    expect(seen.length > before || places.length === 0).toBe(true)
  }
  expect(seen.toSorted()).toEqual(rows.toSorted())
})

const cell = (bytes: number): StoredCell => {
  const name = { rowKey: rowKey(1), column, refKey: 1 }
  return { ...name, addedId: 1, createdAt: 1, body: Buffer.alloc(bytes) }
}

test('CELL-6: as small cells go before, many are read at once, and after large ones few', async () => {
  const room = new AnswerRoom()
  const share = room.share()
  const first = await share.read(10, async (count) => Array.from({ length: count }, () => cell(1)))
  expect(first).toMatchObject({ asked: 10, fitting: 10 })
  expect(await room.begin(1_000)).toBe(bodiesReadAtOnceMax)
  const half = answerBytesMax / 2
  room.end(bodiesReadAtOnceMax, { count: 10, bytes: 10 * half })
  expect(await room.begin(1_000)).toBeLessThanOrEqual(4)
})

test('CELL-6: a share without room ends all reading, and cells with small bodies take room', async () => {
  const room = new AnswerRoom()
  const share = room.share()
  let count = 0
  while (share.take(cell(1))) count += 1
  expect(count).toBeLessThan(30_000)
  expect(room.isFull).toBe(true)
  const none = { asked: 0, found: [], fitting: 0 }
  expect(await share.read(5, () => Promise.reject(new Error('it is read')))).toEqual(none)
})

test('CELL-6: a read that runs again does not take its room twice', async () => {
  const room = new AnswerRoom()
  const most = Array.from({ length: 3 }, () => cell(cellBytesMax))
  const tooOld = new StoreError('snapshot-too-old', 'again')
  for (let run = 0; run < 3; run++) {
    const failing = room.attempt(async (share) => {
      expect(await share.read(3, async () => most)).toMatchObject({ fitting: 3 })
      throw tooOld
    })
    await expect(failing).rejects.toBe(tooOld)
  }
  const read = await room.attempt((share) => share.read(3, async () => most))
  expect(read.fitting).toBe(3)
})

test('CELL-6: after one read fails, reads in flight take no room and no more begin', async () => {
  const room = new AnswerRoom()
  const late = new Promise<StoredCell[]>((resolve) => setImmediate(() => resolve([cell(9)])))
  const reads: Promise<unknown>[] = []
  const failing = room.attempt(async (share) => {
    reads.push(share.read(1, () => late).then(() => share.read(1, () => Promise.reject(late))))
    throw new StoreError('snapshot-too-old', 'again')
  })
  await expect(failing).rejects.toMatchObject({ code: 'snapshot-too-old' })
  expect(await Promise.all(reads)).toMatchObject([{ asked: 0 }])
  expect(room.take(answerBytesMax)).toBe(true)
})

test('COST-4: a read whose client leaves before its turn blocks no other read of the answer', async () => {
  let isGone = false
  const pace: Pace = {
    get isGone() {
      return isGone
    },
    spend: () => {
      if (isGone) throw gone()
      return undefined
    },
    take: () => undefined,
    enter: () => undefined,
    leave: () => undefined,
    onGone: () => () => undefined,
  }
  const room = new AnswerRoom(pace)
  // These wait for what the first one finds.
  const others: Promise<unknown>[] = []
  await room.share().read(bodiesReadAtOnceMax, async () => {
    for (let nth = 0; nth < 5; nth++) others.push(room.share().read(100, async () => []))
    isGone = true
    return []
  })
  const ends = await Promise.race([
    Promise.allSettled(others),
    new Promise<string>((resolve) => setTimeout(() => resolve('some wait for good'), 1_000)),
  ])
  expect(ends).toEqual(others.map(() => ({ status: 'rejected', reason: gone() })))
})
