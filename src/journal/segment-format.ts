/**
 * The bytes of a segment file. A header, then frames, each from the next multiple of `alignBytes` on:
 *
 *   header  magic 8 · format 4 · journal 8 · salt 8 · sequence 8 · length of the file 8 · number of the first frame 8
 *           · where the segment before ended 8 · CRC of its last frame 4 · damaged from 8 · mended through 8 · zeros
 *           · CRC 4
 *   frame   head: magic 4 · CRC 4 of all that follows, the table included · salt 8 · sequence 4 · kind 4 · number 8
 *           · CRC of the frame before 4 · parts 4 · length of the table 4 · zeros 4 · length of the values 8 · zeros 8
 *           table: a part each: kind 1 · number of the flush 8, or length of the name 2 and the name · length 4 · CRC 4
 *           values: one behind the other
 *
 * A frame is one write. Its number is one more than that of the frame before, over all segments; "the CRC of a frame" is that
 * of its head and table, and "the frame before" the first one is the header. Numbers are big-endian.
 */
import { assert, present } from '../base/assert.ts'
import { asBuffer, crc32, readCount, writeCount } from '../base/bytes.ts'

export const segmentFormat = 1
/** Also where the first frame begins. */
export const headerBytes = 128
/** Frames begin at multiples of it: a search for the next one looks only there. */
export const alignBytes = 64
export const headBytes = 64
/** The most that a frame's table may take: what a head says before its CRC is checked is not believed. */
export const tableBytesMax: number = 64 * 1024
export const nameBytesMax = 256
export const saltBytes = 8

const headerMagic = Buffer.from('TRLSEGMT', 'latin1')
export const frameMagic = 0x7472_4652
const kindCodes = { write: 1, checkpoint: 2 } as const
const partCodes = { flush: 1, record: 2 } as const
const headerCrcAt = headerBytes - 4
const recordEntryBytes = 11
const flushEntryBytes = 17

export interface SegmentHeader {
  readonly format: number
  /** Drawn when the journal was made: hexadecimal, as `salt`. */
  readonly journal: string
  /** Drawn for each use of a file as a segment: frames of an earlier use have another one. */
  readonly salt: string
  /** From 1, without a gap. */
  readonly sequence: number
  /** Of the whole file. */
  readonly fileBytes: number
  readonly firstNumber: number
  /** Of the segment before; zeros in the first one. */
  readonly previousEnd: number
  readonly previousCrc: number
  /** The first segment with damage that is not mended yet; 0: there is none. */
  readonly damagedFrom: number
  /** Damage in segments up to this one was mended as far as it could be. */
  readonly mendedThrough: number
}

export function encodeHeader(header: SegmentHeader): Buffer {
  const bytes = Buffer.alloc(headerBytes)
  headerMagic.copy(bytes)
  bytes.writeUInt32BE(header.format, 8)
  bytes.write(header.journal, 12, 'hex')
  bytes.write(header.salt, 20, 'hex')
  writeCount(bytes, header.sequence, 28)
  writeCount(bytes, header.fileBytes, 36)
  writeCount(bytes, header.firstNumber, 44)
  writeCount(bytes, header.previousEnd, 52)
  bytes.writeUInt32BE(header.previousCrc, 60)
  writeCount(bytes, header.damagedFrom, 64)
  writeCount(bytes, header.mendedThrough, 72)
  bytes.writeUInt32BE(crc32(bytes.subarray(0, headerCrcAt)), headerCrcAt)
  return bytes
}

/** The header's own CRC: what its first frame names as the one before it. */
export function headerCrc(bytes: Uint8Array): number {
  return asBuffer(bytes).readUInt32BE(headerCrcAt)
}

/** Undefined for bytes that are no header, or damaged. Only `format` counts where it is an unknown one. */
export function decodeHeader(from: Uint8Array): SegmentHeader | undefined {
  const bytes = asBuffer(from)
  if (bytes.length < headerBytes || !bytes.subarray(0, 8).equals(headerMagic)) return undefined
  if (crc32(bytes.subarray(0, headerCrcAt)) !== headerCrc(bytes)) return undefined
  return {
    format: bytes.readUInt32BE(8),
    journal: bytes.toString('hex', 12, 20),
    salt: bytes.toString('hex', 20, 28),
    sequence: readCount(bytes, 28),
    fileBytes: readCount(bytes, 36),
    firstNumber: readCount(bytes, 44),
    previousEnd: readCount(bytes, 52),
    previousCrc: bytes.readUInt32BE(60),
    damagedFrom: readCount(bytes, 64),
    mendedThrough: readCount(bytes, 72),
  }
}

export type FrameKind = keyof typeof kindCodes

/** A value of a frame before it is written: of a flush by its number, or of a record by its name. */
export interface NewPart {
  readonly flush?: number
  readonly name?: string
  readonly value: Uint8Array
}

/** The same as a frame on the disk tells it. */
export interface Part {
  readonly flush?: number
  readonly name?: string
  /** In the file. */
  readonly offset: number
  readonly length: number
  readonly crc: number
}

export interface FrameStamp {
  readonly salt: string
  readonly sequence: number
  readonly kind: FrameKind
  readonly number: number
  readonly previousCrc: number
}

export interface Frame extends FrameStamp {
  readonly offset: number
  /** Where its values end; the next frame begins at the next multiple of `alignBytes`. */
  readonly end: number
  readonly crc: number
  readonly parts: readonly Part[]
}

/** Head and table of a frame at `offset`, and the frame as a reader will find it. */
export function encodeFrame(
  stamp: FrameStamp,
  values: readonly NewPart[],
  offset: number,
): { readonly head: Buffer; readonly frame: Frame } {
  const table = Buffer.concat(values.map(encodeEntry))
  assert(table.length <= tableBytesMax, 'JRN-2: the table of a frame has a bound')
  const head = Buffer.alloc(headBytes + table.length)
  table.copy(head, headBytes)
  head.writeUInt32BE(frameMagic, 0)
  head.write(stamp.salt, 8, 'hex')
  head.writeUInt32BE(stamp.sequence, 16)
  head.writeUInt32BE(kindCodes[stamp.kind], 20)
  writeCount(head, stamp.number, 24)
  head.writeUInt32BE(stamp.previousCrc, 32)
  head.writeUInt32BE(values.length, 36)
  head.writeUInt32BE(table.length, 40)
  writeCount(head, bytesOf(values), 48)
  head.writeUInt32BE(crc32(head.subarray(8)), 4)
  const frame = decodeFrame(head, offset)
  return { head, frame: present(frame, 'JRN-2: a frame is read as it was written') }
}

/** The bytes that a frame of these values takes up in a segment. */
export function frameBytes(values: readonly NewPart[]): number {
  const table = values.reduce((sum, part) => sum + entryBytes(part), 0)
  return aligned(headBytes + table + bytesOf(values))
}

export function entryBytes({ name }: NewPart): number {
  return name === undefined ? flushEntryBytes : recordEntryBytes + Buffer.byteLength(name)
}

export function aligned(offset: number): number {
  return Math.ceil(offset / alignBytes) * alignBytes
}

function bytesOf(values: readonly NewPart[]): number {
  return values.reduce((sum, { value }) => sum + value.length, 0)
}

function encodeEntry(part: NewPart): Buffer {
  const { flush, name = '', value } = part
  const entry = Buffer.alloc(entryBytes(part))
  if (flush === undefined) {
    entry[0] = partCodes.record
    entry.writeUInt16BE(entry.length - recordEntryBytes, 1)
    entry.write(name, 3)
  } else {
    entry[0] = partCodes.flush
    writeCount(entry, flush, 1)
  }
  entry.writeUInt32BE(value.length, entry.length - 8)
  entry.writeUInt32BE(crc32(value), entry.length - 4)
  return entry
}

/** How long head and table are as the head says, which nothing vouches for; undefined: it is no head. */
export function claimedHeadBytes(head: Uint8Array): number | undefined {
  const bytes = asBuffer(head)
  if (bytes.length < headBytes || bytes.readUInt32BE(0) !== frameMagic) return undefined
  const length = bytes.readUInt32BE(40)
  return length > tableBytesMax ? undefined : headBytes + length
}

/** The frame whose head and table stand in `from`, which lies at `offset` in its file; undefined: no sound one. */
export function decodeFrame(from: Uint8Array, offset: number): Frame | undefined {
  const length = claimedHeadBytes(from)
  if (length === undefined || from.length < length) return undefined
  const bytes = asBuffer(from).subarray(0, length)
  if (crc32(bytes.subarray(8)) !== bytes.readUInt32BE(4)) return undefined
  const kind = kindOf(bytes.readUInt32BE(20))
  const parts = decodeTable(bytes, offset)
  if (kind === undefined || parts.length !== bytes.readUInt32BE(36)) return undefined
  return {
    salt: bytes.toString('hex', 8, 16),
    sequence: bytes.readUInt32BE(16),
    kind,
    number: readCount(bytes, 24),
    previousCrc: bytes.readUInt32BE(32),
    offset,
    end: offset + length + readCount(bytes, 48),
    crc: bytes.readUInt32BE(4),
    parts,
  }
}

function kindOf(code: number): FrameKind | undefined {
  if (code === kindCodes.write) return 'write'
  return code === kindCodes.checkpoint ? 'checkpoint' : undefined
}

/** The table's CRC has been checked. */
function decodeTable(bytes: Buffer, frameAt: number): readonly Part[] {
  const parts: Part[] = []
  let valueAt = frameAt + bytes.length
  for (let at = headBytes; at < bytes.length;) {
    const isFlush = bytes[at] === partCodes.flush
    const nameBytes = isFlush ? 0 : bytes.readUInt16BE(at + 1)
    const end = at + (isFlush ? flushEntryBytes : recordEntryBytes + nameBytes)
    const length = bytes.readUInt32BE(end - 8)
    const value = { offset: valueAt, length, crc: bytes.readUInt32BE(end - 4) }
    if (isFlush) parts.push({ flush: readCount(bytes, at + 1), ...value })
    else parts.push({ name: bytes.toString('utf8', at + 3, at + 3 + nameBytes), ...value })
    valueAt += length
    at = end
  }
  return parts
}
