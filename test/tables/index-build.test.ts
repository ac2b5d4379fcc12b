/** A global index that comes when there are rows, and programs that do not know it yet. */
import { expect, test } from 'vitest'
import { parseSchema } from '../../schema/ddl-parse.ts'
import type { Schema } from '../../schema/model.ts'
import type { GroupId } from '../../src/base/ids.ts'
import { checkedPage } from '../../src/client/indexes.ts'
import type { Clock } from '../../src/ports/clock.ts'
import { compileSchema } from '../../src/tables/compile.ts'
import { compareGlobal as compareIndex, removeLeftOvers } from '../../src/tables/index-compare.ts'
import { buildIndex, clearDropped, dropIndex } from '../../src/tables/index-build.ts'
import { findLife, type IndexLife } from '../../src/tables/index-life.ts'
import { makeIndex } from '../../src/tables/index-make.ts'
import type { GlobalUpkeep } from '../../src/tables/index-parts.ts'
import { markReady, noteBuilding } from '../../src/tables/index-steps.ts'
import { backfillIndex } from '../../src/tables/index-backfill.ts'
import { MisfitRows } from '../../src/indexes/misfits.ts'
import { indexGroups } from '../../src/tables/global-entries.ts'
import { openTables } from '../../src/tables/open.ts'
import { defaultTransactionLimits } from '../../src/txn/limits.ts'
import { applySchema, readSchemaView } from '../../src/tables/registry.ts'
import { SchemaWatch } from '../../src/tables/schema-watch.ts'
import { Sessions } from '../../src/txn/session.ts'
import { readMoment } from '../../src/time/moments.ts'
import { globalBench, type GlobalBench, type RelayNode } from './global-bench.ts'

function schemaOf(more: string): Schema {
  const parsed = parseSchema(`
CREATE SCHEMA Fleet;
CREATE TABLE Car { required integer car; required string city; ${more.includes('seats') ? 'optional integer seats;' : ''} }
  PRIMARY KEY(car), ENTITY GROUP ROOT;
${more}`)
  if (!parsed.ok) throw new Error('the text is a schema')
  return parsed.schema
}

const first = schemaOf('')
const second = schemaOf('CREATE GLOBAL INDEX CarsByCity ON Car(city) STORING (seats) SHARDS 2;')
const trustMs = 1_000

function optionsOf(node: RelayNode, bench: GlobalBench): GlobalUpkeep['options'] {
  const random = bench.world.random.fork('upkeep')
  return { clock: node.clock, random, intents: new Sessions(node.clock, random) }
}

/** For who builds an index of the schema that the cluster has now. */
async function partsOf(
  { groups: port, replica, clock }: RelayNode,
  options: GlobalUpkeep['options'],
  name: string,
): Promise<GlobalUpkeep> {
  const view = await readSchemaView(port, 'Fleet', { clock })
  const schema = view && compileSchema(view.version)
  const index = schema?.globals.get(name)
  const table = schema?.tables.get(index?.table ?? '')
  if (!schema || !table || !index) throw new Error('the index was applied')
  const list: GlobalUpkeep['list'] = (...asked) => replica.groups(...asked, 1_000)
  const misfits = new MisfitRows()
  return { port, schema, table, index, options, list, misfits, onProgress: () => undefined }
}

async function lifeIn(node: RelayNode, name: string): Promise<IndexLife> {
  const view = await readSchemaView(node.groups, 'Fleet', { clock: node.clock })
  if (view === undefined) throw new Error('the schema was applied')
  return findLife(view.lives, name)
}

async function opened(bench: GlobalBench, node: RelayNode, schema: Schema): Promise<PlainTables> {
  const { clock, groups: port } = node
  const look = (): ReturnType<typeof readSchemaView> => readSchemaView(port, 'Fleet', { clock })
  const askedAt = readMoment(clock)
  const view = await look()
  if (view === undefined) throw new Error('the schema was applied')
  const { version } = view
  const from = { opened: version, declared: version.schema, view, askedAt }
  const watch = new SchemaWatch({ clock, ...from, trustMs, look })
  const random = bench.world.random.fork(`opened ${version.version}`)
  return openTables({ name: schema.name, tables: [], model: schema }, port, {
    clock,
    random,
    version,
    watch,
  })
}

/** As programs do whose types are known only when they run. */
interface PlainTransaction {
  put(table: { readonly name: string }, row: unknown): Promise<void>
  delete(table: { readonly name: string }, key: unknown): Promise<void>
}

interface PlainTables {
  group(key: { readonly table: string; readonly key: unknown }): GroupId
  transaction(
    key: { readonly table: string; readonly key: unknown },
    run: (tx: PlainTransaction) => Promise<void>,
  ): Promise<unknown>
  index(
    table: { readonly name: string },
    name: string,
    query: unknown,
  ): Promise<{ readonly items: readonly object[] }>
}

const Car = { name: 'Car' }

function put(db: PlainTables, car: number, city: string, seats?: number): Promise<unknown> {
  const row = { car, city, ...(seats !== undefined && { seats }) }
  return db.transaction({ table: 'Car', key: { car } }, (tx) => tx.put(Car, row))
}

function remove(db: PlainTables, car: number): Promise<unknown> {
  return db.transaction({ table: 'Car', key: { car } }, (tx) => tx.delete(Car, { car }))
}

test('a step of a build looks at one row at least, and at no more than a transaction has room for', () => {
  expect([undefined, 1, 50].map(checkedPage)).toEqual([undefined, 1, 50])
  for (const wrong of [0, 1.5, 51]) expect(() => checkedPage(wrong)).toThrow('rowsAtOnce')
})

test('IDX-6: an index answers once it holds all rows, also those that earlier programs wrote', async () => {
  const bench = globalBench()
  const { node, run, rest } = bench
  const n1 = node('n1')
  n1.relay.start()
  const options = optionsOf(n1, bench)
  await run(applySchema(n1.groups, first, options))
  const before = await run(opened(bench, n1, first))
  for (let car = 1; car <= 5; car++) await run(put(before, car, 'Oslo'))
  await run(applySchema(n1.groups, second, options))
  const after = await run(opened(bench, n1, second))
  await expect(run(after.index(Car, 'CarsByCity', {}))).rejects.toThrow('is known to writers')
  // Within its trust the program of before may still write as if there was no index.
  await run(put(before, 6, 'Rome'))
  // One program has put the entry of a row that another one removes, and does not know of.
  await run(put(after, 7, 'Rome'))
  await run(remove(before, 7))
  await run(bench.world.sleep(1_500_000))
  await run(put(before, 1, 'Rome'))
  await run(put(after, 2, 'Rome', 4))
  const parts = await run(partsOf(n1, options, 'CarsByCity'))
  await rest()
  const kinds = (await run(compareIndex(parts))).faults.map(({ kind }) => kind)
  expect(kinds).toEqual(['missing', 'missing', 'missing', 'missing', 'left-over'])
  expect(await run(buildIndex(parts, await run(lifeIn(n1, 'CarsByCity')), 2_000))).toEqual({
    ...{ groups: 7, rows: 6, removed: 1, misfits: { count: 0, rows: [] } },
  })
  const compared = { groups: 7, rows: 6, entries: 6, faults: [], misfits: { count: 0, rows: [] } }
  expect(await run(compareIndex(parts))).toEqual(compared)
  // A row or an entry a step: each page begins behind the one before it.
  expect(await run(compareIndex({ ...parts, rowsAtOnce: 1 }))).toEqual(compared)
  const page = await run(after.index(Car, 'CarsByCity', { city: 'Rome' }))
  expect(page.items).toEqual([
    { car: 1, city: 'Rome' },
    { car: 2, city: 'Rome', seats: 4 },
    { car: 6, city: 'Rome' },
  ])
  // The check finds a left-over entry, and the worklist of its row's group takes it out.
  expect(indexGroups(parts.index)[0]).toBeDefined()
  await run(remove(before, 3))
  await rest()
  expect(await run(removeLeftOvers(parts))).toBe(0)
  expect((await run(compareIndex(parts))).entries).toBe(5)
  // A group without rows may get one that a single replica has accepted: a position is taken in it.
  const emptied = before.group({ table: 'Car', key: { car: 3 } })
  const at = async (): Promise<number> =>
    (await n1.replica.read(emptied, 'snapshot', 1_000)).position
  const position = await run(at())
  await run(backfillIndex(parts))
  expect(await run(at())).toBe(position + 1)
})

test('IDX-6: a build takes a position in a group whose rows have no entries', async () => {
  const bench = globalBench()
  const { node, run } = bench
  const n1 = node('n1')
  const options = optionsOf(n1, bench)
  const seats = schemaOf('CREATE GLOBAL INDEX CarsBySeats ON Car(seats) WHERE PRESENT;')
  await run(applySchema(n1.groups, seats, options))
  const db = await run(opened(bench, n1, seats))
  await run(put(db, 1, 'Oslo'))
  const parts = await run(partsOf(n1, options, 'CarsBySeats'))
  const group = db.group({ table: 'Car', key: { car: 1 } })
  const at = async (): Promise<number> => (await n1.replica.read(group, 'snapshot', 1_000)).position
  const position = await run(at())
  await run(backfillIndex(parts))
  expect(await run(at())).toBe(position + 1)
})

test('IDX-6: rows whose entries are too large for one transaction are filled in by several', async () => {
  const bench = globalBench()
  const { node, run } = bench
  const n1 = node('n1')
  n1.relay.start()
  const options = optionsOf(n1, bench)
  const Trip = { name: 'Trip' }
  const trips =
    'CREATE TABLE Trip { required integer car; required integer trip; repeated string tag; required string note; } PRIMARY KEY(car, trip), IN TABLE Car, ENTITY GROUP KEY(car) REFERENCES Car;'
  const before = schemaOf(trips)
  await run(applySchema(n1.groups, before, options))
  const db = await run(opened(bench, n1, before))
  const tag = Array.from({ length: 40 }, (_, at) => `t${at}`)
  for (let trip = 1; trip <= 60; trip++) {
    const row = { car: 1, trip, tag, note: 'x'.repeat(3_000) }
    await run(db.transaction({ table: 'Car', key: { car: 1 } }, (tx) => tx.put(Trip, row)))
  }
  const index = 'CREATE GLOBAL INDEX TripsByTag ON Trip(tag) STORING (note);'
  await run(applySchema(n1.groups, schemaOf(trips + index), options))
  const parts = await run(partsOf(n1, options, 'TripsByTag'))
  expect(await run(backfillIndex(parts))).toEqual({ groups: 1, rows: 60, removed: 0 })
  const misfits = { count: 0, rows: [] }
  const report = { groups: 1, rows: 60, entries: 2_400, faults: [], misfits }
  expect(await run(compareIndex(parts))).toEqual(report)
})

test('IDX-6: a build waits for entries that changed again before they were relayed', async () => {
  const bench = globalBench()
  const { node, run, world } = bench
  const n1 = node('n1')
  const options = optionsOf(n1, bench)
  await run(applySchema(n1.groups, first, options))
  await run(put(await run(opened(bench, n1, first)), 1, 'Oslo'))
  await run(applySchema(n1.groups, second, options))
  const db = await run(opened(bench, n1, second))
  const parts = await run(partsOf(n1, options, 'CarsByCity'))
  const ends: number[] = []
  const relaying = new Promise<void>((resolve) => {
    // The row was put on its group's worklist, and is changed before the first look there.
    const onProgress = ({ phase }: { phase: string }): void => {
      if (phase === 'filling') resolve(put(db, 1, 'Oslo', 4).then(() => undefined))
    }
    void backfillIndex({ ...parts, onProgress }).then(() => ends.push(world.nowMicros))
  })
  await run(relaying)
  await run(world.sleep(5_000_000))
  expect(ends).toEqual([])
  // It changes all the time from now on: the build ends in spite of that.
  n1.relay.start()
  for (let seats = 1; seats < 200; seats++) await run(put(db, 1, 'Oslo', seats))
  expect(ends).toHaveLength(1)
})

test('IDX-6: the grace begins when the declaration is known, however long ago the request was', async () => {
  const bench = globalBench()
  const { node, run, world } = bench
  const n1 = node('n1')
  const options = optionsOf(n1, bench)
  const life = (): Promise<IndexLife> => lifeIn(n1, 'CarsByCity')
  await run(applySchema(n1.groups, first, options))
  n1.replica.mishaps.push('answer-lost')
  const unknown = { code: 'unknown-outcome' }
  await expect(run(applySchema(n1.groups, second, options))).rejects.toMatchObject(unknown)
  // For all that the caller knows, it may have taken effect a moment ago.
  await run(world.sleep(1_000_000_000))
  const parts = await run(partsOf(n1, options, 'CarsByCity'))
  const declared = await run(life())
  expect(declared.state).toBe('declared')
  const askedAt = n1.clock.wallMicros()
  expect(await run(applySchema(n1.groups, second, options))).toMatchObject({ kind: 'same' })
  const known = await run(life())
  expect(known.state).toBe('known')
  expect(known.since).toBeGreaterThanOrEqual(askedAt)
  expect(known.since).toBeLessThan(askedAt + 1_000_000)
  const beganAt = world.nowMicros
  n1.relay.start()
  await run(buildIndex(parts, declared, 60_000))
  expect(world.nowMicros - beganAt).toBeGreaterThanOrEqual(60_000_000)
  expect((await run(life())).state).toBe('ready')
})

test('IDX-6: a program that was suspended looks at the registry again before it writes', async () => {
  const bench = globalBench()
  const { node, run } = bench
  const n1 = node('n1')
  await run(applySchema(n1.groups, first, optionsOf(n1, bench)))
  let aheadMicros = 0
  const clock: Clock = {
    wallMicros: () => n1.clock.wallMicros() + aheadMicros,
    monotonicMs: () => n1.clock.monotonicMs(),
    setTimer: (...given) => n1.clock.setTimer(...given),
    defer: (...given) => n1.clock.defer(...given),
  }
  const look = (): ReturnType<typeof readSchemaView> =>
    readSchemaView(n1.groups, 'Fleet', { clock })
  const view = await run(look())
  if (view === undefined) throw new Error('the schema was applied')
  const declared = view.version.schema
  const own = { clock, opened: view.version, declared, view, askedAt: readMoment(clock) }
  const watch = new SchemaWatch({ ...own, trustMs, look })
  expect(watch.trusted()).toBeUndefined()
  aheadMicros = 3_600_000_000
  const looking = watch.trusted()
  expect(looking).toBeInstanceOf(Promise)
  await run(looking ?? Promise.resolve())
  expect(watch.trusted()).toBeUndefined()
})

const noteText = (indexes: string): Schema => {
  const parsed = parseSchema(`
CREATE SCHEMA Notes;
CREATE TABLE Note { required string id; optional string title; repeated string tags; }
  PRIMARY KEY(id), ENTITY GROUP ROOT;
${indexes}`)
  if (!parsed.ok) throw new Error('the text is a schema')
  return parsed.schema
}
const notes = noteText('CREATE GLOBAL INDEX NotesByTags ON Note(tags);')
const manyNotes = noteText(`CREATE GLOBAL INDEX NotesByTags ON Note(tags);
CREATE GLOBAL INDEX NotesByTitle ON Note(title);
CREATE GLOBAL INDEX TitlesByTags ON Note(tags) STORING (title);`)

async function openedNotes(
  bench: GlobalBench,
  node: RelayNode,
  schema: Schema,
): Promise<NoteTables> {
  const { clock, groups: port } = node
  const version = (await readSchemaView(port, 'Notes', { clock }))?.version
  if (version === undefined) throw new Error('the schema was applied')
  const random = bench.world.random.fork(`notes ${version.version}`)
  const defined = { name: schema.name, tables: [], model: schema }
  return openTables(defined, port, { clock, random, version, limits: fewLimits })
}

/** As if a transaction wrote 40 rows at most, and took 100 away. */
const fewLimits = {
  ...defaultTransactionLimits,
  transactionMutationsMax: 40,
  submissionMutationsMax: 100,
}

interface NoteTables {
  transaction(
    key: { readonly table: string; readonly key: unknown },
    run: (tx: PlainTransaction & NoteUpdate) => Promise<void>,
  ): Promise<unknown>
}

interface NoteUpdate {
  update(table: { readonly name: string }, key: unknown, patch: unknown): Promise<void>
}

const Note = { name: 'Note' }

test('writers can shorten, empty and delete older rows under an index, and its build goes on', async () => {
  const bench = globalBench()
  const { node, run, rest } = bench
  const n1 = node('n1')
  n1.relay.start()
  const options = optionsOf(n1, bench)
  await run(applySchema(n1.groups, notes, options))
  const change = (
    db: NoteTables,
    id: string,
    work: (tx: PlainTransaction & NoteUpdate) => Promise<void>,
  ): Promise<unknown> => run(db.transaction({ table: 'Note', key: { id } }, work))
  const before = await run(openedNotes(bench, n1, notes))
  const long = 'x'.repeat(3_000)
  const tags = Array.from({ length: 30 }, (_, i) => `m${i}`)
  for (const id of ['long', 'longer', 'gone']) {
    await change(before, id, (tx) => tx.put(Note, { id, title: long, tags: [id] }))
  }
  for (const id of ['many', 'more']) {
    await change(before, id, (tx) => tx.put(Note, { id, title: 'ok', tags }))
  }
  await rest()
  await run(applySchema(n1.groups, manyNotes, options))
  const after = await run(openedNotes(bench, n1, manyNotes))
  const partsFor = async (name: string): Promise<GlobalUpkeep> => {
    const view = await run(readSchemaView(n1.groups, 'Notes', { clock: n1.clock }))
    const schema = view && compileSchema(view.version)
    const index = schema?.globals.get(name)
    const table = schema?.tables.get('Note')
    if (!schema || !table || !index) throw new Error('the index was applied')
    const list: GlobalUpkeep['list'] = (...asked) => n1.replica.groups(...asked, 1_000)
    const [port, misfits] = [n1.groups, new MisfitRows()]
    const bounded = { ...options, limits: { ...fewLimits, transactionMutationsMax: 7 } }
    const common = { port, schema, table, index, list, misfits, onProgress: () => undefined }
    return { ...common, options: bounded }
  }
  const built = await run(makeIndex(await partsFor('NotesByTitle')))
  const { count, rows } = built.misfits
  expect(count).toBe(3)
  expect(rows).toHaveLength(3)
  expect(rows.join()).toContain('"longer"')
  await run(makeIndex(await partsFor('TitlesByTags')))
  const titles = await run(compareIndex(await partsFor('NotesByTitle')))
  expect(titles).toMatchObject({ entries: 2, faults: [], misfits: { count: 3 } })
  expect(await run(compareIndex(await partsFor('TitlesByTags')))).toMatchObject({
    ...{ entries: 63, faults: [], misfits: { count: 0 } },
  })
  await change(after, 'long', (tx) => tx.update(Note, { id: 'long' }, { title: 's' }))
  await change(after, 'longer', (tx) => tx.update(Note, { id: 'longer' }, { tags: ['t'] }))
  await change(after, 'gone', (tx) => tx.delete(Note, { id: 'gone' }))
  await change(after, 'many', (tx) => tx.update(Note, { id: 'many' }, { tags: [] }))
  await change(after, 'more', (tx) => tx.delete(Note, { id: 'more' }))
  await rest()
  await rest()
  const all = await run(compareIndex(await partsFor('TitlesByTags')))
  expect(all).toMatchObject({ rows: 3, entries: 2, faults: [] })
  expect(await run(compareIndex(await partsFor('NotesByTitle')))).toMatchObject({
    ...{ rows: 3, entries: 2, faults: [], misfits: { count: 1 } },
  })
  // Writes are held to the limits as ever.
  const tooLong = change(after, 'new', (tx) => tx.put(Note, { id: 'new', title: long, tags: [] }))
  await expect(tooLong).rejects.toMatchObject({ code: 'too-large' })
  const tooMany = change(after, 'new', (tx) => tx.put(Note, { id: 'new', title: 'ok', tags }))
  await expect(tooMany).rejects.toMatchObject({ detail: { limit: 'transactionMutationsMax' } })
})

test('IDX-6: an index that is being built can be dropped, and declared anew under another number', async () => {
  const bench = globalBench()
  const { node, run, rest } = bench
  const n1 = node('n1')
  n1.relay.start()
  const options = optionsOf(n1, bench)
  const { clock } = n1
  await run(applySchema(n1.groups, first, options))
  await run(applySchema(n1.groups, second, options))
  const db = await run(opened(bench, n1, second))
  for (let car = 1; car <= 3; car++) await run(put(db, car, 'Oslo'))
  const parts = await run(partsOf(n1, options, 'CarsByCity'))
  await run(backfillIndex(parts))
  const entries = async (): Promise<number> => {
    const groups = await Promise.all(
      indexGroups(parts.index).map((group) => n1.replica.scan(group, wholeGroup)),
    )
    return groups.flat().length
  }
  expect(await run(entries())).toBe(3)

  await run(dropIndex(parts))
  const dropped = await run(readSchemaView(n1.groups, 'Fleet', { clock }))
  const withdrawn = [{ name: 'CarsByCity', number: parts.index.number, version: 2 }]
  expect(dropped).toMatchObject({ version: { version: 3 }, lives: { withdrawn } })
  expect(dropped?.version.schema).toEqual({ ...second, indexes: [] })
  // A program that opened it before gets an error, and keeps it no more.
  await expect(run(db.index(Car, 'CarsByCity', {}))).rejects.toThrow('was dropped')
  await run(bench.world.sleep(2_000_000))
  await run(put(db, 4, 'Oslo'))
  await rest()
  expect(await run(entries())).toBe(3)
  expect(await run(clearDropped({ ...parts, rowsAtOnce: 1 }, 0))).toBe(3)
  expect(await run(entries())).toBe(0)
  const cleared = await run(readSchemaView(n1.groups, 'Fleet', { clock }))
  expect(cleared?.lives.withdrawn).toEqual([])

  const again = await run(applySchema(n1.groups, second, options))
  expect(again).toMatchObject({ kind: 'next', version: { version: 4 } })
  expect(again.version.numbers.stored['CarsByCity']).not.toBe(parts.index.number)
  await expect(run(db.index(Car, 'CarsByCity', {}))).rejects.toThrow('was dropped')
  const anew = await run(partsOf(n1, options, 'CarsByCity'))
  expect((await run(buildIndex(anew, await run(lifeIn(n1, 'CarsByCity')), 0))).rows).toBe(4)
  // By its old number it would find nothing.
  await run(bench.world.sleep(2_000_000))
  await run(put(db, 5, 'Rome'))
  await expect(run(db.index(Car, 'CarsByCity', {}))).rejects.toThrow('open the tables again')
  await rest()
  const fresh = await run(opened(bench, n1, second))
  expect((await run(fresh.index(Car, 'CarsByCity', {}))).items).toHaveLength(5)
})

test('IDX-6: a build that ends late does not make an index ready that was dropped and declared anew', async () => {
  const bench = globalBench()
  const { node, run, rest } = bench
  const n1 = node('n1')
  n1.relay.start()
  const options = optionsOf(n1, bench)
  await run(applySchema(n1.groups, first, options))
  const db = await run(opened(bench, n1, first))
  for (let car = 1; car <= 3; car++) await run(put(db, car, 'Oslo'))
  await run(applySchema(n1.groups, second, options))
  const late = await run(partsOf(n1, options, 'CarsByCity'))
  await run(makeIndex(late))
  await run(dropIndex(late, 0))
  await run(applySchema(n1.groups, second, options))
  const steps = [
    (): Promise<unknown> => noteBuilding(n1.groups, 'Fleet', late.index, options),
    (): Promise<unknown> => markReady(n1.groups, 'Fleet', late.index, 1, options),
    (): Promise<unknown> => dropIndex(late, 0),
  ]
  for (const step of steps) {
    await expect(run(step())).rejects.toThrow('index CarsByCity was dropped meanwhile')
  }
  await rest()
  const fresh = await run(opened(bench, n1, second))
  await expect(run(fresh.index(Car, 'CarsByCity', {}))).rejects.toThrow('is known to writers')
})

test('IDX-6: a build of an index that is dropped meanwhile ends', async () => {
  const bench = globalBench()
  const { node, run } = bench
  const n1 = node('n1')
  const options = optionsOf(n1, bench)
  for (const schema of [first, second]) await run(applySchema(n1.groups, schema, options))
  const parts = await run(partsOf(n1, options, 'CarsByCity'))
  const checkWanted = (): Promise<void> => Promise.reject(new Error('dropped'))
  await expect(run(backfillIndex({ ...parts, checkWanted }))).rejects.toThrow('dropped')
})

const wholeGroup = { gte: new Uint8Array(0), lt: Uint8Array.of(0xff) }
