/**
 * The tables of a store as they were when it was opened, under a second name each, until all of them was
 * read. LevelDB compacts tables that the store has not checked yet, without looking at their checksums. Rows
 * that damage hides are missing from the new table, whose checksums match, and LevelDB deletes the old one.
 *
 * A second name takes no room while the table has its first one. Names that a run leaves behind are of
 * tables which it has not read to the end: the next one reads them still.
 */
import { link, mkdir, open, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'

/** Beside the tables: LevelDB leaves alone what has no name of its own kinds. */
const folderName = 'unchecked'
const endings = ['ldb', 'sst']
/** Second names that are given at once. */
const linksAtOnce = 64

/** Durably, before LevelDB hears of the store. False: the file system gives no second names. */
export async function keepTables(path: string, numbers: readonly number[]): Promise<boolean> {
  const folder = join(path, folderName)
  await mkdir(folder, { recursive: true })
  for (let from = 0; from < numbers.length; from += linksAtOnce) {
    const some = numbers.slice(from, from + linksAtOnce)
    const kept = await Promise.all(some.map((number) => keep(path, number)))
    if (kept.includes(false)) return false
  }
  await synced(folder)
  // The folder of that name may be new.
  await synced(path)
  return true
}

async function synced(folder: string): Promise<void> {
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** The file names of what is kept, from within the store's folder, with the numbers of the tables. */
export async function keptTables(path: string): Promise<ReadonlyMap<number, string>> {
  const names = await readdir(join(path, folderName)).catch((): string[] => [])
  return new Map(
    names.flatMap((name) => {
      const number = Number(/^(\d+)\.(?:ldb|sst)$/.exec(name)?.[1] ?? Number.NaN)
      return Number.isNaN(number) ? [] : [[number, join(folderName, name)]]
    }),
  )
}

/** It was read to the end, and is what was written. */
export function letGo(path: string, name: string): Promise<void> {
  return rm(join(path, name), { force: true })
}

export function tableName(number: number, ending: string): string {
  return `${String(number).padStart(6, '0')}.${ending}`
}

/** A table that is not there is LevelDB's to complain of. */
async function keep(path: string, number: number): Promise<boolean> {
  for (const ending of endings) {
    const name = tableName(number, ending)
    const [table, second] = [join(path, name), join(path, folderName, name)]
    const code = await captureErrorCode(link(table, second))
    if (code === undefined) return true
    if (code === 'EEXIST') return (await isSameFile(table, second)) || keepAnew(table, second)
    if (code !== 'ENOENT') return false
  }
  return true
}

/**
 * A folder that was copied, as to another disk, has two files where there were two names of one. LevelDB reads the
 * table, so that one is checked.
 */
async function keepAnew(table: string, second: string): Promise<boolean> {
  await rm(second, { force: true })
  return (await captureErrorCode(link(table, second))) === undefined
}

async function isSameFile(one: string, other: string): Promise<boolean> {
  const [a, b] = await Promise.all([stat(one), stat(other)])
  return a.ino === b.ino && a.dev === b.dev
}

async function captureErrorCode(work: Promise<void>): Promise<string | undefined> {
  try {
    await work
    return undefined
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : 'unknown'
  }
}
