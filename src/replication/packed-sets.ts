/**
 * The writes of the last entries of a group, as bytes: first in, first out. Most of it is never looked at,
 * and a few objects for each commit of each group are most of what a busy node would keep in memory, and have
 * its garbage collector go through.
 *
 *   entry   length 4 · keys 4 · position 8 · timestamp 8 · sets 4 · each set
 *   set     sequence 8 · length of the session's name 4 · keys 4 · the name · each key: length 4, bytes
 */
import { assert } from '../base/assert.ts'
import { readCount, writeCount } from '../base/bytes.ts'
import type { Position, Timestamp } from '../base/ids.ts'

/** An intent, as far as its name goes. */
export interface Writer {
  readonly session: string
  readonly sequence: number
}

/** The keys that one transaction wrote, as latin1 text. */
export interface WriteSet {
  readonly by: Writer
  readonly keys: readonly string[]
}

export interface EntryWriteSets {
  readonly position: Position
  readonly timestamp: Timestamp
  readonly sets: readonly WriteSet[]
}

export interface PackedEntry extends EntryWriteSets {
  /** Of all sets. */
  readonly keyCount: number
}

const entryHeadBytes = 28
const setHeadBytes = 16
const keyHeadBytes = 4
/** Bytes of one character of a session's name, at most. */
const charBytesMax = 3
const firstBytes = 512
/**
 * The spare room of a new buffer, as a part of its content. The content moves to the front when entries have used the room
 * up: a push copies four to eight times its own bytes. A node may have 20,000 such buffers, so more room would cost it more.
 */
const sparePart = 1 / 4
/** A buffer is given up for a smaller one where more than half of it would be neither content nor spare room. */
const lengthMost = 2

export class PackedSets {
  #bytes: Buffer = Buffer.alloc(0)
  #start = 0
  #end = 0
  #size = 0

  /** Entries. */
  get size(): number {
    return this.#size
  }

  /** Bytes of memory that the entries take, spare room included. */
  get heldBytes(): number {
    return this.#bytes.length
  }

  /** Of the oldest entry; there is one. */
  get oldestTimestamp(): Timestamp {
    return readCount(this.#bytes, this.#start + 16)
  }

  push({ position, timestamp, sets }: EntryWriteSets, keyCount: number): void {
    this.#makeRoom(mostBytes(sets))
    const bytes = this.#bytes
    const start = this.#end
    bytes.writeUInt32BE(keyCount, start + 4)
    writeCount(bytes, position, start + 8)
    writeCount(bytes, timestamp, start + 16)
    bytes.writeUInt32BE(sets.length, start + 24)
    let at = start + entryHeadBytes
    for (const one of sets) at = writeSet(bytes, one, at)
    assert(at <= bytes.length, 'replication: a write set is longer than its room')
    bytes.writeUInt32BE(at - start, start)
    this.#end = at
    this.#size += 1
  }

  /** All of them, the oldest first. */
  *entries(): Iterable<PackedEntry> {
    for (let at = this.#start; at < this.#end; at += this.#bytes.readUInt32BE(at)) {
      yield readEntry(this.#bytes, at)
    }
  }

  clear(): void {
    this.#start = this.#end
    this.#size = 0
  }

  /** Takes the oldest entry off, without a look at what it wrote. */
  drop(): { readonly position: Position; readonly keyCount: number } {
    assert(this.#size > 0, 'replication: nothing is packed')
    const bytes = this.#bytes
    const start = this.#start
    this.#start += bytes.readUInt32BE(start)
    assert(this.#start <= this.#end, 'replication: packed write sets end beyond their bytes')
    this.#size -= 1
    return { position: readCount(bytes, start + 8), keyCount: bytes.readUInt32BE(start + 4) }
  }

  /** Moves the content to the front: of this buffer, where that leaves half of the spare room at least, or of another. */
  #makeRoom(more: number): void {
    const { length } = this.#bytes
    if (this.#end + more <= length) return
    const used = this.#end - this.#start
    const needed = used + more
    const wanted = Math.max(firstBytes, Math.ceil(needed * (1 + sparePart)))
    const fits = needed * (1 + sparePart / 2) <= length && length <= wanted * lengthMost
    const to = fits ? this.#bytes : Buffer.allocUnsafeSlow(wanted)
    this.#bytes.copy(to, 0, this.#start, this.#end)
    this.#bytes = to
    this.#start = 0
    this.#end = used
  }
}

function mostBytes(sets: readonly WriteSet[]): number {
  let bytes = entryHeadBytes
  for (const { by, keys } of sets) {
    bytes += setHeadBytes + charBytesMax * by.session.length
    for (const { length } of keys) bytes += keyHeadBytes + length
  }
  return bytes
}

function readEntry(bytes: Buffer, start: number): PackedEntry {
  const sets: WriteSet[] = []
  let at = start + entryHeadBytes
  for (let left = bytes.readUInt32BE(start + 24); left > 0; left--) at = readSet(bytes, at, sets)
  return {
    position: readCount(bytes, start + 8),
    timestamp: readCount(bytes, start + 16),
    sets,
    keyCount: bytes.readUInt32BE(start + 4),
  }
}

function writeSet(bytes: Buffer, { by, keys }: WriteSet, start: number): number {
  writeCount(bytes, by.sequence, start)
  const nameBytes = bytes.write(by.session, start + setHeadBytes, 'utf8')
  bytes.writeUInt32BE(nameBytes, start + 8)
  bytes.writeUInt32BE(keys.length, start + 12)
  let at = start + setHeadBytes + nameBytes
  for (const key of keys) {
    bytes.writeUInt32BE(key.length, at)
    at += keyHeadBytes
    at += bytes.write(key, at, 'latin1')
  }
  return at
}

/** Returns where the next one begins. */
function readSet(bytes: Buffer, start: number, sets: WriteSet[]): number {
  const sequence = readCount(bytes, start)
  let at = start + setHeadBytes + bytes.readUInt32BE(start + 8)
  const session = bytes.toString('utf8', start + setHeadBytes, at)
  const keys: string[] = []
  for (let left = bytes.readUInt32BE(start + 12); left > 0; left--) {
    const from = at + keyHeadBytes
    at = from + bytes.readUInt32BE(at)
    keys.push(bytes.toString('latin1', from, at))
  }
  sets.push({ by: { session, sequence }, keys })
  return at
}
