/**
 * How much of a .gz is sound (RFC 1952). Most damaged data decompresses without complaint, to other bytes
 * than were written; only the checksum at the end of a member shows it. A loaded row stays for good, so the
 * loader reads a file through before it acts on any of it. It takes the whole members, and of a file that
 * just ends early the part before its end.
 */
import { createReadStream } from 'node:fs'
import { open, type FileHandle } from 'node:fs/promises'
import { crc32, createInflateRaw } from 'node:zlib'
import { UnusableFile } from './unusable-file.ts'

export interface SoundPart {
  /** How many bytes from the start of the file are reliable. */
  readonly through: number
  /** Why that is not all; undefined: the file is whole, or only ends early. */
  readonly damage: string | undefined
}

const trailerBytes = 8
/** A longer header names a file whose name is longer than any. */
const headerBytesMax: number = 64 * 1024
/** zlib's lengths are of 32 bits. */
const lengthModulus = 2 ** 32

/** Reads all of the file. Rejects when it cannot be read, or is no .gz at all. */
export async function measureSoundPart(path: string): Promise<SoundPart> {
  const file = await open(path, 'r')
  try {
    const { size } = await file.stat()
    for (let at = 0; at < size;) {
      const member = await memberAt(file, path, at, size)
      if (member.kind === 'damaged') return { through: at, damage: member.reason }
      // Its checksum is missing, and nothing else is wrong with it; or zeros fill the file up.
      if (member.kind !== 'whole') break
      at = member.end
    }
    return { through: size, damage: undefined }
  } finally {
    await file.close()
  }
}

type Member =
  | { readonly kind: 'whole'; readonly end: number }
  | { readonly kind: 'padding' | 'cut' }
  | { readonly kind: 'damaged'; readonly reason: string }

const cut = { kind: 'cut' } as const

async function memberAt(file: FileHandle, path: string, at: number, size: number): Promise<Member> {
  const header = await read(file, at, Math.min(headerBytesMax, size - at))
  // Tapes and some programs fill files up.
  if (at > 0 && header[0] === 0) return { kind: 'padding' }
  const dataAt = headerEnd(header)
  if (dataAt === 'none') {
    if (at === 0) throw new UnusableFile('its name ends in .gz, and it is not packed by gzip')
    const where = `behind its first ${at} bytes comes what is no .gz`
    return { kind: 'damaged', reason: `the .gz is damaged: ${where}` }
  }
  if (dataAt === 'cut' || at + dataAt >= size) return cut
  const inflated = await inflate(path, at + dataAt)
  if (inflated.kind !== 'whole') return inflated
  const trailer = await read(file, inflated.end, trailerBytes)
  if (trailer.length < trailerBytes) return cut
  const isSound =
    trailer.readUInt32LE(0) === inflated.checksum &&
    trailer.readUInt32LE(4) === inflated.bytes % lengthModulus
  if (!isSound) return { kind: 'damaged', reason: 'the .gz is damaged: a checksum does not fit' }
  return { kind: 'whole', end: inflated.end + trailerBytes }
}

type Inflated =
  | {
      readonly kind: 'whole'
      readonly bytes: number
      readonly checksum: number
      readonly end: number
    }
  | (Member & { readonly kind: 'cut' | 'damaged' })

async function inflate(path: string, from: number): Promise<Inflated> {
  const source = createReadStream(path, { start: from })
  const inflater = createInflateRaw()
  let [bytes, checksum] = [0, 0]
  const failed = (error: NodeJS.ErrnoException): Inflated =>
    error.code === 'Z_BUF_ERROR'
      ? cut
      : { kind: 'damaged', reason: `the .gz is damaged (${error.message})` }
  try {
    return await new Promise<Inflated>((resolve, reject) => {
      source.on('error', reject)
      inflater.on('error', (error: NodeJS.ErrnoException) => resolve(failed(error)))
      inflater.on('data', (piece: Buffer) => {
        bytes += piece.length
        checksum = crc32(piece, checksum)
      })
      inflater.on('end', () => {
        resolve({ kind: 'whole', bytes, checksum, end: from + inflater.bytesWritten })
      })
      source.pipe(inflater)
    })
  } finally {
    source.destroy()
    inflater.destroy()
  }
}

const [hasChecksum, hasExtra, hasName, hasComment] = [2, 4, 8, 16]

/** Where the compressed data begin, in a header that begins with these bytes. */
function headerEnd(bytes: Buffer): number | 'none' | 'cut' {
  const magic = [0x1f, 0x8b, 8]
  if (magic.some((byte, place) => place < bytes.length && bytes[place] !== byte)) return 'none'
  const fixedBytes = 10
  if (bytes.length < fixedBytes) return 'cut'
  const flags = bytes[3] ?? 0
  let at = fixedBytes
  if ((flags & hasExtra) !== 0) {
    if (bytes.length < at + 2) return 'cut'
    at += 2 + bytes.readUInt16LE(at)
  }
  for (const flag of [hasName, hasComment]) {
    if ((flags & flag) === 0) continue
    const end = bytes.indexOf(0, at)
    if (end < 0) return 'cut'
    at = end + 1
  }
  return (flags & hasChecksum) === 0 ? at : at + 2
}

async function read(file: FileHandle, at: number, length: number): Promise<Buffer> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, at)
  return buffer.subarray(0, bytesRead)
}
