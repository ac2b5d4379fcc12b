/** Flushes read back from segments: one at once, or many in order. */
import { crc32 } from '../base/bytes.ts'
import type { StoreError } from '../base/errors.ts'
import type { JournalFlush } from '../ports/journal.ts'
import type { FlushIndex, Place } from './segment-index.ts'
import { damagedError, damageText } from './segment-errors.ts'
import type { Segment } from './segment-state.ts'

/** Flushes that stand behind one another are read together up to here. */
const runBytesMax: number = 1024 * 1024

/** The parts of an open journal that its readers look at. */
export interface Shelf {
  readonly path: string
  readonly index: FlushIndex
  readonly segments: ReadonlyMap<number, Segment>
  /** Throws when the journal is closed. */
  checkOpen(): void
  /** The owner needs no flush below it. */
  readonly droppedBelow: number
}

/** Throws `corrupt` for a flush that is lost or damaged. */
export function readFlush(shelf: Shelf, number: number): Uint8Array | undefined {
  const place = shelf.index.get(number)
  if (place === undefined) return absent(shelf, number)
  const bytes = segmentAt(shelf, place).file.readSync(place.offset, place.length)
  if (!isSound(bytes, place)) throw flushError(shelf, number, place)
  return bytes
}

/** A flush between others that the journal has is lost; outside of them there is none. */
function absent({ path, index, droppedBelow }: Shelf, number: number): undefined {
  const isLost = number >= Math.max(index.first, droppedBelow) && number <= index.last
  if (isLost && number > 0) throw damagedError(path, `flush ${number} is lost`)
  return undefined
}

function segmentAt(shelf: Shelf, place: Place): Segment {
  const segment = shelf.segments.get(place.segment)
  if (segment === undefined) throw damagedError(shelf.path, 'a segment is missing')
  return segment
}

function isSound(bytes: Uint8Array, { length, crc }: Place): boolean {
  return bytes.length === length && crc32(bytes) === crc
}

function flushError(shelf: Shelf, number: number, place: Place): StoreError {
  const what = `flush ${number} does not match its checksum`
  return damagedError(shelf.path, damageText(segmentAt(shelf, place).file, place.offset, what))
}

/** An object and not a generator: a generator adds its turns to each chunk. */
export class FlushScan implements AsyncIterableIterator<readonly JournalFlush[]> {
  readonly #shelf: Shelf
  #number: number
  readonly #last: number

  /** The flushes from `number` on as of now. */
  constructor(shelf: Shelf, number: number) {
    this.#shelf = shelf
    this.#number = number
    this.#last = shelf.index.last
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async next(): Promise<IteratorResult<readonly JournalFlush[], undefined>> {
    this.#shelf.checkOpen()
    for (;;) {
      const run = this.#nextRun()
      const [first] = run
      if (first === undefined) return { done: true, value: undefined }
      const value = await this.#read(run, first.place)
      if (value.length > 0) return { done: false, value }
    }
  }

  async return(): Promise<IteratorResult<readonly JournalFlush[], undefined>> {
    this.#number = Infinity
    return { done: true, value: undefined }
  }

  /** The next flushes that stand one behind the other in a segment. Lost ones are passed over. */
  #nextRun(): readonly Found[] {
    const { index } = this.#shelf
    const run: Found[] = []
    this.#number = Math.max(this.#number, index.first)
    for (; this.#number <= this.#last; this.#number++) {
      const place = index.get(this.#number)
      if (place === undefined) continue
      if (!goesOn(run, place)) break
      run.push({ number: this.#number, place })
    }
    return run
  }

  /** Undefined: the segment was given up meanwhile, and its file may be gone. */
  async #bytesOf(first: Place, length: number): Promise<Uint8Array | undefined> {
    try {
      return await segmentAt(this.#shelf, first).file.read(first.offset, length)
    } catch (error) {
      if (this.#shelf.segments.has(first.segment)) throw error
      return undefined
    }
  }

  async #read(run: readonly Found[], first: Place): Promise<readonly JournalFlush[]> {
    const shelf = this.#shelf
    const last = run.at(-1)?.place ?? first
    const bytes = await this.#bytesOf(first, last.offset + last.length - first.offset)
    shelf.checkOpen()
    if (bytes === undefined) return []
    return run.flatMap(({ number, place }) => {
      // Given up meanwhile: the file may be another segment by now.
      if (shelf.index.get(number)?.segment !== place.segment) return []
      const from = place.offset - first.offset
      const value = bytes.subarray(from, from + place.length)
      if (!isSound(value, place)) throw flushError(shelf, number, place)
      return [{ number, bytes: value }]
    })
  }
}

interface Found {
  readonly number: number
  readonly place: Place
}

function goesOn(run: readonly Found[], place: Place): boolean {
  const [first, last] = [run[0]?.place, run.at(-1)?.place]
  if (first === undefined || last === undefined) return true
  const isBehind = place.segment === last.segment && place.offset >= last.offset + last.length
  return isBehind && place.offset + place.length - first.offset <= runBytesMax
}
