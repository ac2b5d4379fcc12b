/**
 * One table of LevelDB, every byte of it: blocks lie one behind another without a gap, each with a
 * checksum of its own, and the footer is fixed by where they end. LevelDB itself reads them unchecked.
 *
 *   data blocks · filter · meta index (where the filter is) · index (where the data is) · footer
 */
import { crc32c, masked } from './crc32c.ts'
import type { KeySpan } from '../ports/storage.ts'
import { concerned } from './level-spans.ts'
import type { PacedFile } from './paced-file.ts'
import {
  blockTrailerBytes,
  compressions,
  decodedBytesMax,
  decodeFooter,
  decodeIndex,
  decompress,
  footerBytes,
  type Footer,
  type Handle,
  type IndexEntry,
} from './level-format.ts'

/** Where a file is not what it was written as. */
export interface Damage {
  readonly offset: number
  readonly what: string
}

/**
 * The first damage found in a table of `sizeExpected` bytes. `spans`: it checks the index blocks, and the
 * blocks that may hold such keys. An empty list: it checks only the length of the table.
 */
export async function checkTable(
  file: PacedFile,
  sizeExpected: number,
  spans: readonly KeySpan[] | 'all' = 'all',
): Promise<Damage | undefined> {
  const { size } = file
  if (size !== sizeExpected) {
    return { offset: size, what: `it has ${size} bytes and was written with ${sizeExpected}` }
  }
  if (spans.length === 0) return undefined
  const offset = size - footerBytes
  const footer = offset < 0 ? undefined : decodeFooter(await file.at(offset, footerBytes))
  if (footer === undefined) return { offset: Math.max(0, offset), what: 'its footer is damaged' }
  return (await checkIndexes(file, footer)) ?? checkBlocks(file, footer, spans)
}

/** Checks the two blocks before the footer: these say where the others are, so they must be sound first. */
async function checkIndexes(
  file: PacedFile,
  { metaIndex, index }: Footer,
): Promise<Damage | undefined> {
  const isJoined =
    computeEnd(metaIndex) === index.offset && computeEnd(index) === file.size - footerBytes
  if (!isJoined || index.size > decodedBytesMax || metaIndex.size > decodedBytesMax) {
    return { offset: file.size - footerBytes, what: 'its footer is damaged' }
  }
  return (await checkBlock(file, metaIndex)) ?? checkBlock(file, index)
}

async function checkBlocks(
  file: PacedFile,
  footer: Footer,
  spans: readonly KeySpan[] | 'all',
): Promise<Damage | undefined> {
  const data = await readEntries(file, footer.index)
  const meta = await readEntries(file, footer.metaIndex)
  if (data === undefined) return { offset: footer.index.offset, what: 'its index is damaged' }
  if (meta === undefined) {
    return { offset: footer.metaIndex.offset, what: 'its meta index is damaged' }
  }
  // The filter is one of `meta`.
  const asked = new Set([...(spans === 'all' ? data : concerned(data, spans)), ...meta])
  let end = 0
  for (const entry of [...data, ...meta]) {
    const { handle } = entry
    if (handle.offset !== end) return { offset: end, what: 'no block is listed here' }
    const damage = asked.has(entry) ? await checkBlock(file, handle) : undefined
    if (damage !== undefined) return damage
    end = computeEnd(handle)
  }
  const isWhole = end === footer.metaIndex.offset
  return isWhole ? undefined : { offset: end, what: 'no block is listed here' }
}

function computeEnd({ offset, size }: Handle): number {
  return offset + size + blockTrailerBytes
}

async function checkBlock(file: PacedFile, handle: Handle): Promise<Damage | undefined> {
  const { offset } = handle
  if (computeEnd(handle) > file.size) return { offset, what: 'a block ends beyond the file' }
  const crc = await checksum(file, offset, handle.size + 1)
  const trailer = await file.at(offset + handle.size, blockTrailerBytes)
  if (trailer.length < blockTrailerBytes) return { offset, what: 'a block cannot be read' }
  const [compression = 0] = trailer
  const view = new DataView(trailer.buffer, trailer.byteOffset, trailer.byteLength)
  if (crc === undefined || masked(crc) !== view.getUint32(1, true)) {
    return { offset, what: 'a block does not match its checksum' }
  }
  if (compression > compressions.snappy) return { offset, what: 'a block of an unknown kind' }
  return undefined
}

/** A block is at most as large as its file: it is never held whole. */
async function checksum(
  file: PacedFile,
  offset: number,
  length: number,
): Promise<number | undefined> {
  let crc = 0
  for (let at = 0; at < length;) {
    const piece = await file.some(offset + at, length - at)
    if (piece.length === 0) return undefined
    crc = crc32c(piece, crc)
    at += piece.length
  }
  return crc
}

/** The entries that a sound block lists. */
async function readEntries(
  file: PacedFile,
  { offset, size }: Handle,
): Promise<readonly IndexEntry[] | undefined> {
  const stored = Buffer.alloc(size + 1)
  for (let at = 0; at < stored.length;) {
    const piece = await file.some(offset + at, stored.length - at)
    if (piece.length === 0) return undefined
    stored.set(piece, at)
    at += piece.length
  }
  const contents = stored.subarray(0, size)
  const block = stored[size] === compressions.snappy ? decompress(contents) : contents
  return block === undefined ? undefined : decodeIndex(block)
}
