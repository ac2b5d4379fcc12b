/**
 * The data folder of a node that is stopped, for commands that look into it: anything else is refused before it is
 * read, and a node that would start meanwhile finds the folder in use.
 */
import { lstat, readdir, stat } from 'node:fs/promises'
import type { Stats } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { fileFailure } from '../adapters/file-failure.ts'
import { lockStore, type StoreLock } from '../adapters/level-lock.ts'
import { isMidSwitch, logName } from '../adapters/log-switch.ts'
import { isRunning, readOwner } from '../node/folder-owner.ts'
import { CliError, exitFailure, exitUnavailable, exitUsage } from './exit.ts'

const advice = 'give the data folder of a stopped node, as "data" in its configuration names it'

type Use<Value> = (notes: readonly string[]) => Promise<Value>

/** Rejects when the folder is no data folder, when a node uses it, or when its files changed while `use` read them. */
export function withStoppedFolder<Value>(path: string, use: Use<Value>): Promise<Value> {
  return withFolder(path, async (notes) => {
    if (isMidSwitch(await listNames(path))) throw midSwitch(path)
    const before = await snapshotFiles(path)
    const value = await use(notes)
    if ((await snapshotFiles(path)) !== before) throw changed(path)
    return value
  })
}

/** The same for a command that changes the folder. It wants a lock, which is in `data/`. */
export function withLockedFolder<Value>(path: string, use: Use<Value>): Promise<Value> {
  return withFolder(path, async (notes, isLocked) => {
    if (!isLocked) throw unlocked(path)
    const log = await lstat(join(path, logName)).catch(() => undefined)
    if (log?.isSymbolicLink() === true) throw linked(path)
    return use(notes)
  })
}

async function withFolder<Value>(
  path: string,
  use: (notes: readonly string[], isLocked: boolean) => Promise<Value>,
): Promise<Value> {
  await refuseOthers(path)
  const owner = await readOwner(path)
  const isOurs = owner?.host === hostname()
  const who = owner === undefined ? 'another process' : `process ${owner.pid} on ${owner.host}`
  // This process cannot lock out itself.
  if (isOurs && owner.pid === process.pid) throw inUse(path, who)
  const lock = await lockFolder(path)
  try {
    if (lock.state === 'in use') throw inUse(path, who)
    if (lock.state === 'unknown' && isOurs && isRunning(owner.pid)) throw inUse(path, who)
    const notes =
      owner === undefined
        ? []
        : [`owner.json is of ${who}: that run did not end in order, or goes on elsewhere`]
    return await use(notes, lock.state === 'held')
  } finally {
    await lock.release()
  }
}

/** A node opens `data/` first. Where there is none, a log in LevelDB has a lock as well. */
async function lockFolder(path: string): Promise<StoreLock> {
  const lock = await lockStore(join(path, 'data'))
  return lock.state === 'unknown' ? lockStore(join(path, logName)) : lock
}

function unlocked(path: string): CliError {
  const text = `${path} cannot be locked against a node that starts meanwhile: its data/ is not there, or not yours; start the node as it is, stop it, and run this again as its user`
  return new CliError(text, exitUsage)
}

function linked(path: string): CliError {
  const text = `${join(path, logName)} is a link, and the new log is made beside it; put the folder itself there, and run this again`
  return new CliError(text, exitUsage)
}

function midSwitch(path: string): CliError {
  const text = `${path} is amid a conversion that was ended; start its node, or run trilithon store convert again, which goes on with it`
  return new CliError(text, exitUsage)
}

function inUse(path: string, who: string): CliError {
  const text = `the data folder ${path} is in use by ${who}; stop that node first, for example with SIGTERM`
  return new CliError(text, exitUnavailable)
}

function changed(path: string): CliError {
  const text = `files in ${path} changed while they were read, so nothing that was said of them counts; stop whatever uses the folder, and try again`
  return new CliError(text, exitUnavailable)
}

async function refuseOthers(path: string): Promise<void> {
  const found = await readKind(path)
  if (found !== 'a folder') {
    const text = found === undefined ? `there is no folder ${path}` : `${path} is ${found}`
    throw new CliError(`${text}; ${advice}`, exitUsage)
  }
  const names = await listNames(path)
  if (!names.includes(logName) && !isMidSwitch(names)) {
    const isStore = names.includes('CURRENT')
    const text = isStore ? `${path} is one store of a node` : `${path} has no log/ in it`
    throw new CliError(`${text}; ${advice}`, exitUsage)
  }
  for (const store of ['log', 'data'].filter((name) => names.includes(name))) {
    await refuseStrangers(join(path, store))
  }
}

/** A reader of a pipe waits for another process, and a device has no end. */
async function refuseStrangers(path: string): Promise<void> {
  const kind = await readKind(path)
  if (kind !== 'a folder') {
    const text = `${path} is ${kind ?? 'a link that leads nowhere'} and must be a folder; ${advice}`
    throw new CliError(text, exitUsage)
  }
  for (const name of await listNames(path)) {
    const found = await readKind(join(path, name))
    if (found === undefined || found === 'a file' || found === 'a folder') continue
    throw new CliError(`${path} has ${name} in it, which is ${found}; remove that`, exitUsage)
  }
}

async function listNames(path: string): Promise<readonly string[]> {
  try {
    return await readdir(path)
  } catch (error) {
    throw new CliError(`${path} cannot be read: ${fileFailure(error)}`, exitFailure)
  }
}

/** Undefined: nothing is there. */
async function readKind(path: string): Promise<string | undefined> {
  try {
    return describeKind(await stat(path))
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    if (code === 'ENOENT') return undefined
    throw new CliError(`${path} cannot be read: ${fileFailure(error)}`, exitUsage)
  }
}

function describeKind(found: Stats): string {
  if (found.isFile()) return 'a file'
  if (found.isDirectory()) return 'a folder'
  if (found.isFIFO()) return 'a pipe'
  return found.isSocket() ? 'a socket' : 'a device'
}

/** Name, size and time of change of each file of both stores. */
async function snapshotFiles(path: string): Promise<string> {
  const lines: string[] = []
  for (const store of ['log', 'data']) {
    const folder = join(path, store)
    for (const name of await readdir(folder).catch((): string[] => [])) {
      const found = await stat(join(folder, name)).catch(() => undefined)
      lines.push(`${store}/${name} ${found?.size} ${found?.mtimeMs}`)
    }
  }
  return lines.toSorted().join('\n')
}
