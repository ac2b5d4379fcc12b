/**
 * A log disk of segment files. It reads by itself what of each write has reached the files, so the checkers do not rely
 * on the journal that they judge.
 */
import { assert, present } from '../../src/base/assert.ts'
import { crc32, fromLatin1, latin1 } from '../../src/base/bytes.ts'
import { flushKey, numberOfKey, recordKey } from '../../src/journal/ordered-journal.ts'
import {
  aligned,
  decodeFrame,
  decodeHeader,
  headerBytes,
  type Frame,
  type Part,
} from '../../src/journal/segment-format.ts'
import { openSegmentJournal } from '../../src/journal/segment-journal.ts'
import { sequenceOf } from '../../src/journal/segment-stock.ts'
import type { Journal } from '../../src/ports/journal.ts'
import type { Random } from '../../src/ports/random.ts'
import type { Put, Range } from '../../src/ports/storage.ts'
import type { DiskImage, ToldDamage, WriteFault } from './disk.ts'
import { textRange } from './key-ranges.ts'
import type { JournalRot } from './disk-journal.ts'
import type { LogDisk } from './log-disk.ts'
import { OrderedMap } from './ordered-map.ts'
import {
  SimSegments,
  type Content,
  type SegmentDiskOptions,
  type SegmentFate,
  type SegmentImage,
} from './segments.ts'
import { WatchedJournal } from './watched-journal.ts'

/** The rows of a log, and the files that hold them. */
class FilesImage extends Map<string, Uint8Array> {
  readonly files: SegmentImage

  constructor(files: SegmentImage, rows: Iterable<readonly [string, Uint8Array]>) {
    super(rows)
    this.files = files
  }
}

interface Place {
  readonly content: Content
  readonly frameAt: number
  readonly offset: number
  readonly length: number
}

export interface SegmentLogOptions extends Omit<SegmentDiskOptions, 'onWritten' | 'onMoved'> {
  readonly random: Random
  readonly segmentBytes: number
  readonly nowMicros: () => number
  /** As in `DiskOptions`. */
  readonly onDurable: (puts: readonly Put[], isWhole: boolean) => void
}

const million = 1_000_000

export class SegmentLog implements LogDisk {
  readonly hidesTornWrites = true
  readonly #options: SegmentLogOptions
  readonly #segments: SimSegments
  readonly #rows = new OrderedMap<Place>()
  readonly #hurt = new Set<string>()
  /** The frame that was written last, which is never damaged: that would look like a torn write. */
  #last: { readonly content: Content; readonly frameAt: number } | undefined
  #undamaged: DiskImage | undefined
  /** Values that are put back were durable once. */
  #isPuttingBack = false
  #isOpen = false
  told: ToldDamage | undefined

  constructor(options: SegmentLogOptions) {
    this.#options = options
    this.#segments = new SimSegments({
      ...options,
      onWritten: (name, offset) => {
        if (sequenceOf(name) !== undefined) this.#take(this.#segments.contentOf(name), offset)
      },
      onMoved: (from, to) => this.#onMoved(from, to),
    })
  }

  /** The journal as a process that starts now finds it. */
  async open(): Promise<Journal> {
    assert(!this.#isOpen, 'disk: opened by two processes')
    this.#isOpen = true
    this.#isPuttingBack = false
    this.told = undefined
    const { random, segmentBytes } = this.#options
    const folder = this.#segments.open()
    const journal = await openSegmentJournal({ folder, random, segmentBytes })
    return new WatchedJournal(journal, {
      onPutBack: (isUnderWay) => {
        this.#isPuttingBack = isUnderWay
      },
      onDamage: () => {
        this.told ??= {
          atMicros: this.#options.nowMicros(),
          keys: [...this.#hurt].map(fromLatin1),
        }
      },
    })
  }

  /** The process is gone; calls under way meet the fate. Returns whether one was lost. */
  crash(fate: SegmentFate): boolean {
    this.#isOpen = false
    const calls = this.#segments.crash(fate)
    return calls > 0 && fate.kind !== 'kept'
  }

  #onMoved(from: string, to: string): void {
    const content = present(this.#segments.contentOf(to), 'sim: there is such a file')
    if (sequenceOf(from) !== undefined) this.#forget(content)
    if (sequenceOf(to) === undefined) return
    const frame = frameAt(content, headerBytes)
    // Its records are old: the segment before has them, too.
    if (frame !== undefined) this.#note(content, frame)
  }

  /** The file is no segment any more. */
  #forget(content: Content): void {
    const gone: Put[] = []
    for (const [name, place] of [...this.#rows.entries()]) {
      if (place.content !== content) continue
      this.#rows.delete(name)
      const key = fromLatin1(name)
      if (numberOfKey(key) !== undefined) gone.push({ key })
    }
    if (gone.length > 0) this.#options.onDurable(gone, true)
  }

  /** A write came to the disk, or a part of it. */
  #take(content: Content | undefined, offset: number): void {
    const frame = content && frameAt(content, offset)
    if (content === undefined || frame === undefined) return
    this.#note(content, frame)
    if (this.#isPuttingBack) return
    const puts = frame.parts.map((part) => {
      return { key: keyOf(part), value: Buffer.from(valueOf(content, part)) }
    })
    this.#options.onDurable(puts, true)
  }

  #note(content: Content, frame: Frame): void {
    this.#last = { content, frameAt: frame.offset }
    for (const part of frame.parts) {
      const name = latin1(keyOf(part))
      this.#hurt.delete(name)
      const { offset, length } = part
      this.#rows.set(name, { content, frameAt: frame.offset, offset, length })
    }
  }

  get hasPending(): boolean {
    return this.#segments.hasPending
  }

  isHurt(key: Uint8Array): boolean {
    return this.#hurt.has(latin1(key))
  }

  failNextWrite(fault: WriteFault): void {
    this.#segments.failNextWrite(fault)
  }

  failWrites(fault: WriteFault): void {
    this.#segments.failWrites(fault)
  }

  flipBit(key: Uint8Array, bit: number): boolean {
    const place = this.#rows.get(latin1(key))
    if (place === undefined || bit >= 8 * place.length || this.#isLast(place)) return false
    flip(place.content, 8 * place.offset + bit)
    this.#hurt.add(latin1(key))
    return true
  }

  misdirect(from: Uint8Array, to: Uint8Array): boolean {
    const [source, target] = [this.#rows.get(latin1(from)), this.#rows.get(latin1(to))]
    if (source === undefined || target === undefined || this.#isLast(target)) return false
    const bytes = valueOf(source.content, source).subarray(0, target.length)
    if (bytes.equals(valueOf(target.content, target).subarray(0, bytes.length))) return false
    bytes.copy(target.content.bytes, target.offset)
    this.#hurt.add(latin1(to))
    return true
  }

  #isLast({ content, frameAt: at }: Place): boolean {
    return this.#last?.content === content && this.#last.frameAt === at
  }

  /** A frame of the last segments. */
  rot({ place, bit, isIllegible }: JournalRot): boolean {
    assert(!this.#isOpen, 'disk: a process has its journal in memory')
    if (this.#undamaged !== undefined) return false
    const frames = this.#newestFrames()
    const found = frames[Math.floor((frames.length * place) / million)]
    if (found === undefined) return false
    const { content, frame } = found
    this.#undamaged = this.image()
    const values = frame.parts.filter(({ length }) => length > 0)
    const part = values[bit % Math.max(1, values.length)]
    if (isIllegible === true && bit % 4 === 0) {
      // The salt in the header of the segment: all frames are sound.
      flip(content, 8 * 20 + (bit % 64))
      return true
    }
    if (part === undefined || isIllegible === true) {
      // Its own salt: nothing of the frame can be made out.
      flip(content, 8 * (frame.offset + 8) + (bit % 64))
    } else {
      flip(content, 8 * part.offset + (bit % (8 * part.length)))
    }
    for (const one of frame.parts) {
      const name = latin1(keyOf(one))
      if (this.#rows.get(name)?.frameAt === frame.offset) this.#hurt.add(name)
    }
    return true
  }

  /**
   * Those of the last two segments whose damage each opening tells, without the very last one. An owner that has mended
   * damage there hears of no other.
   */
  #newestFrames(): readonly { readonly content: Content; readonly frame: Frame }[] {
    const names = segmentNames(this.#segments).slice(-2)
    const last = this.#segments.contentOf(names.at(-1) ?? '')
    const mendedThrough = (last && decodeHeader(last.bytes)?.mendedThrough) ?? Infinity
    return names
      .filter((name) => (sequenceOf(name) ?? 0) > mendedThrough)
      .flatMap((name) => {
        const content = present(this.#segments.contentOf(name), 'sim: there is such a file')
        return framesIn(content).map((frame) => ({ content, frame }))
      })
      .filter(({ content, frame }) => {
        return this.#last?.content !== content || this.#last.frameAt !== frame.offset
      })
  }

  takeUndamaged(): DiskImage | undefined {
    const image = this.#undamaged
    this.#undamaged = undefined
    return image
  }

  image(): DiskImage {
    const rows = [...this.#rows.entries()].map(([name, place]) => {
      return [name, Uint8Array.from(valueOf(place.content, place))] as const
    })
    return new FilesImage(this.#segments.image(), rows)
  }

  restore(image: DiskImage): void {
    assert(!this.#isOpen, 'disk: exchanged under a living process')
    assert(image instanceof FilesImage || image.size === 0, 'disk: of another kind')
    this.#segments.restore(image instanceof FilesImage ? image.files : new Map())
    this.#rows.clear()
    this.#hurt.clear()
    this.#undamaged = undefined
    this.#last = undefined
    for (const name of segmentNames(this.#segments)) {
      const content = present(this.#segments.contentOf(name), 'sim: there is such a file')
      for (const frame of framesIn(content)) this.#note(content, frame)
    }
  }

  durableValue(key: string): Uint8Array | undefined {
    const place = this.#rows.get(key)
    return place && valueOf(place.content, place)
  }

  durableKeys(range: Range): string[] {
    return this.#rows.keysIn(textRange(range))
  }
}

function segmentNames(segments: SimSegments): readonly string[] {
  return segments.names.filter((name) => sequenceOf(name) !== undefined)
}

function keyOf({ flush, name = '' }: Part): Buffer {
  return flush === undefined ? recordKey(name) : flushKey(flush)
}

function valueOf({ bytes }: Content, { offset, length }: Pick<Part, 'offset' | 'length'>): Buffer {
  return bytes.subarray(offset, offset + length)
}

function flip({ bytes }: Content, bit: number): void {
  bytes[bit >> 3] = (bytes[bit >> 3] ?? 0) ^ (1 << (bit & 7))
}

/** The frame there, if its writer wrote all of it in this use of the file. */
function frameAt(content: Content, offset: number): Frame | undefined {
  const { bytes } = content
  const frame = decodeFrame(bytes.subarray(offset), offset)
  if (frame === undefined) return undefined
  const first = decodeFrame(bytes.subarray(headerBytes), headerBytes)
  const salt = decodeHeader(bytes)?.salt ?? first?.salt
  if (frame.salt !== salt || frame.end > bytes.length) return undefined
  const isWhole = frame.parts.every((part) => crc32(valueOf(content, part)) === part.crc)
  return isWhole ? frame : undefined
}

/** Up to the first that is not whole. */
function framesIn(content: Content): readonly Frame[] {
  const frames: Frame[] = []
  for (let at = headerBytes; at < content.bytes.length;) {
    const frame = frameAt(content, at)
    if (frame === undefined) break
    frames.push(frame)
    at = aligned(frame.end)
  }
  return frames
}
