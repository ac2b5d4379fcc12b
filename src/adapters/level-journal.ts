/**
 * LevelDB's log format, which its logs (`*.log`) and its list of tables (`MANIFEST-*`) are written in:
 * blocks of 32 KiB with fragments of records, each behind a checksum, a length and a kind.
 *
 * LevelDB passes over what does not match, and over the rest of that block, without a word. A writer
 * that died leaves such a place too, but only at the end: every record is synced before the next one
 * is begun, so damage is sure where
 * - a later record begins soundly, or
 * - a checksum fits another length than the one beside it, which it does not cover.
 * All else is a torn end, which is legal. A damaged last record may look like one.
 */
import { crc32c, masked, findPrefix } from './crc32c.ts'
import type { Damage } from './level-table.ts'
import type { PacedFile } from './paced-file.ts'

export interface Journal {
  /** Records that begin soundly. */
  readonly records: number
  /** Where the end is torn, if it is. */
  readonly tornAt: number | undefined
  readonly damage: Damage | undefined
}

/** Takes one fragment of a record, in order; whole records have one that is first and last. */
export type OnFragment = (fragment: Fragment) => void

export interface Fragment {
  /** Good until the call returns. */
  readonly bytes: Uint8Array
  readonly isFirst: boolean
  readonly isLast: boolean
}

const blockBytes = 32 * 1024
const headerBytes = 7
const kinds = { full: 1, first: 2, last: 4 } as const

/** A sound fragment, and where the next one begins. */
interface Found {
  readonly fragment: Fragment
  readonly end: number
}

/** Reads a whole journal; `onFragment` is called up to the first bad place only. */
export async function readJournal(
  file: PacedFile,
  onFragment: OnFragment = () => undefined,
): Promise<Journal> {
  let records = 0
  let tornAt: number | undefined
  let isWithin = false
  for (let start = 0; start < file.size; start += blockBytes) {
    const block = await file.at(start, blockBytes)
    for (let at = 0; hasMore(block, at);) {
      const found = fragmentAt(block, at)
      if (found === undefined) {
        const isFirstBad = tornAt === undefined
        if (isFirstBad && soundByOtherLength(block, at) !== undefined) {
          return damaged(records, start + at)
        }
        tornAt ??= start + at
        // Its length may be right; a second bad place in a block ends what can be made out.
        at = isFirstBad ? endAt(block, at) : block.length
        continue
      }
      if (found.fragment.isFirst) records += 1
      if (found.fragment.isFirst && tornAt !== undefined) return damaged(records, tornAt)
      if (tornAt === undefined) onFragment(found.fragment)
      isWithin = !found.fragment.isLast
      at = found.end
    }
  }
  if (isWithin) tornAt ??= file.size
  return { records, tornAt, damage: undefined }
}

function damaged(records: number, offset: number): Journal {
  const what = 'a record does not match its checksum, and it is not a torn end'
  return { records, tornAt: undefined, damage: { offset, what } }
}

/**
 * Called in order with every record of a damaged journal, whole or as it is: undefined for one or more that
 * cannot be made out. A checksum that fails says nothing of the length beside it, which mostly is right. The
 * caller, which knows the form of records, judges their content. `isNewest`: the end of this flush may be torn.
 */
export async function salvageJournal(
  file: PacedFile,
  isNewest: boolean,
  onRecord: (bytes: Uint8Array | undefined) => void,
): Promise<void> {
  const records = new Reassembly(onRecord)
  for (let start = 0; start < file.size; start += blockBytes) {
    const block = await file.at(start, blockBytes)
    for (let at = 0; hasMore(block, at);) {
      const found = fragmentAt(block, at) ?? soundByOtherLength(block, at) ?? claimedAt(block, at)
      records.add(found?.fragment)
      at = found?.end ?? nextSoundAt(block, at)
    }
  }
  records.end(isNewest)
}

/** The fragment that stands there if the length is right; undefined where it cannot be right. */
function claimedAt(block: Uint8Array, at: number): Found | undefined {
  const [end, kind = 0] = [endAt(block, at), block[at + 6]]
  const isPossible = end <= block.length && end > at + headerBytes && kind > 0 && kind <= kinds.last
  return isPossible ? foundAt(block, at, end) : undefined
}

/** Where a sound fragment begins after `at`; the end of the block, if none does. */
function nextSoundAt(block: Uint8Array, at: number): number {
  for (let next = at + 1; hasMore(block, next); next++) {
    if (claimedAt(block, next) !== undefined && fragmentAt(block, next) !== undefined) return next
  }
  return block.length
}

/** Puts fragments together to records. */
class Reassembly {
  readonly #onRecord: (bytes: Uint8Array | undefined) => void
  #pieces: Uint8Array[] = []
  /** Something was passed over since the last record. */
  #isBroken = false

  constructor(onRecord: (bytes: Uint8Array | undefined) => void) {
    this.#onRecord = onRecord
  }

  add(fragment: Fragment | undefined): void {
    const isWithin = this.#pieces.length > 0
    if (fragment === undefined || fragment.isFirst === isWithin) {
      this.#pieces = []
      this.#isBroken = true
    }
    if (fragment === undefined || (!fragment.isFirst && this.#pieces.length === 0)) return
    this.#tellBroken()
    this.#pieces.push(Uint8Array.from(fragment.bytes))
    if (!fragment.isLast) return
    this.#onRecord(Buffer.concat(this.#pieces))
    this.#pieces = []
  }

  /**
   * A record that is broken at the end of the newest journal was never whole, as far as the journal shows.
   */
  end(isNewest: boolean): void {
    if (this.#pieces.length > 0) this.#isBroken = true
    if (!isNewest) this.#tellBroken()
  }

  #tellBroken(): void {
    if (this.#isBroken) this.#onRecord(undefined)
    this.#isBroken = false
  }
}

/** A rest that is shorter than a header, at the end of a whole block, is filled with zeros. */
function hasMore(block: Uint8Array, at: number): boolean {
  return at < block.length && blockBytes - at >= headerBytes
}

/** `undefined` for what does not match its checksum, or goes on beyond the block or the file. */
function fragmentAt(block: Uint8Array, at: number): Found | undefined {
  const end = endAt(block, at)
  if (end > block.length || masked(crc32c(block.subarray(at + 6, end))) !== crcAt(block, at)) {
    return undefined
  }
  return foundAt(block, at, end)
}

function foundAt(block: Uint8Array, at: number, end: number): Found {
  const kind = block[at + 6]
  const isFirst = kind === kinds.full || kind === kinds.first
  const isLast = kind === kinds.full || kind === kinds.last
  return { end, fragment: { bytes: block.subarray(at + headerBytes, end), isFirst, isLast } }
}

function endAt(block: Uint8Array, at: number): number {
  const [low = 0, high = 0] = block.subarray(at + 4)
  return at + headerBytes + low + 256 * high
}

function crcAt(block: Uint8Array, at: number): number {
  const [a = 0, b = 0, c = 0, d = 0] = block.subarray(at)
  return (a | (b << 8) | (c << 16) | (d << 24)) >>> 0
}

/** The fragment at `at` when its checksum was taken over another length than it says there. */
function soundByOtherLength(block: Uint8Array, at: number): Found | undefined {
  const length = findPrefix(block.subarray(at + 6), crcAt(block, at))
  return length === undefined ? undefined : foundAt(block, at, at + 6 + length)
}
