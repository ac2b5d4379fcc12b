/**
 * Holds the lock of a store of LevelDB without opening the store, which would write to it. LevelDB locks a file of that
 * name in whatever folder it opens: here an empty one of its own, in which the name leads to the lock of the store.
 */
import { mkdtemp, rm, stat, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { ClassicLevel } from 'classic-level'

export interface StoreLock {
  /**
   * `held`: no other process opens the store until `release`. `in use`: another one has it open. `unknown`: there is no
   * lock, or this user may not lock it.
   */
  readonly state: 'held' | 'in use' | 'unknown'
  release(): Promise<void>
}

/** Of a process that has the store open itself, the lock tells nothing. */
export async function lockStore(path: string): Promise<StoreLock> {
  const nothing = (): Promise<void> => Promise.resolve()
  const lock = resolve(path, 'LOCK')
  const found = await stat(lock).catch(() => undefined)
  if (found?.isFile() !== true) return { state: 'unknown', release: nothing }
  const folder = await mkdtemp(join(tmpdir(), 'trilithon-lock-'))
  let level: ClassicLevel | undefined
  try {
    // First: the object begins to open the folder by itself, and would make a lock of its own there.
    await symlink(lock, join(folder, 'LOCK'))
    const locking = new ClassicLevel(folder)
    level = locking
    await locking.open()
    return { state: 'held', release: () => locking.close() }
  } catch (error) {
    await level?.close().catch(() => undefined)
    return { state: isLocked(error) ? 'in use' : 'unknown', release: nothing }
  } finally {
    // The lock stays with the open file; a command may end without another word.
    await rm(folder, { recursive: true, force: true })
  }
}

function isLocked(error: unknown): boolean {
  for (let at = error; at instanceof Error; at = at.cause) {
    if ('code' in at && at.code === 'LEVEL_LOCKED') return true
  }
  return false
}
