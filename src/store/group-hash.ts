/**
 * The hash of a group's newest rows: the sum modulo 2^128 of a hash of each row. A batch adds what it writes and subtracts
 * what that supersedes, so that it costs the rows of the batch, whatever the size of the group.
 *
 * HASH-1  It counts exactly the newest rows of the position beside it: all replicas have the same one there, and a
 *         recount gives it.
 *
 * A row counts with its key, its value and the timestamp of the entry that wrote it, which is the same at all replicas
 * (LOG-2). History does not count, and neither do its own collection, flushes, listings: these are other ones at each node. It tells
 * damage and faults, and does not withstand someone who makes up rows.
 */
import { sha1Text, writeCount } from '../base/bytes.ts'
import type { Timestamp } from '../base/ids.ts'

/** 16 bytes as latin1 text. */
export type GroupHash = string

export const hashBytes = 16
/** Of a group without a row. */
export const hashOfNothing: GroupHash = '\0'.repeat(hashBytes)

const headBytes = 12
const limbCount = 4
const twoTo32 = 2 ** 32
/** Rows up to here are put together in the same memory. */
const scratch = Buffer.alloc(64 * 1024)

export class RowsSum {
  /** The highest first. */
  readonly #limbs: number[]

  constructor(from: GroupHash = hashOfNothing) {
    this.#limbs = [limbOf(from, 0), limbOf(from, 1), limbOf(from, 2), limbOf(from, 3)]
  }

  get hash(): GroupHash {
    const bytes = Buffer.allocUnsafe(hashBytes)
    for (let limb = 0; limb < limbCount; limb++) {
      bytes.writeUInt32BE(this.#limbs[limb] ?? 0, 4 * limb)
    }
    return bytes.toString('latin1')
  }

  /** A row that is there from now on. */
  add(key: Uint8Array, timestamp: Timestamp, value: Uint8Array): void {
    this.#move(hashOfRow(key, timestamp, value), 1)
  }

  /** A row that was counted, and is not there any more. */
  subtract(key: Uint8Array, timestamp: Timestamp, value: Uint8Array): void {
    this.#move(hashOfRow(key, timestamp, value), -1)
  }

  /** The rows of another sum. */
  addAll(other: GroupHash): void {
    this.#move(other, 1)
  }

  /** By the first 16 characters. */
  #move(hash: string, sign: 1 | -1): void {
    let carry = 0
    for (let limb = limbCount - 1; limb >= 0; limb--) {
      const moved = (this.#limbs[limb] ?? 0) + sign * limbOf(hash, limb) + carry
      carry = Math.floor(moved / twoTo32)
      this.#limbs[limb] = moved - carry * twoTo32
    }
  }
}

function limbOf(hash: string, limb: number): number {
  const at = 4 * limb
  const high = hash.charCodeAt(at) * 256 + hash.charCodeAt(at + 1)
  return high * 65_536 + hash.charCodeAt(at + 2) * 256 + hash.charCodeAt(at + 3)
}

/** Length of the key 4 · timestamp 8 · key · value: no two rows have the same bytes. */
function hashOfRow(key: Uint8Array, timestamp: Timestamp, value: Uint8Array): string {
  const length = headBytes + key.length + value.length
  const bytes = length <= scratch.length ? scratch : Buffer.allocUnsafe(length)
  bytes.writeUInt32BE(key.length, 0)
  writeCount(bytes, timestamp, 4)
  bytes.set(key, headBytes)
  bytes.set(value, headBytes + key.length)
  return sha1Text(bytes.subarray(0, length))
}
