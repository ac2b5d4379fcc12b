/** One pass over the flushes of a log, in order: each as it is read, and what the reader makes of its header. */
import type { Journal } from '../ports/journal.ts'
import { decodeFlush, type FlushHeader } from '../log/flush.ts'

export interface ReadFlush {
  readonly number: number
  readonly bytes: Uint8Array
  /** Undefined: its checksum does not match, or what it covers is no header. */
  readonly header: FlushHeader | undefined
}

/** From flush `number` on. */
export async function* readFlushes(
  log: Pick<Journal, 'scan'>,
  number: number,
): AsyncGenerator<ReadFlush, undefined> {
  for await (const flushes of log.scan(number)) {
    for (const flush of flushes) yield { ...flush, header: decodeHeader(flush.bytes) }
  }
  return undefined
}

/** A header with a checksum that matches and content that a writer never makes is damage as well. */
export function decodeHeader(bytes: Uint8Array): FlushHeader | undefined {
  try {
    return decodeFlush(bytes)
  } catch (error) {
    if (error instanceof Error) return undefined
    throw error
  }
}
