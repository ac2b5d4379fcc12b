/**
 * A museum's catalogue, where its files are present: declared as text, loaded through the command line
 * into three processes, and asked at each replica alone; every answer is compared with a plain
 * computation from the files.
 */
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isDeepStrictEqual } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Artist, Artwork, catalogue } from '../../schema/examples/catalogue.ts'
import { fingerprintOf } from '../../schema/fingerprint.ts'
import type { Client } from '../../src/client/client.ts'
import { connect } from '../../src/client/connect.ts'
import { rootKey, type ReadLevel, type RootKey, type Tables } from '../../src/tables/tables.ts'
import type { GroupReader } from '../../src/tables/types.ts'
import { present } from '../../src/base/assert.ts'
import {
  runProgram,
  startCluster,
  type ProgramResult,
  type TestCluster,
} from '../cluster/harness.ts'
import {
  entriesBySubject,
  entriesByYear,
  folder,
  isPresent,
  readCatalogue,
  writeWorks,
  type Group,
  type WorkRow,
} from './catalogue-files.ts'

type Catalogue = Tables<typeof catalogue.tables>
type Rows = GroupReader<typeof catalogue.tables>

const ddl = fileURLToPath(new URL('../../schema/examples/catalogue.ddl', import.meta.url))
const commandTimeoutMs = 240_000
/** Has thousands of works; the next one has hundreds. */
const turner = 558
const groups = isPresent ? readCatalogue() : new Map<number, Group>()
const workCount = [...groups.values()].reduce((sum, { works }) => sum + works.length, 0)

let cluster: TestCluster | undefined
let applied: unknown
let artists: ProgramResult | undefined
let artworks: ProgramResult | undefined
const clients: Client[] = []
/** By node: tables of a client that knows this node alone. */
const alone = new Map<string, Catalogue>()

beforeAll(async () => {
  if (!isPresent) return
  cluster = await startCluster()
  writeWorks(join(cluster.folder, 'artworks.jsonl.gz'))
  applied = JSON.parse((await command('schema', 'apply', ddl, '--json')).stdout)
  artists = await loadArtists()
  artworks = await loadArtworks()
  for (const { id, url } of cluster.nodes) {
    const client = await connect({ endpoints: [url], timeoutMs: 30_000 })
    clients.push(client)
    alone.set(id, await client.tables(catalogue))
  }
}, 300_000)
afterAll(async () => {
  await Promise.all(clients.map((client) => client.close()))
  await cluster?.close()
})

function command(...words: readonly string[]): Promise<ProgramResult> {
  const environment = { TRILITHON_URL: cluster?.urls.join(',') ?? '' }
  return runProgram(words, { environment, timeoutMs: commandTimeoutMs })
}

function loadArtists(): Promise<ProgramResult> {
  return command('load', join(folder, 'artists.jsonl.gz'), ...into('Artist'))
}

function loadArtworks(): Promise<ProgramResult> {
  const from = ['--from', 'artist_id=contributors.0.id']
  const works = join(cluster?.folder ?? '', 'artworks.jsonl.gz')
  return command('load', works, ...into('Artwork'), ...from)
}

function into(table: string): readonly string[] {
  return ['--schema', 'Catalogue', '--table', table, '--json']
}

interface Report {
  readonly rows: number
  readonly seconds: number
}

function reportOf(result: ProgramResult | undefined): Report {
  expect(result, result?.stderr).toMatchObject({ code: 0 })
  const report: unknown = JSON.parse(result?.stdout ?? '')
  if (!isReport(report)) throw new Error('no report')
  return report
}

function isReport(value: unknown): value is Report {
  return typeof value === 'object' && value !== null && 'rows' in value && 'seconds' in value
}

/** As `toEqual`, which takes long for tens of thousands of rows, and is good at telling what differs. */
function expectSame(found: unknown, expected: unknown, where: string): void {
  if (!isDeepStrictEqual(found, expected)) expect(found, where).toEqual(expected)
}

function groupOf(id: number): Group {
  return present(groups.get(id), 'test: the artist is in the file')
}

/** Artists, those with the most works first, without the first ones. */
function busiest(count: number, skipped: number): readonly number[] {
  const ranked = [...groups].toSorted(([, a], [, b]) => b.works.length - a.works.length)
  return ranked.slice(skipped, skipped + count).map(([id]) => id)
}

function keyOf(id: number): RootKey {
  return rootKey(Artist, { id })
}

/** The same at each replica; `at` is in the message of what differs. */
async function atEach(ask: (db: Catalogue, at: string) => Promise<void>): Promise<void> {
  expect(alone.size).toBe(3)
  for (const [id, db] of alone) await ask(db, `replica ${id}`)
}

async function forAll<Item>(
  items: Iterable<Item>,
  run: (item: Item) => Promise<void>,
): Promise<void> {
  const left = [...items]
  const take = async (): Promise<void> => {
    for (let item = left.pop(); item !== undefined; item = left.pop()) await run(item)
  }
  await Promise.all(Array.from({ length: 16 }, take))
}

/** An artist and all works, page by page, at one moment. */
async function treeOf(rows: Rows, id: number, limit = 1000): Promise<Group & { pages: number }> {
  const works: WorkRow[] = []
  let artist: Group['artist'] | undefined
  let cursor: string | undefined
  let pages = 0
  do {
    const place = cursor === undefined ? {} : { cursor }
    const page = await rows.scanTree(Artist, { id }, { limit, ...place })
    for (const item of page.items) {
      if (item.table === 'Artwork') works.push(item.row)
      else artist = item.row
    }
    pages += 1
    cursor = page.cursor
  } while (cursor !== undefined)
  return { artist: present(artist, 'test: the artist is there'), works, pages }
}

async function readTree(db: Catalogue, id: number, level: ReadLevel): Promise<Group> {
  const { value } = await db.read(keyOf(id), level, (rows) => treeOf(rows, id))
  const { artist, works } = value
  return { artist, works }
}

test.runIf(isPresent)('the cluster has the schema that the program declares', async () => {
  const fingerprint = fingerprintOf(catalogue.model)
  expect(applied).toEqual({
    ...{ name: 'Catalogue', version: 1, fingerprint, kind: 'first', changes: [] },
  })
  const again = await command('schema', 'apply', ddl)
  expect(again).toMatchObject({
    stdout: `schema Catalogue: version 1 already says this, ${fingerprint}\n`,
  })
})

test.runIf(isPresent)(
  'every line of both files is loaded, and loading them again changes nothing',
  { timeout: commandTimeoutMs },
  async () => {
    const none = { changed: 0, rejected: 0, blankLines: 0 }
    const first = reportOf(artists)
    expect(first).toMatchObject({ rows: 1754, created: 1754, alreadyThere: 0, ...none })
    // A machine that is busy has the load wait, and say so before.
    expect(artists?.stderr).toContain(
      'fields that no property takes: activePlaceCount (1,754 rows), activePlaces (208 rows), startLetter (1,753 rows), movements.era (640 rows)\n',
    )
    const second = reportOf(artworks)
    expect(second).toMatchObject({ rows: workCount, created: workCount, alreadyThere: 0, ...none })
    expect(artworks?.stderr).not.toContain('no property takes')
    expect(reportOf(await loadArtists())).toMatchObject({ created: 0, alreadyThere: 1754, ...none })
    const again = reportOf(await loadArtworks())
    expect(again).toMatchObject({ created: 0, alreadyThere: workCount, ...none })
    say('artists', first)
    say('works', second)
    say('works again', again)
  },
)

function say(what: string, report: Report): void {
  const { rows, seconds } = report
  const rate = Math.round(rows / seconds)
  process.stdout.write(`catalogue: ${what}: ${rows} rows in ${seconds.toFixed(1)} s (${rate}/s)\n`)
}

test.runIf(isPresent)('each replica alone gives every artist with all works in one pass', () =>
  atEach(async (db, at) => {
    await forAll(groups, async ([id, { artist, works }]) => {
      expectSame(await readTree(db, id, 'current'), { artist, works }, `${at}, artist ${id}`)
    })
  }),
)

test.runIf(isPresent)('thousands of works come in pages of one moment', () =>
  atEach(async (db, at) => {
    const { works } = groupOf(turner)
    expect(works.length).toBeGreaterThan(3_000)
    const { value } = await db.read(keyOf(turner), 'snapshot', (rows) => treeOf(rows, turner, 2000))
    // The artist is the first row.
    expect(value, at).toMatchObject({ pages: Math.ceil((1 + works.length) / 2000) })
    expectSame(value.works, works, at)
  }),
)

test.runIf(isPresent)(
  'each replica alone gives the works of an artist by a range of years, both ways, page by page',
  () =>
    atEach(async (db, at) => {
      await forAll(busiest(800, 0), async (id) => {
        const { works } = groupOf(id)
        const entries = entriesByYear(works)
        const middle = entries[Math.floor(entries.length / 2)]?.acquisitionYear ?? 1900
        const years = { gte: middle - 20, lt: middle + 5 }
        const expected = entries.filter(
          ({ acquisitionYear: year }) => year >= years.gte && year < years.lt,
        )
        const query = { artist_id: id, acquisitionYear: years }
        const { value } = await db.read(keyOf(id), 'current', async (rows) => ({
          upwards: await entriesIn(rows, query, { limit: 1000 }),
          downwards: await entriesIn(rows, query, { limit: 1700, reverse: true }),
        }))
        const where = `${at}, artist ${id}`
        expectSame(value, { upwards: expected, downwards: expected.toReversed() }, where)
      })
    }),
)

type YearQuery = Parameters<typeof yearPage>[1]

function yearPage(
  rows: Rows,
  query: { artist_id: number; acquisitionYear?: { gte: number; lt: number } },
  options: { limit: number; reverse?: boolean; cursor?: string },
) {
  const { artist_id, acquisitionYear } = query
  return acquisitionYear === undefined
    ? rows.index(Artwork, 'ArtworksByYear', { artist_id }, options)
    : rows.index(Artwork, 'ArtworksByYear', { artist_id, acquisitionYear }, options)
}

async function entriesIn(
  rows: Rows,
  query: YearQuery,
  options: { limit: number; reverse?: boolean },
): Promise<readonly unknown[]> {
  const entries: unknown[] = []
  let cursor: string | undefined
  do {
    const page = await yearPage(rows, query, {
      ...options,
      ...(cursor !== undefined && { cursor }),
    })
    entries.push(...page.items)
    cursor = page.cursor
  } while (cursor !== undefined)
  return entries
}

test.runIf(isPresent)(
  'each replica alone gives the works of an artist by subject, with what the index stores',
  () =>
    atEach(async (db, at) => {
      await forAll(busiest(400, 0), async (id) => {
        const all = [...entriesBySubject(groupOf(id).works)]
        const subjects = all.toSorted(([, one], [, other]) => other.length - one.length)
        // The most used ones, and the least.
        const some = [...subjects.slice(0, 2), ...subjects.slice(2).slice(-1)]
        const { value } = await db.read(keyOf(id), 'current', (rows) =>
          Promise.all(some.map(([name]) => bySubject(rows, id, name))),
        )
        const expected = some.map(([name, entries]) =>
          entries.map((entry) => ({ artist_id: id, 'subjects.name': name, ...entry })),
        )
        expectSame(value, expected, `${at}, artist ${id}`)
      })
    }),
)

async function bySubject(rows: Rows, artist_id: number, name: string): Promise<readonly unknown[]> {
  const query = { artist_id, 'subjects.name': name }
  const { items } = await rows.index(Artwork, 'ArtworksBySubject', query, { limit: 12_000 })
  return items
}

test.runIf(isPresent)('entries lead to their rows, and keys to theirs', () =>
  atEach(async (db, at) => {
    const { works } = groupOf(turner)
    const castles = works.filter(({ subjects }) => subjects.some(({ name }) => name === 'castle'))
    const keys = works.slice(0, 500).flatMap(({ artist_id, id }) => [
      { artist_id, id },
      { artist_id, id: id + 1 },
    ])
    const byId = new Map(works.map((work) => [work.id, work]))
    const { value } = await db.read(keyOf(turner), 'current', async (rows) => {
      const query = { artist_id: turner, 'subjects.name': 'castle' }
      const page = await rows.index(Artwork, 'ArtworksBySubject', query, { limit: 5000 })
      return { castles: await page.rows(), many: await rows.getMany(Artwork, keys) }
    })
    expect(castles.length).toBeGreaterThan(300)
    expectSame(value.castles, castles, at)
    const many = keys.map(({ id }) => byId.get(id))
    expect(new Set(many)).toContain(undefined)
    expectSame(value.many, many, at)
  }),
)

test.runIf(isPresent)('indexes have what the rows say, at each replica', () =>
  atEach(async (db, at) => {
    for (const id of busiest(12, 20)) {
      const { works } = groupOf(id)
      const bySubjects = [...entriesBySubject(works).values()].flat().length
      const entries = entriesByYear(works).length + bySubjects
      const report = await db.checkIndexes(keyOf(id), { timeoutMs: 30_000 })
      expect(report, at).toEqual({ rows: works.length + 1, entries, faults: [] })
    }
  }),
)

/** Changes works one after another until told to stop; `works` holds the acknowledged changes. */
async function revise(
  db: Catalogue,
  works: Map<number, WorkRow>,
  mine: readonly WorkRow[],
  isOver: () => boolean,
): Promise<void> {
  for (let turn = 0; !isOver(); turn++) {
    const { artist_id, id, title } = present(mine[turn % mine.length], 'test: there are works')
    const patch = { title: `${title}, revision ${turn}`, acquisitionYear: 1700 + (turn % 300) }
    await db.transaction(keyOf(artist_id), (tx) => tx.update(Artwork, { artist_id, id }, patch))
    works.set(id, { ...present(works.get(id), 'test: it is there'), ...patch })
  }
}

test.runIf(isPresent)(
  'a moment of the past stays as it was at every replica while works are changed',
  async () => {
    const [id = 0] = busiest(1, 3)
    const before = groupOf(id)
    const [a, b, c] = [...alone.values()]
    if (a === undefined || b === undefined || c === undefined) throw new Error('three nodes')
    const first = await a.read(keyOf(id), 'current', (rows) => treeOf(rows, id))
    const at = present(first.view?.asOf, 'test: a current read has its moment')
    const years = entriesByYear(before.works)
    const works = new Map(before.works.map((work) => [work.id, work]))
    let isOver = false
    const halves = [before.works.slice(0, 100), before.works.slice(100)]
    const writing = Promise.all(
      [b, c].map((db, half) => revise(db, works, halves[half] ?? [], () => isOver)),
    )
    let states = 0
    try {
      for (let round = 0; round < 5; round++) {
        const now = await a.read(keyOf(id), 'current', (rows) => treeOf(rows, id))
        const moment = present(now.view?.asOf, 'test: a current read has its moment')
        if (moment > at) states += 1
        await atEach(async (db, where) => {
          expectSame(await readTree(db, id, { at }), before, where)
          const past = await db.read(keyOf(id), { at }, (rows) =>
            entriesIn(rows, { artist_id: id }, { limit: 9000 }),
          )
          expect(past, where).toMatchObject({ value: years, view: { asOf: at } })
          const { artist, works: then } = now.value
          expectSame(await readTree(db, id, { at: moment }), { artist, works: then }, where)
        })
      }
    } finally {
      isOver = true
    }
    await writing
    expect(states).toBeGreaterThan(2)
    const after = [...works.values()]
    expect(after).not.toEqual(before.works)
    await atEach(async (db, where) => {
      expect((await readTree(db, id, 'current')).works, where).toEqual(after)
      expect(await readTree(db, id, { at }), where).toEqual(before)
      const { value } = await db.read(keyOf(id), 'current', (rows) =>
        entriesIn(rows, { artist_id: id }, { limit: 9000 }),
      )
      expect(value, where).toEqual(entriesByYear(after))
      expect(await db.checkIndexes(keyOf(id)), where).toMatchObject({ faults: [] })
    })
  },
)
