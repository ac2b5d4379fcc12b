/**
 * Salvages the rest of a damaged journal. LevelDB passes over a record that does not match its checksum, and
 * over the rest of its block. It moves the other records into a table; afterwards nothing shows the loss. So
 * this module copies the journals beside the folder before LevelDB opens it. It reports to the owner of the
 * store all that it can make out there.
 *
 * It reports the copies at each open until the owner has said that all of it is put back: a crash in between
 * loses nothing. They stay for inspection until there is other damage.
 */
import { copyFile, mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { JournalDamage, Put } from '../ports/storage.ts'
import { decodeBatch } from './level-batch.ts'
import { salvageJournal } from './level-journal.ts'
import { Pace, PacedFile } from './paced-file.ts'

/** Which journals are damaged or newer than one that is, the oldest first. */
export interface DamagedJournals {
  /** Of the first one: where and how. */
  readonly what: string
  readonly names: readonly string[]
}

/** Says what was found, until that is put back. */
const pendingName = 'pending'
const mendedName = 'mended'

/** Damage that an earlier open found, and that the owner has not put back. */
export async function damageBefore(path: string): Promise<JournalDamage | undefined> {
  const aside = joinAsidePath(path)
  const what = await readFile(join(aside, pendingName), 'utf8').catch(() => undefined)
  if (what === undefined) return undefined
  const names = (await readdir(aside)).filter((name) => name.endsWith('.log')).toSorted()
  const pace = new Pace({})
  const batches: (readonly Put[] | undefined)[] = []
  for (const name of names) {
    const file = await PacedFile.open(join(aside, name), pace)
    if (file === undefined) continue
    try {
      await salvageJournal(file, name === names.at(-1), (bytes) => {
        const { puts, isWhole } = decodeBatch(bytes ?? new Uint8Array())
        if (puts.length > 0) batches.push(puts)
        if (!isWhole) batches.push(undefined)
      })
    } finally {
      await file.close()
    }
  }
  return { what, batches, done: () => rename(join(aside, pendingName), join(aside, mendedName)) }
}

/** Keeps the journals of a store that is about to be opened. */
export async function keepDamaged(path: string, { what, names }: DamagedJournals): Promise<void> {
  const aside = joinAsidePath(path)
  await rm(aside, { recursive: true, force: true })
  await mkdir(aside)
  for (const name of names) {
    await copyFile(join(path, name), join(aside, name))
    await synced(join(aside, name))
  }
  const note = await open(join(aside, pendingName), 'wx')
  try {
    await note.writeFile(what)
    await note.sync()
  } finally {
    await note.close()
  }
  await synced(aside)
  await synced(dirname(path))
}

function joinAsidePath(path: string): string {
  return join(dirname(path), `${basename(path)}.damaged`)
}

async function synced(path: string): Promise<void> {
  const handle = await open(path, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
