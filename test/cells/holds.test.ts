/** Cells that are purged one by one, and cells that are held. */
import { expect, test } from 'vitest'
import { purgeNoteKey } from '../../src/group/purge-note.ts'
import { findShardGroup } from '../../src/cells/cell-table.ts'
import { setColumnTtl } from '../../src/cells/column-ttl.ts'
import { applyIndex } from '../../src/cells/index-registry.ts'
import type { CellName } from '../../src/cells/cell.ts'
import { shardOf } from '../../src/client/row-shard.ts'
import { clearHold, setHold, type HoldScope } from '../../src/tables/holds.ts'
import { ann, bench, declared, definition, type DriverBench } from './driver-index.ts'
import { ask, datastore, get, log, rowKey } from './kit.ts'
import { makeReady } from './ready-index.ts'

const row = rowKey(1)
const shard = shardOf(row)
const group = findShardGroup({ datastore, shard })

function cell(refKey: number, column = 'BASE'): CellName {
  return { rowKey: row, column, refKey }
}

interface Holding extends DriverBench {
  purge(name: CellName): Promise<number>
  /** All that the shard has, whatever its age. */
  purgeAll(): Promise<number>
  hold(scope: HoldScope): Promise<unknown>
  clear(scope: HoldScope): Promise<unknown>
}

function begin(): Holding {
  const one = bench()
  const { run, store, parts } = one
  const page = { kind: 'purge', datastore, shard, keepLatest: false, after: 0, limit: 100 } as const
  const { port } = parts
  return {
    ...one,
    purge: async (name) => (await run(ask(store, { ...page, before: 0, cell: name }))).purged,
    purgeAll: async () => {
      const before = Number.MAX_SAFE_INTEGER
      return (await run(ask(store, { ...page, before }))).purged
    },
    hold: (scope) => run(setHold(port, group, { scope, reason: 'case 17' }, parts)),
    clear: (scope) => run(clearHold(port, group, scope, parts)),
  }
}

test('CELL-7: one cell is purged, whatever its age, is not written again, and no other one goes', async () => {
  const one = begin()
  for (const refKey of [1, 2, 3]) await one.write(1, 'BASE', refKey, { refKey })
  expect(await one.purge(cell(2))).toBe(1)
  expect(await one.purge(cell(2))).toBe(0)
  const { cells } = await one.run(log(one.store, { kind: 'after', shard, addedId: 0 }))
  expect(cells.map(({ refKey }) => refKey)).toEqual([1, 3])
  const again = { code: 'immutable' }
  await expect(one.write(1, 'BASE', 2, { refKey: 2 })).rejects.toMatchObject(again)
  // The latest as well: an earlier one is the latest then.
  expect(await one.purge(cell(3))).toBe(1)
  const latest = { rowKey: row, column: 'BASE' }
  const asked = { kind: 'get', datastore, read: { level: 'current', atLeast: [] } } as const
  const { items } = await one.run(ask(one.store, { ...asked, items: [latest] }))
  expect(items).toMatchObject([{ kind: 'ok', value: { refKey: 1 } }])
  await expect(one.write(1, 'BASE', 3, { refKey: 3 })).rejects.toMatchObject(again)
})

test('PURGE-1: the shard says what was purged, and shows no moment before', async () => {
  const one = begin()
  await one.write(1, 'BASE', 1, { secret: true })
  const { timestamp } = await one.run(one.replica.read(group, 'current', 1_000))
  const at = { kind: 'at', timestamp } as const
  const { port } = one.parts
  await one.run(port.view(group, at, 1_000))
  await one.purge(cell(1))
  const refused = { code: 'snapshot-too-old' }
  await expect(one.run(port.view(group, at, 1_000))).rejects.toMatchObject(refused)
  const note = Buffer.from(one.replica.get(group, purgeNoteKey)?.value ?? []).toString()
  expect(note).toBe(`purged cell ${row} BASE 1 of datastore ${datastore}`)
})

test('PURGE-1: of a cell that is gone already no moment is shown once it is purged by itself', async () => {
  const one = begin()
  await one.write(1, 'BASE', 1, { secret: true })
  const { timestamp } = await one.run(one.replica.read(group, 'current', 1_000))
  const at = { kind: 'at', timestamp } as const
  const { port } = one.parts
  expect(await one.purgeAll()).toBe(1)
  // Neither a purge of old cells, nor one of a cell that never was, ends reads of the past.
  expect(await one.purge(cell(2))).toBe(0)
  await one.run(port.view(group, at, 1_000))
  expect(await one.purge(cell(1))).toBe(0)
  const refused = { code: 'snapshot-too-old' }
  await expect(one.run(port.view(group, at, 1_000))).rejects.toMatchObject(refused)
})

test('IDX-7: what an index has of a row goes with the cell that is purged', async () => {
  const one = begin()
  const { tables, clock, run, index } = one
  await run(applyIndex(tables, definition(), clock))
  await run(makeReady(tables, clock, declared()))
  await one.write(1, 'BASE', 1, { driver: ann, at: '2026-01-05T00:00:00Z' })
  await one.rest()
  expect((await run(index.query({ driver: ann }))).items).toHaveLength(1)
  await one.purge(cell(1))
  await one.rest()
  expect((await run(index.query({ driver: ann }))).items).toEqual([])
})

test('HOLD-1: cells of a held row are purged neither alone nor with their shard', async () => {
  const one = begin()
  await one.write(1, 'BASE', 1, {})
  await one.hold(['cells', row])
  const held = { code: 'invalid', message: expect.stringContaining('is held (case 17)') }
  await expect(one.purge(cell(1))).rejects.toMatchObject(held)
  // A purge of the shard passes over the row.
  expect(await one.purgeAll()).toBe(0)
  expect(await one.run(get(one.store, cell(1)))).toBeDefined()
  await one.clear(['cells', row])
  expect(await one.purgeAll()).toBe(1)
})

test('HOLD-1: a held datastore refuses every purge', async () => {
  const one = begin()
  await one.write(1, 'BASE', 1, {})
  await one.hold(['cells'])
  const held = { code: 'invalid', message: expect.stringContaining('datastore trips is held') }
  await expect(one.purge(cell(1))).rejects.toMatchObject(held)
  await expect(one.purgeAll()).rejects.toMatchObject(held)
  // Writes go on.
  expect(await one.write(1, 'BASE', 2, {})).toMatchObject({ created: true })
})

test.each<HoldScope>([['cells'], ['cells', row]])(
  'HOLD-1: expired cells stay under a hold of %s',
  async (...scope) => {
    const one = begin()
    const { run, tables, store } = one
    await run(setColumnTtl(tables, datastore, { column: 'BASE', ttl: 10 }))
    await one.write(1, 'BASE', 1, {})
    const held: HoldScope = scope.length === 1 ? ['cells'] : ['cells', row]
    await one.hold(held)
    await run(one.world.sleep(20_000_000))
    await one.write(1, 'TICK', 1, {})
    const of = { datastore, shard }
    const sweep = () => run(store.expiring.sweep(of, one.clock.wallMicros()))
    const first = await sweep()
    expect(first).toMatchObject({ removed: [], held: 1 })
    expect(first.next).toBeLessThan(one.clock.wallMicros())
    expect(await run(get(store, cell(1)))).toBeUndefined()
    await one.clear(held)
    expect((await sweep()).removed).toHaveLength(1)
  },
)
