/** Files that a command is given: read, or refused in one sentence that names the file. */
import { constants, fstatSync } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { textOfUtf8 } from '../base/utf8.ts'
import { readBounded, readBoundedStream } from '../adapters/bounded-file.ts'
import { fileFailure } from '../adapters/file-failure.ts'
import { CliError, exitFailure, exitUsage } from './exit.ts'

/** For a name with a separator in it, which is mostly a file with other separators. */
export const oneColumnFlag = [
  '--one-column',
  'the CSV has one column, whose name has a comma or another separator in it',
] as const

/** More than any schema, definition, cell or list of descriptors has; devices have no end. */
const inputBytesMax: number = 64 * 1024 * 1024

/**
 * The text of a small file, or of stdin for `-`, without a byte order mark; throws a usage error, also for what is not
 * UTF-8, with its place.
 */
export async function readInput(path: string): Promise<string> {
  const decoded = textOfUtf8(path === '-' ? await stdinBytes() : await readInputBytes(path))
  // Some programs put a mark before a text that has one.
  if (decoded.ok) return decoded.text.replace(/^\uFEFF+/, '')
  const { line, column } = decoded.at
  const file = path === '-' ? 'stdin' : path
  throw new CliError(`${file}:${line}:${column}: this is not UTF-8`, exitUsage)
}

async function stdinBytes(): Promise<Buffer> {
  // Node.js reads a folder as if it were empty.
  if (isFolder(0)) throw new CliError('stdin cannot be read: it is a folder', exitUsage)
  return bounded('stdin', () => readBoundedStream(process.stdin, inputBytesMax))
}

function isFolder(descriptor: number): boolean {
  try {
    return fstatSync(descriptor).isDirectory()
  } catch {
    // Closed: nothing is read.
    return false
  }
}

/** `what` is said before the name, such as `the secret file`. */
export async function readInputBytes(path: string, what = ''): Promise<Buffer> {
  const name = what === '' ? path : `${what} ${path}`
  return bounded(name, () => readBounded(path, inputBytesMax))
}

async function bounded(name: string, read: () => Promise<Buffer | undefined>): Promise<Buffer> {
  const bytes = await read().catch((error: unknown) => {
    throw cannotBeRead(name, error, exitUsage)
  })
  if (bytes !== undefined) return bytes
  throw new CliError(`${name} cannot be read: it has more than ${inputBytesMax} bytes`, exitUsage)
}

/** How many bytes a file has that is going to be read piece by piece; throws for what is none, or may not be read. */
export async function sizeOfInput(path: string): Promise<number> {
  try {
    const found = await stat(path)
    if (found.isDirectory())
      throw new CliError(`${path} cannot be read: it is a folder`, exitFailure)
    if (!found.isFile()) {
      const text = `${path} cannot be read: it is a pipe or a device, and a load reads files`
      throw new CliError(text, exitFailure)
    }
    await access(path, constants.R_OK)
    return found.size
  } catch (error) {
    throw error instanceof CliError ? error : cannotBeRead(path, error, exitFailure)
  }
}

function cannotBeRead(name: string, error: unknown, exitCode: number): CliError {
  return new CliError(`${name} cannot be read: ${fileFailure(error)}`, exitCode)
}
