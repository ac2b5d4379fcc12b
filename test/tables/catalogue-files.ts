/**
 * The catalogue's files (TRILITHON_DATA, or `shared/data` beside the repository) as rows, and the
 * expected answers about them in plain memory: nothing here knows of keys, groups or indexes. All artists, and
 * of the works each third: one artist has 4,000 of them, many have one or none.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gunzipSync, gzipSync } from 'node:zlib'
import type { Artist, Artwork } from '../../schema/examples/catalogue.ts'
import type { Row } from '../../schema/infer.ts'

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..')
const data = process.env['TRILITHON_DATA'] ?? join(root, '../shared/data')
export const folder: string = join(data, 'photos_tate')
export const isPresent: boolean = existsSync(folder)

export type ArtistRow = Row<typeof Artist>
export type WorkRow = Row<typeof Artwork>

/** An artist and the works, in the order of their ids. */
export interface Group {
  readonly artist: ArtistRow
  readonly works: readonly WorkRow[]
}

interface ArtistLine extends Omit<ArtistRow, 'gender' | 'date' | 'movements'> {
  readonly gender?: string | null
  readonly date?: string | null
  readonly movements: readonly { readonly id: number; readonly name: string }[]
  readonly [more: string]: unknown
}

interface WorkLine extends Omit<WorkRow, 'artist_id' | 'subjects'> {
  readonly subjects?: WorkRow['subjects']
}

const worksFile = 'artworks.jsonl.gz'

function isTaken({ id }: Pick<WorkRow, 'id'>): boolean {
  return id % 3 === 0
}

/** Writes the works that are taken to a file like the catalogue's. */
export function writeWorks(path: string): void {
  const lines = textOf(worksFile).split('\n')
  const taken = lines.filter((line) => {
    const work: unknown = line === '' ? undefined : JSON.parse(line)
    return isWork(work) && isTaken(work)
  })
  writeFileSync(path, gzipSync(`${taken.join('\n')}\n`))
}

export function readCatalogue(): ReadonlyMap<number, Group> {
  const worksByArtist = new Map<number, WorkRow[]>()
  for (const line of linesOf(worksFile, isWork).filter(isTaken)) {
    const artist_id = line.contributors[0]?.id ?? -1
    const works = worksByArtist.get(artist_id) ?? []
    works.push({ ...line, artist_id, subjects: line.subjects ?? [] })
    worksByArtist.set(artist_id, works)
  }
  const groups = linesOf('artists.jsonl.gz', isArtist).map((line): [number, Group] => {
    const works = worksByArtist.get(line.id) ?? []
    return [line.id, { artist: artistOf(line), works: works.toSorted((a, b) => a.id - b.id) }]
  })
  return new Map(groups)
}

/** The parts of the line that have a property; null is no value. */
function artistOf(line: ArtistLine): ArtistRow {
  const { startLetter: _1, activePlaces: _2, activePlaceCount: _3, gender, date, ...artist } = line
  return {
    ...artist,
    ...(typeof gender === 'string' && { gender }),
    ...(typeof date === 'string' && { date }),
    movements: line.movements.map(({ id, name }) => ({ id, name })),
  }
}

function textOf(file: string): string {
  return gunzipSync(readFileSync(join(folder, file))).toString('utf8')
}

function linesOf<Line>(file: string, isLine: (value: unknown) => value is Line): readonly Line[] {
  return textOf(file)
    .trimEnd()
    .split('\n')
    .map((one) => {
      const line: unknown = JSON.parse(one)
      if (!isLine(line)) throw new Error(`${file}: not a line of this file: ${one}`)
      return line
    })
}

function isArtist(value: unknown): value is ArtistLine {
  return typeof value === 'object' && value !== null && 'movements' in value
}

function isWork(value: unknown): value is WorkLine {
  return typeof value === 'object' && value !== null && 'contributors' in value
}

/** Entries by year, then by work; works without a year have none. */
export function entriesByYear(works: readonly WorkRow[]): readonly {
  readonly artist_id: number
  readonly acquisitionYear: number
  readonly id: number
}[] {
  return works
    .flatMap(({ artist_id, acquisitionYear, id }) =>
      acquisitionYear === undefined ? [] : [{ artist_id, acquisitionYear, id }],
    )
    .toSorted((a, b) => a.acquisitionYear - b.acquisitionYear || a.id - b.id)
}

/** One for each subject of a work, whether the work names it once or more often, in order of works. */
export function entriesBySubject(
  works: readonly WorkRow[],
): ReadonlyMap<string, readonly { readonly id: number; readonly title: string }[]> {
  const entries = new Map<string, { readonly id: number; readonly title: string }[]>()
  for (const { id, title, subjects } of works) {
    for (const name of new Set(subjects.map((subject) => subject.name))) {
      const some = entries.get(name) ?? []
      some.push({ id, title })
      entries.set(name, some)
    }
  }
  return entries
}
