/** Flushes read back from the disk, the last few kept: neighbours in a log share them. */
import type { Journal } from '../ports/journal.ts'
import { decodeFlush, isSoundFlush, pieceAt, readPayload, type FlushHeader } from './flush.ts'
import { digestBytesMax } from './flush-ledger.ts'
import { readFlush } from './journal-reads.ts'
import type { Place } from './settled.ts'

/**
 * Bytes of flushes kept; the newest one stays even if it is larger. Twice what one digest covers: a peer
 * that was away asks for group by group, and each has its entries in nearly all of those flushes.
 */
const keptBytesMax = 2 * digestBytesMax

export class FlushReader {
  readonly #journal: Journal
  /** In order of use, the longest unused first. */
  readonly #kept = new Map<number, Uint8Array>()
  #keptBytes = 0

  constructor(journal: Journal) {
    this.#journal = journal
  }

  /** A copy of the value at `place`, or undefined when the disk no longer holds what was written. */
  read(place: Place): Uint8Array | undefined {
    const payload = this.view(place)
    return payload === undefined ? undefined : Uint8Array.prototype.slice.call(payload)
  }

  /** The same as a view, which keeps the whole flush in memory for as long as it is held. */
  view(place: Place): Uint8Array | undefined {
    const flush = this.#flush(place.flush)
    return flush === undefined ? flush : readPayload(flush, pieceAt(flush, place.index))
  }

  /** The groups and records of a flush, or undefined when the disk no longer gives it. */
  header(number: number): FlushHeader | undefined {
    const flush = this.#flush(number)
    return flush === undefined ? undefined : decodeFlush(flush)
  }

  #flush(number: number): Uint8Array | undefined {
    const kept = this.#kept.get(number)
    if (kept !== undefined) {
      this.#kept.delete(number)
      this.#kept.set(number, kept)
      return kept
    }
    const read = readFlush(this.#journal, number)
    if (read === undefined || read === 'damaged') return undefined
    if (!isSoundFlush(read, number)) return undefined
    this.#kept.set(number, read)
    this.#keptBytes += read.length
    this.#forget()
    return read
  }

  clear(): void {
    this.#kept.clear()
    this.#keptBytes = 0
  }

  #forget(): void {
    for (const [number, flush] of this.#kept) {
      if (this.#keptBytes <= keptBytesMax || this.#kept.size === 1) return
      this.#kept.delete(number)
      this.#keptBytes -= flush.length
    }
  }
}
