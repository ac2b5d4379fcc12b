/**
 * The files of a journal by name: `0000000001.segment` and on are its segments, `spare-1.segment` and on are ready to
 * become one. A file of the length of a segment is used again for good; one of another length goes.
 */
import { segmentEnding, type SegmentFile, type SegmentFolder } from '../ports/segments.ts'

/** Made before there is any segment; no spare exists then. */
export const firstFileName: string = `new${segmentEnding}`
/** Spares that are kept: one for the next segment, and one to make up for drops that come in lumps. */
const sparesMax = 2
const sequenceDigits = 10

export function segmentName(sequence: number): string {
  return `${String(sequence).padStart(sequenceDigits, '0')}${segmentEnding}`
}

/** Undefined: the file is no segment. */
export function sequenceOf(name: string): number | undefined {
  const digits = /^(\d{10})\.segment$/.exec(name)?.[1]
  return digits === undefined ? undefined : Number(digits)
}

/** Undefined: the file is no spare. */
export function spareNumber(name: string): number | undefined {
  const digits = /^spare-(\d{1,15})\.segment$/.exec(name)?.[1]
  return digits === undefined ? undefined : Number(digits)
}

export class SegmentStock {
  readonly #folder: SegmentFolder
  readonly #segmentBytes: number
  #spares: SegmentFile[] = []
  #lastSpare = 0
  #preparing: Promise<void> | undefined
  #isClosed = false
  /** Segments that are given up are not used again: their bytes are to go. */
  #isErasing = false

  constructor(folder: SegmentFolder, segmentBytes: number) {
    this.#folder = folder
    this.#segmentBytes = segmentBytes
  }

  /** Takes over the spares of an earlier run. */
  async adopt(names: readonly string[]): Promise<void> {
    for (const name of names) {
      this.#lastSpare = Math.max(this.#lastSpare, spareNumber(name) ?? 0)
      await this.#keep(await this.#folder.open(name))
    }
  }

  /** A file of `bytes` or more that is no segment; `isFirst`: there is no segment yet. */
  async take(bytes: number, isFirst: boolean): Promise<SegmentFile> {
    if (bytes > this.#segmentBytes) return this.#create(this.#nextName(), bytes)
    // A spare that is on its way is there sooner than another one.
    await this.#preparing
    const spare = this.#spares.shift()
    return spare ?? this.#create(isFirst ? firstFileName : this.#nextName(), this.#segmentBytes)
  }

  /** Makes a spare in the background, if there is none. */
  prepare(): void {
    if (this.#spares.length > 0 || this.#preparing !== undefined || this.#isClosed) return
    this.#preparing = this.#prepare()
  }

  async #prepare(): Promise<void> {
    try {
      this.#spares.push(await this.#create(this.#nextName(), this.#segmentBytes))
    } catch {
      // The write that needs the file tries again, and its caller hears of the disk.
    } finally {
      this.#preparing = undefined
    }
  }

  /** A segment whose flushes the journal has given up becomes a spare, or goes. */
  async recycle(segment: SegmentFile): Promise<void> {
    await this.#keep(await this.#folder.rename(segment, this.#nextName()))
  }

  /** From now on every file that is taken is new. */
  async erase(): Promise<void> {
    this.#isErasing = true
    await this.#preparing
    for (const spare of this.#spares.splice(0)) await this.#remove(spare)
  }

  /** All that was to be erased is gone: segments are used again. */
  onErased(): void {
    this.#isErasing = false
  }

  async #keep(file: SegmentFile): Promise<void> {
    const isWanted = !this.#isErasing && this.#spares.length < sparesMax
    if (file.length === this.#segmentBytes && isWanted) {
      this.#spares.push(file)
      return
    }
    await this.#remove(file)
  }

  async #remove(file: SegmentFile): Promise<void> {
    await file.close()
    await this.#folder.remove(file.name)
  }

  #create(name: string, bytes: number): Promise<SegmentFile> {
    return this.#folder.create(name, bytes)
  }

  #nextName(): string {
    this.#lastSpare += 1
    return `spare-${this.#lastSpare}${segmentEnding}`
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#preparing
    for (const spare of this.#spares.splice(0)) await spare.close()
  }
}
