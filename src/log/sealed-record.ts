/**
 * A small record that stands in `log/` beside the flushes: a word that names its kind, and its fields, under a
 * checksum of their own. The word tells a record that came to the place of another.
 */
import { asBuffer, crc32 } from '../base/bytes.ts'
import { pack, unpack, type Packable } from '../base/pack.ts'

const crcBytes = 4

export function sealRecord(kind: string | number, fields: readonly Packable[]): Uint8Array {
  const packed = pack([kind, ...fields])
  const bytes = Buffer.allocUnsafe(crcBytes + packed.length)
  bytes.writeUInt32BE(crc32(packed))
  bytes.set(packed, crcBytes)
  return bytes
}

/** The kind, and the fields behind it; undefined for bytes that do not match their checksum. */
export function openRecord(bytes: Uint8Array): readonly unknown[] | undefined {
  if (bytes.length <= crcBytes) return undefined
  const packed = bytes.subarray(crcBytes)
  if (asBuffer(bytes).readUInt32BE() !== crc32(packed)) return undefined
  const fields = unpack(packed)
  return Array.isArray(fields) ? fields : undefined
}

/** The fields of a record of this kind; undefined for any other, and for a damaged one. */
export function openFields(bytes: Uint8Array, kind: string): readonly unknown[] | undefined {
  const fields = openRecord(bytes)
  return fields?.[0] === kind ? fields.slice(1) : undefined
}
