/**
 * A journal in segment files (`SPEC.md`): each write is one frame behind the one before, in a file that has its length
 * already. Where a segment is full the next one begins, with all records; one whose flushes are given up is used
 * again.
 */
import { assert, present } from '../base/assert.ts'
import { equalBytes } from '../base/bytes.ts'
import { StoreError } from '../base/errors.ts'
import type {
  Journal,
  JournalFlush,
  JournalRecord,
  JournalWrite,
  LostWrites,
} from '../ports/journal.ts'
import type { Random } from '../ports/random.ts'
import type { SegmentFile, SegmentFolder } from '../ports/segments.ts'
import type { CheckPace } from '../ports/storage.ts'
import { checkSegments } from './segment-check.ts'
import { frameBytes, type NewPart } from './segment-format.ts'
import { readHead, readJournalId, namesIn, type SegmentHead } from './segment-heads.ts'
import type { FlushIndex } from './segment-index.ts'
import { splitIntoFrames } from './segment-put-back.ts'
import { recover } from './segment-recovery.ts'
import { FlushScan, readFlush } from './segment-reader.ts'
import { closedError } from './segment-errors.ts'
import { noteFlushes, type Segment } from './segment-state.ts'
import { firstFileName, segmentName, SegmentStock } from './segment-stock.ts'
import { keptRecord, SegmentWriter } from './segment-writer.ts'

export interface SegmentOptions {
  readonly folder: SegmentFolder
  readonly random: Random
  /** The length of a file. A write that is longer gets a file of its own length. Default: 64 MiB. */
  readonly segmentBytes?: number
}

const segmentBytesDefault: number = 64 * 1024 * 1024

/**
 * Opens the journal in a folder, made if there is none. Rejects with `corrupt` for a folder that lacks files or has
 * files of another journal, with `invalid` for files of a later version and for what is no file.
 */
export async function openSegmentJournal(options: SegmentOptions): Promise<Journal> {
  const files: SegmentFile[] = []
  try {
    return await opened(options, files)
  } catch (error) {
    for (const file of files) await file.close()
    throw error
  }
}

async function opened(options: SegmentOptions, files: SegmentFile[]): Promise<Journal> {
  const { folder, random, segmentBytes = segmentBytesDefault } = options
  const names = await namesIn(folder)
  const heads: SegmentHead[] = []
  for (const sequence of names.sequences) {
    const file = await folder.open(segmentName(sequence))
    files.push(file)
    heads.push(await readHead(folder.path, file, sequence))
  }
  const journalId = readJournalId(folder.path, heads)
  const { segments, index, records, loss } = await recover(heads, segmentBytes)
  if (names.hasFirstFile) await folder.remove(firstFileName)
  const stock = new SegmentStock(folder, segmentBytes)
  await stock.adopt(names.spares)
  const { damagedFrom, mendedThrough } = loss
  const writer = new SegmentWriter(folder, stock, random, journalId, { damagedFrom, mendedThrough })
  const lost = damagedFrom === 0 ? undefined : { what: loss.what, writes: loss.writes }
  const journal = new SegmentJournal({ folder, segmentBytes, stock, writer, index, records, lost })
  await journal.begin(segments)
  return journal
}

interface Parts {
  readonly folder: SegmentFolder
  readonly segmentBytes: number
  readonly stock: SegmentStock
  readonly writer: SegmentWriter
  readonly index: FlushIndex
  readonly records: Map<string, Uint8Array>
  readonly lost: Omit<LostWrites, 'putBack'> | undefined
}

class SegmentJournal implements Journal {
  readonly lost: LostWrites | undefined
  readonly path: string
  readonly index: FlushIndex
  /** The oldest first. */
  readonly segments = new Map<number, Segment>()
  droppedBelow = 0
  readonly #parts: Parts
  #current: Segment | undefined
  /** Of a write that is under way. */
  #pending: JournalWrite | undefined
  #writing: Promise<void> | undefined
  #dropping: Promise<void> = Promise.resolve()
  /** The next write begins a segment in a new file. */
  #isSeparating = false
  /** The last segment before the one that was begun for that. */
  #separatedFrom = 0
  /** Why nothing is written any more. */
  #fence: StoreError | undefined
  #closing: Promise<void> | undefined

  constructor(parts: Parts) {
    this.#parts = parts
    this.path = parts.folder.path
    this.index = parts.index
    const putBack = (found: JournalWrite): Promise<void> =>
      this.#exclusive(found, () => this.#putBack(found))
    this.lost = parts.lost && { ...parts.lost, putBack }
    const { damagedFrom } = parts.writer.mending
    assert(damagedFrom === 0 || this.lost !== undefined, 'JRN-8: an opening keeps damage to itself')
  }

  /** Each opening begins a segment of its own: nothing is written behind a torn tail. */
  async begin(segments: readonly Segment[]): Promise<void> {
    for (const segment of segments) this.segments.set(segment.sequence, segment)
    this.#current = segments.at(-1)
    await this.#next(0)
  }

  checkOpen(): void {
    if (this.#closing !== undefined) throw closedError(this.path)
  }

  record(name: string): Uint8Array | undefined {
    this.checkOpen()
    const pending = this.#pending?.records.findLast((one) => one.name === name)?.value
    const value = pending ?? this.#parts.records.get(name)
    return value && Uint8Array.from(value)
  }

  async recordNames(): Promise<readonly string[]> {
    this.checkOpen()
    return [...this.#parts.records.keys()]
  }

  read(number: number): Uint8Array | undefined {
    this.checkOpen()
    const pending = this.#pending?.flushes.find((one) => one.number === number)?.bytes
    return pending === undefined ? readFlush(this, number) : Uint8Array.from(pending)
  }

  scan(number: number): AsyncIterable<readonly JournalFlush[]> {
    return new FlushScan(this, number)
  }

  async last(): Promise<number> {
    this.checkOpen()
    return this.index.last
  }

  append(flush: JournalFlush, records: readonly JournalRecord[] = []): Promise<void> {
    return this.write({ flushes: [flush], records })
  }

  checkpoint(records: readonly JournalRecord[]): Promise<void> {
    return this.write({ flushes: [], records })
  }

  write(write: JournalWrite): Promise<void> {
    let { last } = this.index
    for (const { number } of write.flushes) {
      assert(last === 0 || number === last + 1, 'JRN-2: flushes are numbered without a gap')
      last = number
    }
    const values = [
      ...write.flushes.map(({ number, bytes }) => ({ flush: number, value: bytes })),
      ...write.records.map(({ name, value }) => ({ name, value })),
    ]
    return this.#exclusive(write, () => this.#writeFrame(values))
  }

  /** One write at a time; the first that fails is the last. */
  #exclusive(write: JournalWrite, work: () => Promise<void>): Promise<void> {
    assert(this.#writing === undefined, 'JRN-4: one write at a time')
    if (this.#fence !== undefined) return Promise.reject(this.#fence)
    this.#pending = write
    const done = this.#guarded(work).finally(() => {
      this.#pending = undefined
      this.#writing = undefined
    })
    this.#writing = done
    return done
  }

  /** After a failure the journal does not know what is on the disk. */
  async #guarded(work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } catch (error) {
      if (error instanceof StoreError) this.#fence ??= error
      throw error
    }
  }

  async #writeFrame(values: readonly NewPart[]): Promise<void> {
    const { writer, index, records } = this.#parts
    if (this.#isSeparating) await this.#separate(frameBytes(values))
    if (!writer.hasRoom(values)) await this.#next(frameBytes(values))
    const segment = present(this.#current, 'JRN-1: an open journal has a segment')
    noteFlushes(index, segment, await writer.write(segment, values))
    for (const { name, value } of values) {
      if (name !== undefined) records.set(...keptRecord(name, value))
    }
  }

  separate(): void {
    this.#isSeparating = true
  }

  /** Spares have bytes of the segments that they were. */
  async #separate(bytes: number): Promise<void> {
    this.#isSeparating = false
    await this.#parts.stock.erase()
    this.#separatedFrom = present(this.#current, 'JRN-1: an open journal has a segment').sequence
    await this.#next(bytes)
  }

  async erased(): Promise<boolean> {
    // Before a journal has its first flush it may have begun segments that hold none: nothing else gives those up.
    await this.drop(1)
    const [oldest = 0] = this.segments.keys()
    if (this.#isSeparating || oldest <= this.#separatedFrom) return false
    this.#parts.stock.onErased()
    return true
  }

  /** Goes on to the next segment, with room for `bytes` behind its checkpoint. */
  async #next(bytes: number): Promise<void> {
    const { writer, records } = this.#parts
    const segment = await writer.begin(this.#current, records, bytes)
    this.segments.set(segment.sequence, segment)
    this.#current = segment
  }

  async #putBack(found: JournalWrite): Promise<void> {
    const { writer, segmentBytes } = this.#parts
    const flushes = found.flushes.filter(({ number, bytes }) => !this.#shows(number, bytes))
    for (const frame of splitIntoFrames({ ...found, flushes }, segmentBytes / 2)) {
      await this.#writeFrame(frame)
    }
    writer.mending = { damagedFrom: 0, mendedThrough: this.#current?.sequence ?? 0 }
    await this.#next(0)
  }

  #shows(number: number, bytes: Uint8Array): boolean {
    try {
      return equalBytes(readFlush(this, number) ?? new Uint8Array(), bytes) && bytes.length > 0
    } catch {
      return false
    }
  }

  drop(first: number): Promise<void> {
    // The segment with the last flush stays, and with it all newer ones: the current one, too.
    this.droppedBelow = Math.max(this.droppedBelow, Math.min(first, this.index.last))
    this.#dropping = this.#dropping.then(() => this.#drop())
    return this.#dropping
  }

  async #drop(): Promise<void> {
    for (const segment of this.segments.values()) {
      if (this.#fence !== undefined) throw this.#fence
      if (segment.lastFlush >= this.droppedBelow) return
      await this.#giveUp(segment)
    }
  }

  /** No flush in it is needed. The oldest goes first, so that no gap is left. */
  async #giveUp(segment: Segment): Promise<void> {
    const { sequence, lastFlush, file } = segment
    assert(lastFlush < this.droppedBelow, 'JRN-6: a segment is given up that has a flush in use')
    assert(segment !== this.#current, 'JRN-6: the segment that is written to is given up')
    this.segments.delete(sequence)
    this.index.forget(sequence, lastFlush)
    await this.#guarded(() => this.#parts.stock.recycle(file))
  }

  async sizeOf(first: number, last: number): Promise<number> {
    this.checkOpen()
    return this.index.bytesBetween(first, last)
  }

  check(pace?: CheckPace): Promise<void> {
    const isKept = ({ sequence }: Segment): boolean => this.segments.has(sequence)
    return checkSegments({
      ...{ folder: this.#parts.folder, segments: [...this.segments.values()], isKept, pace },
      isClosed: () => this.#closing !== undefined,
    })
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    this.#fence ??= closedError(this.path)
    await this.#writing?.catch(() => undefined)
    await this.#dropping.catch(() => undefined)
    await this.#parts.stock.close()
    for (const { file } of this.segments.values()) await file.close()
  }
}
