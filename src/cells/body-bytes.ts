/**
 * A body's bytes as they are stored and sent: MessagePack, deflated where that is worth it.
 *
 *   MessagePack as it is                                  its first byte is never 0xc1
 *   0xc1, 1, length of the MessagePack (4 bytes), deflate     0xc1 is a byte that MessagePack never uses
 *
 * The length stands in front, so that what an answer unpacks to is known before anything is unpacked.
 *
 * CELL-6  A body comes back as it was given however it is stored, and the unpacked bytes are bounded.
 */
import { assert } from '../base/assert.ts'
import { asBuffer } from '../base/bytes.ts'
import { deflate, inflate } from '../base/deflate.ts'

const mark = 0xc1
const formatDeflate = 1
const headerBytes = 6

/** Smaller bodies are stored as they are; see SPEC.md for what was measured. */
export const deflatedBodyBytesMin = 1024
const level = 3

/** How to store a MessagePack of a body. */
export function storedBytes(packed: Uint8Array): Uint8Array {
  if (packed.length < deflatedBodyBytesMin) return packed
  const deflated = deflate(packed, level)
  // Less than an eighth saved is not worth unpacking it.
  if (headerBytes + deflated.length > packed.length - packed.length / 8) return packed
  const stored = Buffer.allocUnsafe(headerBytes + deflated.length)
  stored[0] = mark
  stored[1] = formatDeflate
  stored.writeUInt32BE(packed.length, 2)
  stored.set(deflated, headerBytes)
  assert(unpackedBytes(stored) === packed.length, 'CELL-6: a body says another length than it has')
  return stored
}

/** How many bytes of MessagePack stored bytes unpack to, as they say themselves. */
export function unpackedBytes(stored: Uint8Array): number {
  if (!isMarked(stored) || stored.length < headerBytes) return stored.length
  return asBuffer(stored).readUInt32BE(2)
}

/** The MessagePack of stored bytes; undefined when they are damaged or not what they say. */
export function packedBytes(stored: Uint8Array, bytesMax: number): Uint8Array | undefined {
  if (!isMarked(stored)) return stored
  const length = unpackedBytes(stored)
  const isKnown = stored[1] === formatDeflate && stored.length >= headerBytes
  if (!isKnown || length > bytesMax || length <= stored.length) return undefined
  const packed = inflate(stored.subarray(headerBytes), length)
  return packed?.length === length ? packed : undefined
}

function isMarked(stored: Uint8Array): boolean {
  return stored[0] === mark
}
