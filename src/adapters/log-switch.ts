/**
 * The switch of a node's `log/` from one kind of journal to the other, so that a process may be killed at any point. The
 * names of folders beside it say how far it has come:
 *
 *   log.converting   the new log, of which a part may be missing
 *   log.converted    the new log: all of it is durable and was compared
 *   log.replaced     the old log, while `log.converted` takes its place and until it is removed
 *
 * A new log counts only once the old one has another name. Before that a node may have written to the old one.
 */
import { readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { syncFolder } from './sync-folder.ts'

export const logName = 'log'
export const convertingName = 'log.converting'
export const convertedName = 'log.converted'
const replacedName = 'log.replaced'

/**
 * Goes on with a switch that was begun, and removes what another one left. The caller holds the lock of the data folder.
 * Rejects with the error of the system.
 */
export async function settleSwitch(folder: string): Promise<void> {
  const names = await readdir(folder)
  const isThere = (name: string): boolean => names.includes(name)
  const next = [convertedName, replacedName].find(isThere)
  if (!isThere(logName) && next !== undefined) await renameIn(folder, next, logName)
  for (const name of [convertingName, convertedName, replacedName]) {
    if (isThere(name)) await rm(join(folder, name), { recursive: true, force: true })
  }
}

/** Whether the log has no place at the moment, as after a kill amid a switch. */
export function isMidSwitch(names: readonly string[]): boolean {
  return (
    !names.includes(logName) && [convertedName, replacedName].some((one) => names.includes(one))
  )
}

/** Puts the new log, which is durable as `log.converting`, in the place of `log`, and removes that. */
export async function switchLogs(folder: string): Promise<void> {
  await renameIn(folder, convertingName, convertedName)
  await renameIn(folder, logName, replacedName)
  await settleSwitch(folder)
}

async function renameIn(folder: string, from: string, to: string): Promise<void> {
  await rename(join(folder, from), join(folder, to))
  await syncFolder(folder)
}
