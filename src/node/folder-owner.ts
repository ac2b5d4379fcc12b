/** Whose a data folder is, by a note in it. It is a hint for messages: the lock of LevelDB counts. */
import { readdir, rm, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { readBounded } from '../adapters/bounded-file.ts'

export const ownerName = 'owner.json'
/** More than any note of an owner has. */
const noteBytesMax = 65_536

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
export async function diedYoung(folder: string): Promise<boolean> {
  const isThere = (await readdir(folder)).includes(ownerName)
  return isThere && (await readOwner(folder))?.isSettled !== true
}

export async function writeOwner(folder: string, isSettled: boolean): Promise<void> {
  const owner: Owner = { pid: process.pid, host: hostname(), isSettled }
  await writeFile(ownerPath(folder), `${JSON.stringify(owner)}\n`)
}

/** Of this process: where another folder was put in place of its own, the note in there is another's. */
export async function removeOwner(folder: string): Promise<void> {
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

/** Whether the owner is another process of this host, and that one runs. */
export async function isAnotherRunning(folder: string): Promise<boolean> {
  const owner = await readOwner(folder)
  if (owner === undefined || owner.host !== hostname() || owner.pid === process.pid) return false
  return isRunning(owner.pid)
}

export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // Another user's process may not be asked, and runs.
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}
