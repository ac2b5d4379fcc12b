/** Indexes over cells of two replica sets: what one set needs of the other, and an index that is dropped. */
import { expect, test } from 'vitest'
import { CellStore } from '../../src/cells/cell-store.ts'
import {
  findDatastoreGroup,
  openCellTables,
  findShardGroup,
  shardKey,
} from '../../src/cells/cell-table.ts'
import { scanIndexed } from '../../src/cells/indexed-table.ts'
import { datastoreKey, putDefinitions, scanDefinitions } from '../../src/cells/definition-table.ts'
import { buildCellIndex, compareCellIndex } from '../../src/cells/index-build.ts'
import { copyName } from '../../src/cells/index-copies.ts'
import {
  checkDefinition,
  storedName,
  type IndexDefinition,
  type NumberedIndex,
} from '../../src/cells/index-definition.ts'
import type { DropProgress } from '../../src/cells/index-drop.ts'
import {
  applyIndex,
  KeptIndexes,
  markIndexBuilding,
  markIndexBuilt,
  readIndexes,
} from '../../src/cells/index-registry.ts'
import { shardOf } from '../../src/client/row-shard.ts'
import type { CellService } from '../../src/cells/operation.ts'
import { CellIndex, CellIndexAdmin } from '../../src/client/cell-indexes.ts'
import { Groups } from '../../src/client/groups.ts'
import { SeenPositions } from '../../src/client/seen-positions.ts'
import { present } from '../../src/base/assert.ts'
import { nodeId, type GroupId } from '../../src/base/ids.ts'
import { placementOver } from '../../src/placement/placement.ts'
import type { Clock } from '../../src/ports/clock.ts'
import { silentTrace } from '../../src/ports/trace.ts'
import { schemaTrustMs } from '../../src/indexes/limits.ts'
import { droppedMeanwhile } from '../../src/indexes/state.ts'
import { IndexRelay } from '../../src/tables/index-relay.ts'
import type { GroupPort } from '../../src/group/group-port.ts'
import { LocalGroups } from '../../src/txn/local-groups.ts'
import { Sessions } from '../../src/txn/session.ts'
import { ask, createBench, datastore, get, put, rowKey, settled } from './kit.ts'
import { MemoryLog } from './memory-log.ts'
import { MemoryReplica } from './memory-replica.ts'

const placement = placementOver([[nodeId('a')], [nodeId('b')]])
const setOf = placement.setOf.bind(placement)
const home = setOf(findDatastoreGroup(datastore))
const other = 1 - home

function definition(field: string): IndexDefinition {
  const column_defs = [{ column_key: 'BASE', fields: [{ field, type: 'string' }] }]
  const checked = checkDefinition({ table: 'by_it', datastore, column_defs })
  if (!checked.ok) throw new Error(checked.problems[0]?.message)
  return checked.definition
}

const allRows = Array.from({ length: 200 }, (_, seed) => rowKey(seed))
/** Of all rows that are written here. */
const shards = [...new Set(allRows.map((row) => shardOf(row)))]

/** Rows whose shards a set holds. */
function rowsOn(set: number, count: number): string[] {
  const on = allRows.filter(
    (row) => setOf(findShardGroup({ datastore, shard: shardOf(row) })) === set,
  )
  return on.slice(0, count)
}

function at<Value>(list: readonly Value[], place: number): Value {
  return present(list[place], 'there is one')
}

/** A node of each set. */
function bench(delayMs = 1) {
  const { world, clockOf, random } = createBench()
  const clock = clockOf('node')
  const replicas = [0, 1].map(() => new MemoryReplica(new MemoryLog(), clock, delayMs))
  const locals = replicas.map((replica) => new LocalGroups(replica))
  const local = (group: GroupId): LocalGroups => at(locals, setOf(group))
  const groups: GroupPort = {
    view: (group, ...rest) => local(group).view(group, ...rest),
    get: (group, view, keys) => local(group).get(group, view, keys),
    scan: (group, view, range) => local(group).scan(group, view, range),
    commit: (submission, timeoutMs) => local(submission.group).commit(submission, timeoutMs),
  }
  const list = async (...asked: Parameters<MemoryReplica['groups']>) => {
    const found = await Promise.all(replicas.map((one) => one.groups(...asked)))
    return found.flat().toSorted().slice(0, asked[2])
  }
  const stores = replicas.map((replica, own) => {
    const sets = { count: 2, own, setOf }
    const chance = random.fork(`store ${own}`)
    const relay = new IndexRelay({ replica, groups, clock, random: chance, trace: silentTrace })
    relay.start()
    return new CellStore({ replica, groups, clock, random: chance, sets, listGroups: list })
  })
  const tables = openCellTables(groups, { clock, random: random.fork('tables') })
  const run = <Value>(work: Promise<Value>): Promise<Value> => settled(world, work)
  const storeOf = (row: string): CellStore =>
    at(stores, setOf(findShardGroup({ datastore, shard: shardOf(row) })))
  const intents = new Sessions(clock, random.fork('intents'))
  const parts = (index: NumberedIndex) => ({
    ...{ tables, port: groups, clock, definition: index, shards },
    ...{ random, intents },
    ...{ checkKept: () => undefined, onProgress: () => undefined },
  })
  const spread = (): Promise<unknown> =>
    run(ask(at(stores, 0), { kind: 'spread-indexes', datastore }, { timeoutMs: 20_000 }))
  const declared = async (field: string): Promise<NumberedIndex> => {
    await run(applyIndex(tables, definition(field), clock))
    await spread()
    const [known] = await run(readIndexes(tables, datastore))
    return present(known, 'there is one').definition
  }
  return {
    ...{ world, clock, random, replicas, stores, tables, run, parts, spread, declared, storeOf },
    rest: (ms = 15_000) => run(world.sleep(ms * 1000)),
    ready: async (field: string) => {
      const index = await declared(field)
      await run(buildCellIndex(parts(index)))
      await run(markIndexBuilding(tables, index))
      await run(markIndexBuilt(tables, index))
      await spread()
      return index
    },
    write: (row: string, refKey: number, body: object) =>
      run(put(storeOf(row), { rowKey: row, column: 'BASE', refKey }, { ...body })),
    found: async (store: CellStore, where: object): Promise<string[]> => {
      const index = new CellIndex({ service: store, timeoutMs: 2_000 }, datastore, 'by_it')
      const { items: entries } = await run(index.query({ ...where }))
      return entries.map((one) => one.rowKey)
    },
    drop: async (graceMs: number, node = 0, number?: number): Promise<DropProgress> => {
      const operation = {
        ...({ kind: 'drop-index', datastore, name: 'by_it', graceMs } as const),
        ...(number !== undefined && { number }),
      }
      return run(ask(at(stores, node), operation, { timeoutMs: 20_000 }))
    },
    indexed: async (row: string): Promise<string[]> => {
      const of = { datastore, shard: shardOf(row) }
      const read = tables.read(shardKey(of), 'current', (rows) =>
        scanIndexed(rows, of, undefined, {}),
      )
      return (await run(read)).value.items.map(({ index }) => index)
    },
  }
}

test('IDX-8: puts and reads of one set go on, with their indexes, while the set with the definitions is silent', async () => {
  const { replicas, ready, rest, write, found, stores, run, storeOf, parts, spread } = bench()
  const index = await ready('city')
  const [before = '', during = '', later = ''] = rowsOn(other, 3)
  await write(before, 1, { city: 'Oslo' })
  at(replicas, home).isCutOff = true
  await rest(3 * schemaTrustMs)
  for (const row of [during, later]) {
    expect(await write(row, 1, { city: 'Oslo' })).toMatchObject({ created: true })
    await rest(2 * schemaTrustMs)
  }
  expect(
    await run(get(storeOf(during), { rowKey: during, column: 'BASE', refKey: 1 })),
  ).toBeDefined()
  // A change of the definitions needs all sets, and says so.
  await expect(spread()).rejects.toMatchObject({ code: 'unavailable' })
  const [silent = ''] = rowsOn(home, 1)
  await expect(write(silent, 1, { city: 'Oslo' })).rejects.toMatchObject({ retry: 'safe' })
  at(replicas, home).isCutOff = false
  await rest(60_000)
  expect((await found(at(stores, other), { city: 'Oslo' })).toSorted()).toEqual(
    [before, during, later].toSorted(),
  )
  expect((await run(compareCellIndex(parts(index)))).faults).toEqual([])
})

test('IDX-8: an index is built when all sets have heard of it, and not before', async () => {
  const { replicas, tables, run, clock, spread, declared } = bench()
  at(replicas, other).isCutOff = true
  await run(applyIndex(tables, definition('city'), clock))
  await expect(spread()).rejects.toMatchObject({ code: 'unavailable' })
  const [known] = await run(readIndexes(tables, datastore))
  expect(known).toMatchObject({ state: 'declared' })
  at(replicas, other).isCutOff = false
  const before = clock.wallMicros()
  await declared('city')
  const [told] = await run(readIndexes(tables, datastore))
  expect(told).toMatchObject({ state: 'known', isSpread: true })
  expect(told?.declaredAt).toBeGreaterThanOrEqual(before)
})

test('IDX-8: a node that was suspended reloads the index definitions before it uses them', async () => {
  const { tables, clock, run } = bench()
  let aheadMicros = 0
  const own: Clock = {
    wallMicros: () => clock.wallMicros() + aheadMicros,
    monotonicMs: () => clock.monotonicMs(),
    setTimer: (...given) => clock.setTimer(...given),
    defer: (...given) => clock.defer(...given),
  }
  const kept = new KeptIndexes({ tables, clock: own, trustMs: schemaTrustMs })
  await run(kept.now(datastore))
  await run(applyIndex(tables, definition('city'), clock))
  expect(kept.of(datastore)).toMatchObject({ indexes: [] })
  aheadMicros = 3_600_000_000
  const { indexes } = await run(Promise.resolve(kept.of(datastore)))
  expect(indexes).toHaveLength(1)
})

test('a put waits no longer for definitions than it has time, so that there is some left for a buffer', async () => {
  const { world, replicas, write, rest } = bench()
  const [row = ''] = rowsOn(home, 1)
  await write(row, 1, { city: 'Oslo' })
  at(replicas, home).isCutOff = true
  await rest(3 * schemaTrustMs)
  const startMicros = world.nowMicros
  await expect(write(row, 2, { city: 'Oslo' })).rejects.toMatchObject({ code: 'unavailable' })
  expect(world.nowMicros - startMicros).toBeLessThan(1_100_000)
})

test('IDX-8: a build does not begin to wait for an index that was declared since it spread others', async () => {
  const { tables, stores, run, clock, random } = bench()
  const late: CellService = {
    // The copy that it spreads is from before the index was declared.
    execute: async (operation, options) => {
      const answered = await at(stores, 0).execute(operation, options)
      await applyIndex(tables, definition('city'), clock)
      return answered
    },
  }
  const groups = new Groups(() => Promise.reject(new Error('not asked')), new SeenPositions())
  const intents = new Sessions(clock, random)
  const common = {
    tables,
    clock,
    random,
    intents,
    groups,
    timeoutMs: 20_000,
    trustMs: schemaTrustMs,
  }
  const indexes = new CellIndexAdmin({ ...common, service: late }, datastore)
  await expect(run(indexes.build('by_it'))).rejects.toMatchObject({
    code: 'unavailable',
    message: expect.stringContaining('declared a moment ago'),
  })
})

test('IDX-8: a set takes no older definitions than it has', async () => {
  const { tables, run, declared, drop, spread } = bench()
  const copy = copyName(datastore, other, { count: 2, own: 0, setOf })
  await declared('city')
  const of = async (): Promise<Awaited<ReturnType<typeof scanDefinitions>>> =>
    (await run(tables.read(datastoreKey(copy), 'current', (rows) => scanDefinitions(rows, copy))))
      .value
  const old = await of()
  expect(old.rows).toHaveLength(1)
  expect((await drop(0)).phase).toBe('dropped')
  expect((await of()).rows).toEqual([])
  // A node that has slept since writes what it read then.
  const late = tables.transaction(datastoreKey(copy), (tx) => putDefinitions(tx, copy, old))
  await expect(run(late)).rejects.toThrow('IDX-8')
  await spread()
  expect((await of()).rows).toEqual([])
})

test('IDX-9: a dropped index leaves nothing, whatever was under way, and another one of its name begins with nothing', async () => {
  const {
    ready,
    rest,
    write,
    found,
    stores,
    run,
    drop,
    indexed,
    declared,
    parts,
    tables,
    clock,
    spread,
  } = bench()
  const first = await ready('city')
  const rows = [...rowsOn(home, 2), ...rowsOn(other, 2)]
  for (const row of rows) await write(row, 1, { city: 'Oslo', zone: 'Oslo' })
  await rest()
  expect(await found(at(stores, 0), { city: 'Oslo' })).toHaveLength(4)
  expect(await drop(60_000)).toMatchObject({ phase: 'waiting', total: 60 })
  await rest(2 * schemaTrustMs)
  await expect(found(at(stores, 1), { city: 'Oslo' })).rejects.toThrow('is being dropped')
  // The name is taken until it is cleared, and a put meanwhile keeps nothing of it.
  await expect(run(applyIndex(tables, definition('zone'), clock))).rejects.toMatchObject({
    code: 'already-exists',
  })
  const [fifth = ''] = rowsOn(home, 3).slice(2)
  await write(fifth, 1, { city: 'Oslo', zone: 'Oslo' })
  expect(await indexed(fifth)).toEqual([])
  await rest(60_000)
  expect(await drop(60_000)).toMatchObject({ phase: 'dropped' })
  for (const row of rows) expect(await indexed(row)).toEqual([])
  await expect(drop(0)).rejects.toMatchObject({ code: 'not-found' })
  await expect(run(markIndexBuilt(tables, first))).rejects.toThrow('was dropped meanwhile')
  const second = await declared('zone')
  expect(storedName(second)).not.toBe(storedName(first))
  // A caller that dropped the first one, and was slow, drops no other.
  await expect(drop(0, 0, first.number)).rejects.toThrow('was dropped meanwhile')
  await run(buildCellIndex(parts(second)))
  await run(markIndexBuilding(tables, second))
  await run(markIndexBuilt(tables, second))
  await spread()
  await rest(2 * schemaTrustMs)
  expect(await found(at(stores, 1), { zone: 'Oslo' })).toHaveLength(5)
  for (const row of [...rows, fifth]) expect(await indexed(row)).toEqual([storedName(second)])
})

test('IDX-9: index backfill re-checks before each row that the index still exists', async () => {
  const { declared, write, run, parts, indexed } = bench()
  const rows = rowsOn(home, 2)
  for (const row of rows) await write(row, 1, { city: 'Oslo' })
  const index = await declared('city')
  let looks = 0
  const checkKept = (): void => {
    looks += 1
    if (looks > 1) throw droppedMeanwhile('by_it')
  }
  await expect(run(buildCellIndex({ ...parts(index), checkKept }))).rejects.toThrow(
    'was dropped meanwhile',
  )
  expect(looks).toBe(2)
  const filled = [...(await indexed(rows[0] ?? '')), ...(await indexed(rows[1] ?? ''))]
  expect(filled).toEqual([storedName(index)])
})

test('IDX-9: a drop goes on from where it came to, at whatever node', async () => {
  const { ready, write, drop, indexed, tables, run } = bench(500)
  await ready('city')
  const rows = [...rowsOn(home, 40), ...rowsOn(other, 40)]
  for (const row of rows) await write(row, 1, { city: 'Oslo' })
  const seen: DropProgress[] = []
  for (let step = 0; seen.at(-1)?.phase !== 'dropped'; step++) seen.push(await drop(0, step % 2))
  const done = seen.map((one) => one.done)
  expect(seen.length).toBeGreaterThan(2)
  expect(seen[0]).toMatchObject({ phase: 'clearing', total: 4096 })
  expect(done).toEqual(done.toSorted((a, b) => a - b))
  for (const row of rows) expect(await indexed(row)).toEqual([])
  expect(await run(readIndexes(tables, datastore))).toEqual([])
})

test('IDX-9: a drop goes on however little time each of its steps is given', async () => {
  const { ready, write, tables, stores, run } = bench(80)
  await ready('city')
  for (const row of [...rowsOn(home, 50), ...rowsOn(other, 50)])
    await write(row, 1, { city: 'Oslo' })
  const operation = { kind: 'drop-index', datastore, name: 'by_it', graceMs: 0 } as const
  const seen: DropProgress[] = []
  while (seen.at(-1)?.phase !== 'dropped') {
    seen.push(await run(ask(at(stores, 0), operation, { timeoutMs: 900 })))
  }
  expect(seen.length).toBeGreaterThan(1)
  expect(await run(readIndexes(tables, datastore))).toEqual([])
})

test('IDX-7: with the latest cells a purge takes what their rows have in indexes', async () => {
  const { ready, rest, write, found, stores, run, parts, storeOf } = bench()
  const index = await ready('city')
  const [gone = '', stays = ''] = rowsOn(home, 2)
  for (const row of [gone, stays]) await write(row, 1, { city: 'Oslo' })
  await write(gone, 2, { city: 'Rome' })
  await rest()
  const purge = { kind: 'purge', datastore, shard: shardOf(gone), after: 0, limit: 100 } as const
  const before = Number.MAX_SAFE_INTEGER
  expect((await run(ask(storeOf(gone), { ...purge, before, keepLatest: true }))).purged).toBe(1)
  await rest()
  expect(await found(at(stores, 0), { city: 'Rome' })).toEqual([gone])
  expect((await run(ask(storeOf(gone), { ...purge, before, keepLatest: false }))).purged).toBe(1)
  await rest()
  expect(await found(at(stores, 0), { city: 'Rome' })).toEqual([])
  expect(await found(at(stores, 0), { city: 'Oslo' })).toEqual([stays])
  expect((await run(compareCellIndex(parts(index)))).faults).toEqual([])
})
