/**
 * A node's data folder: `log/` (what was promised and accepted) and `data/` (derived from it).
 * LevelDB holds a lock of `data/`, which is opened first: it stands for the whole folder, whatever keeps the log.
 * `owner.json` only says whose it is, for the error message.
 *
 * The log is never mended by guesswork: a store with a damaged one never votes again, and an empty store may take its place
 * (`log-healing.ts`). `data/` is derived, so a damaged one is made again from the log.
 *
 * Small files beside them: whose the folder is (`folder-identity.ts`), and the seat of a store that is to be made
 * (`seat-note.ts`).
 */
import { laterSetsName } from './later-sets-file.ts'
import { readdir, rename, rm, stat } from 'node:fs/promises'
import type { Dirent, Stats } from 'node:fs'
import { join } from 'node:path'
import { refuseOtherKind, type JournalKind } from '../adapters/journal-kind.ts'
import { logName, settleSwitch } from '../adapters/log-switch.ts'
import { nameBegun } from '../adapters/durable-file.ts'
import { makeFolder } from '../adapters/make-folder.ts'
import { StoreError } from '../base/errors.ts'
import type { Journal } from '../ports/journal.ts'
import type { OrderedStore } from '../ports/storage.ts'
import { fileFailure } from '../adapters/file-failure.ts'
import {
  diedYoung,
  isAnotherRunning,
  ownerName,
  readOwner,
  removeOwner,
  writeOwner,
} from './folder-owner.ts'
import { identityName } from './folder-identity.ts'
import { recoveryName } from './recovery-note.ts'
import { seatName } from './seat-note.ts'
import { answered } from './silent-folder.ts'

export interface StoreAccess {
  /** The kind of journal that `openLog` opens. */
  readonly logKind: JournalKind
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

/** The name under which the store that was found damaged last is put aside. */
const asideName = 'data.damaged'

/** Opens both stores, or rejects with one sentence that says what to do. */
export async function openDataFolder(path: string, access: StoreAccess): Promise<DataFolder> {
  await makeDataFolder(path)
  const logPath = join(path, logName)
  // Before a byte in the folder changes.
  await refuseOtherKind(logPath, access.logKind)
  const readsAll = await diedYoung(path)
  // LevelDB may end the process while it opens, and the next start is to know. Another process keeps its note.
  if (!(await isAnotherRunning(path))) await writeOwner(path, false)
  const { store: data, wasReset } = await openData(path, access, readsAll)
  try {
    await writeOwner(path, false)
    await settleSwitch(path)
    await refuseOtherKind(logPath, access.logKind)
    const log = await openLog(path, access)
    return {
      log,
      data,
      wasDataReset: wasReset,
      settle: () => writeOwner(path, true),
      close: async () => {
        await log.close()
        await data.close()
        await removeOwner(path)
      },
    }
  } catch (error) {
    await data.close()
    await removeOwner(path)
    throw error
  }
}

/** Puts a damaged `data/` aside as `data.damaged`. The store must be closed. */
export async function resetData(path: string): Promise<void> {
  const aside = join(path, asideName)
  await rm(aside, { recursive: true, force: true })
  await rename(join(path, 'data'), aside)
}

/** Rejects with one sentence where it cannot be made, has not answered in time, or has entries that no node makes. */
export function makeDataFolder(path: string): Promise<void> {
  return answered(path, makeOrExplain(path))
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
  ...['replica-sets', laterSetsName, identityName, seatName, recoveryName].flatMap(
    (name): [string, 'a file'][] => [
      [name, 'a file'],
      [nameBegun(name), 'a file'],
    ],
  ),
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
