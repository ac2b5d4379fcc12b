/** Reads of cells with a bound of staleness: as programs give it, as it travels, and as a node carries it out. */
import { expect, test } from 'vitest'
import { unpack } from '../../src/base/pack.ts'
import { shardCountMax } from '../../src/cells/datastore-form.ts'
import { shardOf } from '../../src/cells/shard.ts'
import type { CellOperation, ReadFrom } from '../../src/cells/operation.ts'
import { decodeClientFrame, encodeClientFrame } from '../../src/wire/client/client-codec.ts'
import { createBench, current, datastore, packed, rowKey, settled } from '../cells/kit.ts'
import { createCluster } from './cluster.ts'

const base = { rowKey: rowKey(1), column: 'BASE', refKey: 0 }
const shard = shardOf(datastore, base.rowKey)

function sent(read: ReadFrom): CellOperation {
  return { kind: 'get', datastore, read, items: [base] }
}

test('a client sends the bound with the positions that it has seen', async () => {
  const cluster = createCluster()
  const { world } = cluster.bench
  const cells = cluster.client().cells(datastore)
  await settled(world, cells.put({ ...base, body: 1 }))
  for (const { replica } of cluster.nodes.values()) replica.ageMs = 300
  const asked = (): unknown => {
    const operations = cluster.frames.flatMap(({ frame }) =>
      frame.kind === 'requests' ? frame.requests.map(({ operation }) => operation) : [],
    )
    const last = operations.at(-1)
    return last !== undefined && 'read' in last ? last.read : undefined
  }
  const bound = { level: 'snapshot', atLeast: [[shard, 1]], maxStalenessMs: 300 }
  const { rowKey: row, column } = base
  const calls = [
    () => cells.get(base, { maxStalenessMs: 300 }),
    () => cells.get(base, { read: 'snapshot', maxStalenessMs: 300 }),
    () => cells.getMany([base], { maxStalenessMs: 300 }),
    () => cells.latestAll(row, { maxStalenessMs: 300 }),
    () => cells.versions(row, column, { maxStalenessMs: 300 }),
    () => cells.shardLog(shard, { maxStalenessMs: 300 }),
    () => cells.shardLogs([{ kind: 'after', shard, addedId: 0 }], { maxStalenessMs: 300 }),
  ]
  const before = [...cluster.nodes.values()].map(({ replica }) => replica.currentReads)
  for (const call of calls) {
    await settled(world, Promise.resolve(call()))
    expect(asked()).toEqual(bound)
  }
  expect([...cluster.nodes.values()].map(({ replica }) => replica.currentReads)).toEqual(before)
})

test('a bound is a whole number of milliseconds from 100, and goes with no current read', async () => {
  const cells = createCluster().client().cells(datastore)
  for (const maxStalenessMs of [99, 100.5, -1, Number.NaN]) {
    await expect(cells.get(base, { maxStalenessMs })).rejects.toMatchObject({
      ...{ code: 'invalid', message: expect.stringContaining('milliseconds from 100') },
    })
  }
  const both = { read: 'current', maxStalenessMs: 500 } as const
  for (const call of [() => cells.get(base, both), () => cells.shardLog(shard, both)]) {
    await expect(call()).rejects.toMatchObject({
      ...{ code: 'invalid', message: expect.stringContaining("read: 'snapshot'") },
    })
  }
})

test('a node refuses a bound that is too small, with another level, or of a query', async () => {
  const { world, node } = createBench()
  const { store } = node('n1')
  const read = { level: 'snapshot', atLeast: [], maxStalenessMs: 99 } as const
  const query = { kind: 'index', datastore, name: 'ix', where: [], limit: 1 } as const
  const refused: CellOperation[] = [
    sent(read),
    sent({ ...current, maxStalenessMs: 500 }),
    { ...query, read: { ...read, maxStalenessMs: 500 }, reverse: false, verify: false },
  ]
  for (const operation of refused) {
    expect(store.answerNow(operation)).toBeUndefined()
    const { answer } = await settled(world, store.execute(operation, { timeoutMs: 1_000 }))
    expect(answer).toMatchObject({ kind: 'problem', problem: { code: 'invalid' } })
  }
})

test('CELL-5: a replica that lacks a position which the client has seen gives a current read, though it is fresh enough', async () => {
  const bench = createBench()
  const { store, replica } = bench.node('n1')
  const other = bench.node('n2').store
  const items = [{ ...base, body: packed(1) }]
  replica.isBehind = true
  replica.ageMs = 0
  const put = other.execute({ kind: 'put', datastore, items }, { timeoutMs: 1_000 })
  await settled(bench.world, put)
  const read = { level: 'snapshot', atLeast: [], maxStalenessMs: 100 } as const
  const ask = async (asked: ReadFrom): Promise<unknown> => {
    const done = await settled(bench.world, store.execute(sent(asked), { timeoutMs: 1_000 }))
    return done.answer.kind === 'get' ? done.answer.items[0] : done.answer
  }
  expect(await ask(read)).toEqual({ kind: 'ok', value: undefined })
  expect(replica.currentReads).toBe(0)
  expect(await ask({ ...read, atLeast: [[shard, 1]] })).toMatchObject({
    ...{ kind: 'ok', value: { addedId: 1 } },
  })
  expect(replica.currentReads).toBe(1)
})

test('a page of a log that is known whole is not taken for fresh', async () => {
  const bench = createBench()
  const { store, replica } = bench.node('n1')
  const other = bench.node('n2').store
  const put = (refKey: number): Promise<unknown> => {
    const items = [{ ...base, refKey, body: packed(refKey) }]
    const options = { timeoutMs: 1_000 }
    return settled(bench.world, other.execute({ kind: 'put', datastore, items }, options))
  }
  await put(0)
  replica.isBehind = true
  await put(1)
  const log = async (read: ReadFrom): Promise<unknown> => {
    const place = { kind: 'after', shard, addedId: 1, asOf: 1 } as const
    const page = { items: [place], limit: 9, waitMs: 0 }
    const operation = { kind: 'log', datastore, read, ...page } as const
    const done = await settled(bench.world, store.execute(operation, { timeoutMs: 1_000 }))
    return done.answer
  }
  const snapshot = { level: 'snapshot', atLeast: [] } as const
  const page = { kind: 'ok', value: { cells: [] } }
  expect(await log(snapshot)).toMatchObject({ kind: 'log', items: [page] })
  expect(await log({ ...snapshot, maxStalenessMs: 500 })).toMatchObject({
    items: [{ value: { cells: [{ refKey: 1 }] } }],
  })
})

function bytesOf(read: ReadFrom): Uint8Array {
  const request = { id: 1, timeoutMs: 1_000, operation: sent(read) }
  return encodeClientFrame({ kind: 'requests', requests: [request] })
}

test('to a node of an earlier version a bound is a current read, with the position of no shard', () => {
  const bytes = bytesOf({ level: 'snapshot', atLeast: [[shard, 7]], maxStalenessMs: 500 })
  const current = `[0,[[${shard},7],[65536,500]]]`
  expect(JSON.stringify(unpack(bytes))).toContain(current)
})

test('beside the positions of all shards there is no place for a bound: the read is current', () => {
  const all = Array.from({ length: shardCountMax }, (_, one) => [one, 1] as const)
  const bytes = bytesOf({ level: 'snapshot', atLeast: all, maxStalenessMs: 500 })
  const requests = [{ operation: { read: current } }]
  expect(decodeClientFrame(bytes)).toMatchObject({ ok: true, frame: { requests } })
})
