/**
 * Makes a folder with those above it. The `recursive` of Node.js tries without end where the system says
 * that there is no such folder though there is, as it does below `/proc`.
 */
import { mkdir, stat } from 'node:fs/promises'
import { dirname } from 'node:path'

/** Rejects with the error of the system; a folder that is there already is fine. */
export async function makeFolder(path: string, mode = 0o777): Promise<void> {
  const above = dirname(path)
  try {
    await mkdir(path, mode)
  } catch (error) {
    const code = codeOf(error)
    if (await isFolder(path)) return
    if (code !== 'ENOENT' || above === path || (await isFolder(above))) throw error
    await makeFolder(above, mode)
    await makeOne(path, mode)
  }
}

/** Another process may make it meanwhile. */
async function makeOne(path: string, mode: number): Promise<void> {
  try {
    await mkdir(path, mode)
  } catch (error) {
    if (codeOf(error) !== 'EEXIST' || !(await isFolder(path))) throw error
  }
}

async function isFolder(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => undefined)
  return found?.isDirectory() === true
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}
