/**
 * CRC-32C (Castagnoli), the checksum of LevelDB's files; Node has only the other CRC-32. Eight bytes
 * a step over eight tables, about as fast as a disk reads. LevelDB stores it masked, since it also
 * takes checksums of bytes that hold checksums.
 */

const polynomial = 0x82f63b78
const sliceBytes = 8

/** Eight tables of 256: table k says what a byte does when k more bytes follow it in a step. */
const table = makeTables()

function makeTables(): Uint32Array {
  const made = new Uint32Array(sliceBytes * 256)
  for (let byte = 0; byte < 256; byte++) {
    let crc = byte
    for (let bit = 0; bit < 8; bit++) crc = (crc & 1) === 0 ? crc >>> 1 : (crc >>> 1) ^ polynomial
    made[byte] = crc
  }
  for (let at = 256; at < made.length; at++) {
    const before = made[at - 256] ?? 0
    made[at] = (before >>> 8) ^ (made[before & 0xff] ?? 0)
  }
  return made
}

/** CRC-32C of `bytes`, going on from `from`. */
export function crc32c(bytes: Uint8Array, from = 0): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const wholeBytes = bytes.length - (bytes.length % sliceBytes)
  let crc = ~from
  for (let at = 0; at < wholeBytes; at += sliceBytes) {
    const low = crc ^ view.getInt32(at, true)
    const high = view.getInt32(at + 4, true)
    crc =
      of(0x700 + (low & 0xff)) ^
      of(0x600 + ((low >>> 8) & 0xff)) ^
      of(0x500 + ((low >>> 16) & 0xff)) ^
      of(0x400 + (low >>> 24)) ^
      of(0x300 + (high & 0xff)) ^
      of(0x200 + ((high >>> 8) & 0xff)) ^
      of(0x100 + ((high >>> 16) & 0xff)) ^
      of(high >>> 24)
  }
  return ~withTail(crc, bytes.subarray(wholeBytes)) >>> 0
}

function of(index: number): number {
  return table[index] ?? 0
}

function withTail(from: number, bytes: Uint8Array): number {
  let crc = from
  for (const byte of bytes) crc = (crc >>> 8) ^ of((crc ^ byte) & 0xff)
  return crc
}

/** How LevelDB stores a checksum. */
export function masked(crc: number): number {
  return (((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0
}

/** How long the beginning of `bytes`, of one byte or more, is that has this masked checksum. */
export function findPrefix(bytes: Uint8Array, maskedCrc: number): number | undefined {
  let crc = ~0
  for (let at = 0; at < bytes.length; at++) {
    crc = (crc >>> 8) ^ of((crc ^ (bytes[at] ?? 0)) & 0xff)
    if (masked(~crc >>> 0) === maskedCrc) return at + 1
  }
  return undefined
}
