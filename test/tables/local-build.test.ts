/** Local and inline indexes that come when there are rows, and go again, while programs write. */
import { expect, test } from 'vitest'
import { parseSchema } from '../../schema/ddl-parse.ts'
import type { Schema } from '../../schema/model.ts'
import { firstVersion } from '../../schema/version.ts'
import { groupOfBytes, type GroupId } from '../../src/base/ids.ts'
import type { Progress } from '../../src/indexes/report.ts'
import type { IndexState } from '../../src/indexes/state.ts'
import { MisfitRows } from '../../src/indexes/misfits.ts'
import { compileSchema } from '../../src/tables/compile.ts'
import { buildIndex, clearDropped, dropIndex } from '../../src/tables/index-build.ts'
import { findLife, type IndexLife } from '../../src/tables/index-life.ts'
import { compareIndex, makeIndex } from '../../src/tables/index-make.ts'
import type { UpkeepParts } from '../../src/tables/index-parts.ts'
import { markReady, noteBuilding } from '../../src/tables/index-steps.ts'
import { openTables } from '../../src/tables/open.ts'
import { applySchema, readSchemaView, type SchemaView } from '../../src/tables/registry.ts'
import { SchemaWatch } from '../../src/tables/schema-watch.ts'
import { Sessions } from '../../src/txn/session.ts'
import { readMoment } from '../../src/time/moments.ts'
import { globalBench, type GlobalBench, type RelayNode } from './global-bench.ts'

function schemaOf(more = '', note = ''): Schema {
  const parsed = parseSchema(`
CREATE SCHEMA Fleet;
CREATE TABLE Car { required integer car; required string city; } PRIMARY KEY(car), ENTITY GROUP ROOT;
CREATE TABLE Trip { required integer car; required integer trip; required string to; repeated string tag; ${note} }
  PRIMARY KEY(car, trip), IN TABLE Car, ENTITY GROUP KEY(car) REFERENCES Car;
${more}`)
  if (!parsed.ok) throw new Error('the text is a schema')
  return parsed.schema
}

const first = schemaOf()
const note = 'optional string note;'
const byTo = 'CREATE LOCAL INDEX TripsByTo ON Trip(car, to) STORING (note);'
const second = schemaOf(byTo, note)
const trustMs = 1_000

interface Life {
  readonly bench: GlobalBench
  readonly node: RelayNode
  readonly options: UpkeepParts['options']
}

async function begin(): Promise<Life> {
  const bench = globalBench()
  const node = bench.node('n1')
  const random = bench.world.random.fork('upkeep')
  const options = { clock: node.clock, random, intents: new Sessions(node.clock, random) }
  await bench.run(applySchema(node.groups, first, options))
  return { bench, node, options }
}

async function viewOf({ node }: Life): Promise<SchemaView> {
  const view = await readSchemaView(node.groups, 'Fleet', { clock: node.clock })
  if (view === undefined) throw new Error('the schema was applied')
  return view
}

async function lifeIn(life: Life, name: string): Promise<IndexLife> {
  return findLife((await viewOf(life)).lives, name)
}

async function partsOf(life: Life, name: string): Promise<UpkeepParts> {
  const { node, options } = life
  const schema = compileSchema((await viewOf(life)).version)
  const index = schema.indexes.get(name)
  const table = schema.tables.get(index?.table ?? '')
  if (!table || !index) throw new Error('the index was applied')
  const list: UpkeepParts['list'] = (...asked) => node.replica.groups(...asked, 1_000)
  const misfits = new MisfitRows()
  return { ...{ port: node.groups, schema, table, index, options, list, misfits }, onProgress }
}

function groupsOf({ node }: Life): Promise<readonly GroupId[]> {
  const prefix = compileSchema(firstVersion(first)).tables.get('Car')?.groupPrefix
  return node.replica.groups(groupOfBytes(prefix ?? new Uint8Array()), undefined, 10, 1_000)
}

function onProgress(): void {
  // These tests do not look at the progress.
}

interface Rows {
  index(
    table: { readonly name: string },
    name: string,
    query: unknown,
  ): Promise<{ readonly items: readonly object[]; rows(): Promise<readonly object[]> }>
  getWith(into: object, key: unknown, table: object, name: string): Promise<object | undefined>
}

interface Writes extends Rows {
  put(table: { readonly name: string }, row: unknown): Promise<void>
  insert(table: { readonly name: string }, row: unknown): Promise<unknown>
  update(table: { readonly name: string }, key: unknown, patch: unknown): Promise<void>
  delete(table: { readonly name: string }, key: unknown): Promise<void>
}

/** As programs do whose types are known only when they run. */
interface PlainTables {
  transaction(
    key: { readonly table: string; readonly key: unknown },
    run: (tx: Writes) => Promise<void>,
  ): Promise<{ readonly timestamp: number | undefined }>
  read<Value>(
    key: { readonly table: string; readonly key: unknown },
    level: 'current' | 'snapshot' | { readonly at: number },
    run: (rows: Rows) => Promise<Value>,
  ): Promise<{ readonly value: Value }>
  checkIndexes(key: { readonly table: string; readonly key: unknown }): Promise<{
    readonly faults: readonly unknown[]
    readonly entries: number
  }>
}

async function opened({ bench, node }: Life, schema: Schema): Promise<PlainTables> {
  const { clock, groups: port } = node
  const look = (): ReturnType<typeof readSchemaView> => readSchemaView(port, 'Fleet', { clock })
  const askedAt = readMoment(clock)
  const view = await look()
  if (view === undefined) throw new Error('the schema was applied')
  const { version } = view
  const from = { opened: version, declared: schema, view, askedAt }
  const watch = new SchemaWatch({ clock, ...from, trustMs, look })
  const random = bench.world.random.fork(`opened ${version.version}`)
  const defined = { name: schema.name, tables: [], model: schema }
  return openTables(defined, port, { clock, random, version, watch })
}

const [Car, Trip] = [{ name: 'Car' }, { name: 'Trip' }]
const rootOf = (car: number): { table: string; key: object } => ({ table: 'Car', key: { car } })

function put(db: PlainTables, car: number, trip: number, to: string, more = {}): Promise<unknown> {
  const row = { car, trip, to, tag: [], ...more }
  return db.transaction(rootOf(car), (tx) => tx.put(Trip, row))
}

async function found(
  db: PlainTables,
  car: number,
  level: 'current' | 'snapshot' | { readonly at: number } = 'current',
  name = 'TripsByTo',
): Promise<readonly object[]> {
  const read = await db.read(rootOf(car), level, async (rows) => {
    const page = await rows.index(Trip, name, {})
    await page.rows()
    return page.items
  })
  return read.value
}

test('IDX-6: a local index comes when there are rows, and programs of before keep it', async () => {
  const life = await begin()
  const { bench, node, options } = life
  const { run } = bench
  const before = await run(opened(life, first))
  for (const car of [1, 2]) await run(put(before, car, 1, 'Oslo'))
  await run(put(before, 1, 2, 'Rome'))
  expect(await run(applySchema(node.groups, second, options))).toMatchObject({ kind: 'next' })
  const after = await run(opened(life, second))
  const refused = { code: 'unavailable', detail: { index: 'known' } }
  await expect(run(found(after, 1))).rejects.toMatchObject(refused)
  const inside = after.transaction(
    rootOf(1),
    async (tx) => void (await tx.index(Trip, 'TripsByTo', {})),
  )
  await expect(run(inside)).rejects.toMatchObject(refused)
  // The check reports no fault of an index that is not ready.
  expect((await run(after.checkIndexes(rootOf(1)))).faults).toEqual([])
  // Within its trust the program of before may still write as if there was no index.
  await run(put(after, 1, 3, 'Bergen', { note: 'n' }))
  await run(before.transaction(rootOf(1), (tx) => tx.delete(Trip, { car: 1, trip: 3 })))
  await run(put(before, 1, 4, 'Paris'))
  await run(bench.world.sleep(1_500_000))
  // From now on it keeps the index, and the entry has properties of the row that the program does
  // not know.
  await run(put(after, 2, 5, 'Kiel', { note: 'kept' }))
  await run(
    before.transaction(rootOf(2), (tx) => tx.update(Trip, { car: 2, trip: 5 }, { to: 'Ulm' })),
  )
  const parts = await run(partsOf(life, 'TripsByTo'))
  const faults = (await run(compareIndex(parts))).report.faults.map(({ kind }) => kind)
  expect(faults.toSorted()).toEqual(['left-over', 'missing', 'missing', 'missing', 'missing'])
  const known = await run(lifeIn(life, 'TripsByTo'))
  expect(known.state).toBe('known')
  expect(await run(buildIndex({ ...parts, rowsAtOnce: 1 }, known, 2_000))).toEqual({
    ...{ groups: 2, rows: 5, removed: 1, misfits: { count: 0, rows: [] } },
  })
  expect((await run(lifeIn(life, 'TripsByTo'))).state).toBe('ready')
  const { report } = await run(compareIndex({ ...parts, rowsAtOnce: 1 }))
  expect(report).toMatchObject({ groups: 2, rows: 5, entries: 5, faults: [] })
  expect(await run(found(after, 1))).toEqual([
    { car: 1, trip: 1, to: 'Oslo' },
    { car: 1, trip: 4, to: 'Paris' },
    { car: 1, trip: 2, to: 'Rome' },
  ])
  expect(await run(found(after, 2))).toContainEqual({ car: 2, trip: 5, to: 'Ulm', note: 'kept' })
  expect(await run(after.checkIndexes(rootOf(1)))).toMatchObject({ faults: [], entries: 3 })
})

test('IDX-14: a later index answers as of moments at which its group was filled, and of no other', async () => {
  const life = await begin()
  const { bench, node, options } = life
  const { run } = bench
  const before = await run(opened(life, first))
  const { timestamp: early = 0 } = await run(
    before.transaction(rootOf(1), (tx) => tx.put(Trip, { car: 1, trip: 1, to: 'Oslo', tag: [] })),
  )
  await run(applySchema(node.groups, second, options))
  const parts = await run(partsOf(life, 'TripsByTo'))
  const known = await run(lifeIn(life, 'TripsByTo'))
  const db = await run(opened(life, second))
  await run(buildIndex(parts, known, 0))
  const notThen = {
    code: 'unavailable',
    message: expect.stringContaining('not ready yet at the moment'),
  }
  await expect(run(found(db, 1, { at: early }))).rejects.toMatchObject(notThen)
  expect(await run(found(db, 1, 'snapshot'))).toHaveLength(1)
  expect(await run(found(db, 1))).toHaveLength(1)
  // A group that is new since then has no mark, and needs none.
  await run(put(db, 7, 1, 'Rome'))
  expect(await run(found(db, 7, 'snapshot'))).toHaveLength(1)
  const { timestamp: late = 0 } = await run(
    db.transaction(rootOf(1), (tx) => tx.delete(Trip, { car: 1, trip: 1 })),
  )
  expect(await run(found(db, 1, { at: late - 1 }))).toHaveLength(1)
  expect(await run(found(db, 1, { at: late }))).toEqual([])
})

test('IDX-6: an inline index and one over a list are filled, and show in their row', async () => {
  const life = await begin()
  const { bench, node, options } = life
  const { run } = bench
  const before = await run(opened(life, first))
  await run(before.transaction(rootOf(1), (tx) => tx.put(Car, { car: 1, city: 'Oslo' })))
  await run(put(before, 1, 1, 'Rome', { tag: ['a', 'b', 'a'] }))
  const more = `CREATE INLINE INDEX CarTrips ON Trip(car, to) IN TABLE Car;
CREATE LOCAL INDEX TripsByTag ON Trip(car, tag);`
  const later = schemaOf(more)
  await run(applySchema(node.groups, later, options))
  const db = await run(opened(life, later))
  const whole = (): Promise<object | undefined> =>
    db
      .read(rootOf(1), 'current', (rows) => rows.getWith(Car, { car: 1 }, Trip, 'CarTrips'))
      .then(({ value }) => value)
  await expect(run(whole())).rejects.toMatchObject({ detail: { index: 'known' } })
  for (const name of ['CarTrips', 'TripsByTag']) {
    const parts = await run(partsOf(life, name))
    await run(buildIndex(parts, await run(lifeIn(life, name)), 0))
  }
  expect(await run(whole())).toMatchObject({ city: 'Oslo', CarTrips: [{ trip: 1, to: 'Rome' }] })
  expect(await run(found(db, 1, 'current', 'TripsByTag'))).toHaveLength(2)
})

test('IDX-6: a unique index is not ready while two rows have one value', async () => {
  const life = await begin()
  const { bench, node, options } = life
  const { run } = bench
  const before = await run(opened(life, first))
  for (const trip of [1, 2]) await run(put(before, 1, trip, 'Oslo'))
  const later = schemaOf('CREATE UNIQUE LOCAL INDEX OneTo ON Trip(car, to);')
  await run(applySchema(node.groups, later, options))
  const db = await run(opened(life, later))
  const build = async (): Promise<unknown> =>
    buildIndex(await partsOf(life, 'OneTo'), await lifeIn(life, 'OneTo'), 0)
  const twice = { code: 'already-exists', message: expect.stringContaining('"Oslo"') }
  await expect(run(build())).rejects.toMatchObject(twice)
  expect((await run(lifeIn(life, 'OneTo'))).state).toBe('building')
  await expect(run(found(db, 1, 'current', 'OneTo'))).rejects.toMatchObject({
    detail: { index: 'building' },
  })
  await run(db.transaction(rootOf(1), (tx) => tx.update(Trip, { car: 1, trip: 2 }, { to: 'Rome' })))
  await run(build())
  expect(await run(found(db, 1, 'current', 'OneTo'))).toHaveLength(2)
  await run(bench.world.sleep(2_000_000))
  // A program of before is held to it as well.
  await expect(run(put(before, 1, 3, 'Rome'))).rejects.toMatchObject({ code: 'already-exists' })
})

test('IDX-6: a build names values that are too long for its index, and their rows can be changed', async () => {
  const life = await begin()
  const { bench, node, options } = life
  const { run } = bench
  const before = await run(opened(life, first))
  const long = 'x'.repeat(2_000)
  await run(put(before, 1, 1, long))
  await run(put(before, 1, 2, long))
  await run(applySchema(node.groups, second, options))
  const parts = await run(partsOf(life, 'TripsByTo'))
  const built = await run(buildIndex(parts, await run(lifeIn(life, 'TripsByTo')), 0))
  expect(built).toMatchObject({ rows: 2, misfits: { count: 2 } })
  const db = await run(opened(life, second))
  expect(await run(found(db, 1))).toEqual([])
  await run(db.transaction(rootOf(1), (tx) => tx.update(Trip, { car: 1, trip: 1 }, { to: 'Oslo' })))
  await run(db.transaction(rootOf(1), (tx) => tx.delete(Trip, { car: 1, trip: 2 })))
  expect(await run(found(db, 1))).toEqual([{ car: 1, trip: 1, to: 'Oslo' }])
  await expect(run(put(db, 1, 3, long))).rejects.toMatchObject({ code: 'too-large' })
})

test('IDX-6: a build goes on behind the groups that are filled, and a wrong index is not ready', async () => {
  const life = await begin()
  const { bench, node, options } = life
  const { run } = bench
  const before = await run(opened(life, first))
  for (const car of [1, 2, 3]) await run(put(before, car, 1, 'Oslo'))
  await run(applySchema(node.groups, second, options))
  const parts = await run(partsOf(life, 'TripsByTo'))
  const [to] = await run(groupsOf(life))
  await run(noteBuilding(node.groups, 'Fleet', parts.index, options))
  // As if a build had filled the first group, and lost what it wrote.
  await run(noteBuilding(node.groups, 'Fleet', parts.index, options, { to }))
  const filling: (number | undefined)[] = []
  const onFilling = ({ phase, total }: Progress): void => {
    if (phase === 'filling') filling.push(total)
  }
  const build = async (): Promise<unknown> =>
    buildIndex({ ...parts, onProgress: onFilling }, await lifeIn(life, 'TripsByTo'), 0)
  await expect(run(build())).rejects.toMatchObject({
    ...{ code: 'unavailable', message: expect.stringContaining('1 entries are not what') },
  })
  expect(filling).toEqual([2, 2])
  expect((await run(lifeIn(life, 'TripsByTo'))).state).toBe('building')
  expect(await run(build())).toMatchObject({ groups: 3, rows: 3 })
  expect((await run(lifeIn(life, 'TripsByTo'))).state).toBe('ready')
})

test('IDX-6: a build can be given up, and ends when the index is dropped', async () => {
  const life = await begin()
  const { bench, node, options } = life
  const { run } = bench
  await run(put(await run(opened(life, first)), 1, 1, 'Oslo'))
  await run(applySchema(node.groups, second, options))
  const parts = await run(partsOf(life, 'TripsByTo'))
  const known = await run(lifeIn(life, 'TripsByTo'))
  const given = new AbortController()
  given.abort()
  const ended = buildIndex({ ...parts, options: { ...options, signal: given.signal } }, known, 0)
  await expect(run(ended)).rejects.toMatchObject({ code: 'closed' })
  const onFilled = ({ phase }: Progress): Promise<void> | void =>
    phase === 'filling' ? dropIndex(parts, 0) : undefined
  const late = buildIndex({ ...parts, onProgress: (one) => void onFilled(one) }, known, 0)
  await expect(run(late)).rejects.toThrow('was dropped meanwhile')
})

test('IDX-13: a dropped index is refused at once, kept by writers for a grace, and then cleared', async () => {
  const life = await begin()
  const { bench, node, options } = life
  const { run, world } = bench
  const before = await run(opened(life, first))
  await run(put(before, 1, 1, 'Oslo'))
  await run(applySchema(node.groups, second, options))
  const parts = await run(partsOf(life, 'TripsByTo'))
  await run(buildIndex(parts, await run(lifeIn(life, 'TripsByTo')), 0))
  const [reader, writer] = [await run(opened(life, second)), await run(opened(life, second))]
  expect(await run(found(reader, 1))).toHaveLength(1)
  const states: IndexState[] = []
  const dropping = dropIndex(parts, 60_000).then(() => states.push('dropping'))
  await run(world.sleep(500_000))
  expect((await run(lifeIn(life, 'TripsByTo'))).state).toBe('dropping')
  // A program that has not heard of it yet gets an answer, and so all writers keep the index still.
  await run(put(writer, 1, 2, 'Rome'))
  expect(await run(found(reader, 1))).toHaveLength(2)
  await run(world.sleep(1_000_000))
  await expect(run(found(reader, 1))).rejects.toMatchObject({
    ...{ code: 'not-found', detail: { index: 'dropping' } },
  })
  await run(put(writer, 1, 3, 'Kiel'))
  expect((await run(compareIndex(parts))).report).toMatchObject({ entries: 3, faults: [] })
  expect(states).toEqual([])
  await run(dropping)
  const view = await run(viewOf(life))
  expect(view.version.schema.indexes).toEqual([])
  expect(view.lives.withdrawn).toMatchObject([{ name: 'TripsByTo', version: 2 }])
  await run(world.sleep(2_000_000))
  await run(put(writer, 1, 4, 'Ulm'))
  await expect(run(found(reader, 1))).rejects.toThrow('was dropped')
  expect(await run(clearDropped({ ...parts, rowsAtOnce: 1 }, 0))).toBe(3)
  expect((await run(viewOf(life))).lives.withdrawn).toEqual([])
  const [group] = await run(groupsOf(life))
  if (group === undefined) throw new Error('there is a group with rows')
  const beside = { gte: Uint8Array.of(2), lt: Uint8Array.of(0xff) }
  expect(await run(node.replica.scan(group, beside))).toEqual([])
  // Declared anew it is another index, and lacks what it has to be filled with.
  await run(applySchema(node.groups, second, options))
  const anew = await run(partsOf(life, 'TripsByTo'))
  expect(anew.index.number).not.toBe(parts.index.number)
  await expect(run(found(reader, 1))).rejects.toThrow('was dropped')
  const made = await run(buildIndex(anew, await run(lifeIn(life, 'TripsByTo')), 0))
  expect(made).toMatchObject({ rows: 4, removed: 0 })
  const fresh = await run(opened(life, second))
  expect(await run(found(fresh, 1))).toHaveLength(4)
})

test('IDX-12: no step of a life is left out', async () => {
  const life = await begin()
  const { bench, node, options } = life
  const { run } = bench
  await run(applySchema(node.groups, second, options))
  const parts = await run(partsOf(life, 'TripsByTo'))
  const early = markReady(node.groups, 'Fleet', parts.index, 1, options)
  await expect(run(early)).rejects.toThrow('IDX-12')
  await run(makeIndex(parts))
  expect((await run(lifeIn(life, 'TripsByTo'))).state).toBe('known')
})
