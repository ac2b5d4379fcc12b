/**
 * A file as numbered lines, plain or gzip. Every line of the file comes out, the unreadable ones
 * with a reason; a truncated .gz gives all whole lines before its end, a damaged one those of its sound members, and
 * then says so.
 */
import { createReadStream } from 'node:fs'
import { isUtf8 } from 'node:buffer'
import { createGunzip } from 'node:zlib'
import { measureSoundPart } from './gzip-members.ts'

/** A line by its number in the file, from 1. */
export type Line =
  TextLine | { readonly kind: 'unreadable'; readonly number: number; readonly reason: string }

export interface TextLine {
  readonly kind: 'text'
  readonly number: number
  /** Without its end. */
  readonly text: string
  /** The end that it has, or would have; a quoted field keeps the ends of its lines. */
  readonly ending: '\n' | '\r\n'
}

/** A longer line cannot become a cell; it is skipped without being kept in memory. */
export const lineBytesMax: number = 4 * 1024 * 1024

/** Thrown when a .gz ends early or is damaged; the lines before it have been delivered. */
export class DamagedFile extends Error {
  override readonly name = 'DamagedFile'
}

/** Compressed bytes handed to the decompressor at once, which bounds what comes out at once. */
const chunkBytes = 16 * 1024

/** The file's bytes in pieces; `onRead` hears how many bytes of the file were read so far. */
export async function* readChunks(
  path: string,
  onRead: (bytes: number) => void,
): AsyncGenerator<Buffer> {
  const stream = createReadStream(path, { highWaterMark: chunkBytes })
  let bytes = 0
  for await (const chunk of stream) {
    if (!Buffer.isBuffer(chunk)) continue
    bytes += chunk.length
    onRead(bytes)
    yield chunk
  }
}

/**
 * Decompresses piece by piece. Not a pipeline: a failing pipeline drops what it had decompressed
 * already, and those lines would be missing without a word.
 */
export async function* gunzipChunks(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const gunzip = createGunzip()
  const out: Buffer[] = []
  let failure: Error | undefined
  gunzip.on('data', (piece: Buffer) => out.push(piece))
  gunzip.on('error', (error) => (failure = error))
  const finished = new Promise<void>((resolve) => gunzip.on('close', resolve))
  try {
    for await (const chunk of chunks) {
      // A write that fails may never call back; the stream closes then.
      const written = new Promise<void>((resolve) => gunzip.write(chunk, () => resolve()))
      await Promise.race([written, finished])
      yield* out.splice(0)
      if (failure !== undefined) break
    }
    if (failure === undefined) gunzip.end()
    await finished
    yield* out.splice(0)
  } finally {
    // A reader that has read enough does not come back.
    gunzip.destroy()
  }
  if (failure !== undefined) throw new DamagedFile(gzipFailure(failure), { cause: failure })
}

/**
 * Yields the sound part of a .gz, then throws the damage: the bytes that come out of a damaged member are not
 * those that went in.
 */
export async function* gunzipSound(
  path: string,
  chunks: AsyncIterable<Buffer>,
): AsyncGenerator<Buffer> {
  const { through, damage } = await measureSoundPart(path)
  if (through > 0 || damage === undefined) yield* gunzipChunks(first(through, chunks))
  if (damage !== undefined) throw new DamagedFile(damage)
}

async function* first(bytes: number, chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let left = bytes
  for await (const chunk of chunks) {
    if (left > 0) yield chunk.subarray(0, left)
    left -= chunk.length
  }
}

function gzipFailure(error: Error): string {
  const code = 'code' in error ? error.code : undefined
  if (code === 'Z_BUF_ERROR') return 'the .gz is truncated: it ends in the middle of its data'
  return `the .gz is damaged (${error.message})`
}

/**
 * Cuts pieces into lines, as many at a time as a piece completes. Ends of lines are LF or CR LF; a
 * last line without one counts. When `chunks` throws, the unfinished last line is not delivered:
 * half a line may look like a whole one.
 */
export async function* splitLines(chunks: AsyncIterable<Buffer>): AsyncGenerator<readonly Line[]> {
  const cutter = lineCutter()
  for await (const chunk of chunks) {
    const lines = cutter.push(chunk)
    if (lines.length > 0) yield lines
  }
  const last = cutter.end()
  if (last.length > 0) yield last
}

interface LineCutter {
  push(chunk: Buffer): readonly Line[]
  end(): readonly Line[]
}

function lineCutter(): LineCutter {
  let number = 0
  let pieces: Buffer[] = []
  let length = 0

  function keep(piece: Buffer): void {
    length += piece.length
    if (length <= lineBytesMax) pieces.push(piece)
    else pieces = []
  }
  function finish(): Line {
    number += 1
    const line = toLine(number, length, pieces)
    pieces = []
    length = 0
    return line
  }
  return {
    push: (chunk) => {
      const lines: Line[] = []
      let start = 0
      for (;;) {
        const end = chunk.indexOf(0x0a, start)
        if (end < 0) break
        keep(chunk.subarray(start, end))
        lines.push(finish())
        start = end + 1
      }
      // A copy: the piece may be a small part of a large buffer, or be written over.
      if (start < chunk.length) keep(Buffer.from(chunk.subarray(start)))
      return lines
    },
    end: () => (length > 0 ? [finish()] : []),
  }
}

function toLine(number: number, length: number, pieces: readonly Buffer[]): Line {
  if (length > lineBytesMax) {
    const reason = `the line has ${length} bytes; the most is ${lineBytesMax}`
    return { kind: 'unreadable', number, reason }
  }
  const bytes = pieces.length === 1 && pieces[0] !== undefined ? pieces[0] : Buffer.concat(pieces)
  if (!isUtf8(bytes)) return { kind: 'unreadable', number, reason: 'the line is not UTF-8' }
  const whole = bytes.toString('utf8')
  const hasReturn = whole.endsWith('\r')
  const line = hasReturn ? whole.slice(0, -1) : whole
  // Some programs put a mark before a file that has one.
  const text = number === 1 ? line.replace(/^\uFEFF+/, '') : line
  return { kind: 'text', number, text, ending: hasReturn ? '\r\n' : '\n' }
}
