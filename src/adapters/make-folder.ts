/**
 * Makes a folder with those above it. The `recursive` of Node.js tries without end where the system says
 * that there is no such folder though there is, as it does below `/proc`.
 */
import { mkdir, stat } from 'node:fs/promises'
import { dirname } from 'node:path'

/**
 * Rejects with the error of the system; a folder that is there already is fine. Other processes may make
 * the same folders, and those above them, meanwhile.
 */
export async function makeFolder(path: string, mode = 0o777): Promise<void> {
  const first = await captureFailure(path, mode)
  if (first === undefined) return
  const above = dirname(path)
  if (readErrorCode(first) !== 'ENOENT' || above === path) throw first
  await makeFolder(above, mode)
  const second = await captureFailure(path, mode)
  if (second !== undefined) throw second
}

/** Why the folder could not be made; undefined: it is there. */
async function captureFailure(path: string, mode: number): Promise<unknown> {
  try {
    await mkdir(path, mode)
    return undefined
  } catch (error) {
    return (await isFolder(path)) ? undefined : error
  }
}

async function isFolder(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => undefined)
  return found?.isDirectory() === true
}

function readErrorCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}
