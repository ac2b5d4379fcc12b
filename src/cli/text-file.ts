/** A file of text, or what comes on stdin, whole: not UTF-8 is refused with its place. */
import { readFile } from 'node:fs/promises'
import { buffer } from 'node:stream/consumers'
import { textOfUtf8 } from '../base/utf8.ts'
import { fileFailure } from '../node/file-failure.ts'
import { CliError, exitUsage } from './exit.ts'

/** `-`: stdin. Without a byte order mark. */
export async function textOfFile(path: string): Promise<string> {
  const bytes = await bytesOf(path)
  const decoded = textOfUtf8(bytes)
  if (decoded.ok) return decoded.text
  const { line, column } = decoded.at
  const file = path === '-' ? 'stdin' : path
  throw new CliError(`${file}:${line}:${column}: this is not UTF-8`, exitUsage)
}

async function bytesOf(path: string): Promise<Uint8Array> {
  try {
    return path === '-' ? await buffer(process.stdin) : await readFile(path)
  } catch (error) {
    throw new CliError(`${path} cannot be read: ${fileFailure(error)}`, exitUsage)
  }
}
