/**
 * A node's data folder: `log/` (what was promised and accepted) and `data/` (derived from it).
 * LevelDB holds the lock; `owner.json` beside it only says whose it is, for the error message.
 *
 * The log is never mended by guesswork: a damaged one stops the node for good. `data/` is derived,
 * so a damaged one is made again from the log.
 */
import { readdir, rename, rm, stat, writeFile } from 'node:fs/promises'
import type { Dirent, Stats } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { readBounded } from '../adapters/bounded-file.ts'
import { makeFolder } from '../adapters/make-folder.ts'
import { StoreError } from '../base/errors.ts'
import type { Journal } from '../ports/journal.ts'
import type { OrderedStore } from '../ports/storage.ts'
import { fileFailure } from '../adapters/file-failure.ts'
import { answered } from './silent-folder.ts'

export interface StoreAccess {
  readonly openLog: (path: string) => Promise<Journal>
  /** `readsAll`: all of it is checked before LevelDB hears of it. */
  readonly open: (path: string, readsAll: boolean) => Promise<OrderedStore>
  /** Rejects with `corrupt` when what `data/` says of itself is damaged. Reads only. */
  readonly probeData: (data: OrderedStore) => Promise<unknown>
}

export interface DataFolder {
  readonly log: Journal
  readonly data: OrderedStore
  /** `data/` was found damaged and put aside: it starts empty. */
  readonly wasDataReset: boolean
  /** This run has lasted: however it ends, the next one need not suspect `data/`. */
  settle(): Promise<void>
  close(): Promise<void>
}

const ownerName = 'owner.json'
/** More than any note of an owner has. */
const noteBytesMax = 65_536
/** The name under which the store that was found damaged last is put aside. */
const asideName = 'data.damaged'

/** Opens both stores, or rejects with one sentence that says what to do. */
export async function openDataFolder(path: string, access: StoreAccess): Promise<DataFolder> {
  await answered(path, makeOrExplain(path))
  const log = await openLog(path, access)
  try {
    const readsAll = await diedYoung(path)
    await writeOwner(path, false)
    const { store: data, wasReset } = await openData(path, access, readsAll)
    return {
      log,
      data,
      wasDataReset: wasReset,
      settle: () => writeOwner(path, true),
      close: async () => {
        await data.close()
        await removeOwner(path)
        await log.close()
      },
    }
  } catch (error) {
    await log.close()
    throw error
  }
}

/** Puts a damaged `data/` aside as `data.damaged`. The store must be closed. */
export async function resetData(path: string): Promise<void> {
  const aside = join(path, asideName)
  await rm(aside, { recursive: true, force: true })
  await rename(join(path, 'data'), aside)
}

async function makeOrExplain(path: string): Promise<void> {
  try {
    await makeFolder(path)
    await refuseStrangers(path)
  } catch (error) {
    if (error instanceof StoreError) throw error
    throw new StoreError(
      'invalid',
      `the data folder ${path} cannot be made: ${fileFailure(error)}; give another one with --data`,
      {},
      { cause: error },
    )
  }
}

/** The entries of a node's folder, each with its kind. */
const ownEntries: ReadonlyMap<string, 'a file' | 'a folder'> = new Map([
  [ownerName, 'a file'],
  ['replica-sets', 'a file'],
  ['replica-sets.new', 'a file'],
  ['log', 'a folder'],
  ['data', 'a folder'],
])

/**
 * A reader of a pipe waits for another process, a device has no end, and a folder cannot be written. A
 * link may lead to any of them.
 */
async function refuseStrangers(path: string): Promise<void> {
  for (const entry of await readdir(path, { withFileTypes: true })) {
    const wanted = ownEntries.get(entry.name)
    const found = wanted === undefined ? entry : await behind(join(path, entry.name))
    if (found === undefined) continue
    const kind = nameKind(found)
    if (wanted === undefined ? kind !== 'a pipe' && kind !== 'a socket' : kind === wanted) continue
    const text =
      wanted === undefined
        ? `has ${kind} in it, ${entry.name}; remove that`
        : `has ${entry.name} in it, which is ${kind} and must be ${wanted}; remove that`
    throw new StoreError(
      'invalid',
      `the data folder ${path} ${text}, or give another folder with --data`,
    )
  }
}

/** Undefined for a link that leads nowhere. */
async function behind(path: string): Promise<Stats | undefined> {
  try {
    return await stat(path)
  } catch {
    // The open of it says why it fails.
    return undefined
  }
}

function nameKind(entry: Stats | Dirent): string {
  if (entry.isFile()) return 'a file'
  if (entry.isDirectory()) return 'a folder'
  if (entry.isFIFO()) return 'a pipe'
  if (entry.isSocket()) return 'a socket'
  return 'a device'
}

async function openLog(path: string, access: StoreAccess): Promise<Journal> {
  const logPath = join(path, 'log')
  try {
    return await access.openLog(logPath)
  } catch (error) {
    throw await explained(path, logPath, error)
  }
}

async function openData(
  path: string,
  access: StoreAccess,
  readsAll: boolean,
): Promise<{ readonly store: OrderedStore; readonly wasReset: boolean }> {
  const dataPath = join(path, 'data')
  const names = await readdir(path)
  // Put aside when the node stopped over it: this start rebuilds it.
  const wasPutAside = names.includes(asideName) && !names.includes('data')
  const store = await openSound(dataPath, access, readsAll).catch(async (error: unknown) => {
    if (openFailure(error) !== 'corrupt') throw await explained(path, dataPath, error)
    return undefined
  })
  if (store !== undefined) return { store, wasReset: wasPutAside }
  await resetData(path)
  return { store: await access.open(dataPath, false), wasReset: true }
}

async function openSound(
  path: string,
  access: StoreAccess,
  readsAll: boolean,
): Promise<OrderedStore> {
  const store = await access.open(path, readsAll)
  try {
    await access.probeData(store)
    return store
  } catch (error) {
    await store.close()
    throw error
  }
}

type OpenFailure = 'locked' | 'corrupt' | 'other'

/** By the codes of the error and its causes alone: in the messages is the path, which may say anything. */
function openFailure(error: unknown): OpenFailure {
  for (let at: unknown = error; at instanceof Error; at = at.cause) {
    const code = 'code' in at ? at.code : undefined
    if (code === 'LEVEL_LOCKED') return 'locked'
    if (code === 'LEVEL_CORRUPTION' || code === 'corrupt') return 'corrupt'
  }
  return 'other'
}

async function explained(folder: string, path: string, error: unknown): Promise<StoreError> {
  const options = { cause: error }
  switch (openFailure(error)) {
    case 'locked': {
      const owner = await readOwner(folder)
      const who = owner === undefined ? 'another process' : `process ${owner.pid} on ${owner.host}`
      const text = `the data folder ${folder} is in use by ${who}; stop it, or give this node a folder of its own with --data`
      return new StoreError('unavailable', text, {}, options)
    }
    case 'corrupt': {
      const text =
        `the log in ${path} is damaged, and what this node promised the others stands only there, ` +
        `so it must not vote again; keep ${folder} for inspection, and see "A damaged log" in operating.md`
      return new StoreError('corrupt', text, { store: 'log' }, options)
    }
    default: {
      const text = `the store in ${path} cannot be opened: ${deepestFailure(error)}; check that this user may write there and that the disk has room`
      return new StoreError('invalid', text, {}, options)
    }
  }
}

function deepestFailure(error: unknown): string {
  let deepest = error
  while (deepest instanceof Error && deepest.cause instanceof Error) deepest = deepest.cause
  return fileFailure(deepest)
}

export interface Owner {
  readonly pid: number
  readonly host: string
  /** Its run has lasted for a while. */
  readonly isSettled: boolean
}

function ownerPath(folder: string): string {
  return join(folder, ownerName)
}

/**
 * DISK-17  The run before ended soon after its start, and not in order. LevelDB ends the whole process
 *          where it merges keys that damage has put out of order, and would at each start.
 */
async function diedYoung(folder: string): Promise<boolean> {
  const isThere = (await readdir(folder)).includes(ownerName)
  return isThere && (await readOwner(folder))?.isSettled !== true
}

async function writeOwner(folder: string, isSettled: boolean): Promise<void> {
  const owner: Owner = { pid: process.pid, host: hostname(), isSettled }
  await writeFile(ownerPath(folder), `${JSON.stringify(owner)}\n`)
}

/** Of this process: where another folder was put in place of its own, the note in there is another's. */
async function removeOwner(folder: string): Promise<void> {
  const owner = await readOwner(folder)
  if (owner !== undefined && (owner.pid !== process.pid || owner.host !== hostname())) return
  await rm(ownerPath(folder), { force: true })
}

/** The owner's note, if there is a legible one: it is only a hint. */
export async function readOwner(folder: string): Promise<Owner | undefined> {
  try {
    const bytes = await readBounded(ownerPath(folder), noteBytesMax)
    const found: unknown = JSON.parse(bytes?.toString() ?? '')
    if (typeof found !== 'object' || found === null) return undefined
    if (!('pid' in found) || !('host' in found)) return undefined
    const { pid, host } = found
    const isSettled = 'isSettled' in found && found.isSettled === true
    if (typeof pid !== 'number' || typeof host !== 'string') return undefined
    return { pid, host, isSettled }
  } catch {
    // No note, or half of one: the message then names no process.
    return undefined
  }
}
