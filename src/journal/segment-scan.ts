/**
 * Reads the frames of one segment in order, and tells damage from a torn tail.
 *
 * Every frame was durable before the next one was begun. So a frame that is wrong is damaged where a sound one
 * follows, or where the next segment says that there was more. All else is the write that a crash cut short, which
 * counts as never written.
 */
import { assert } from '../base/assert.ts'
import { asBuffer } from '../base/bytes.ts'
import {
  aligned,
  alignBytes,
  claimedHeadBytes,
  decodeFrame,
  frameMagic,
  headBytes,
  headerBytes,
  type Frame,
} from './segment-format.ts'
import type { SegmentWindow } from './segment-window.ts'

/** The bounds of the frames of a segment, by its header or, in place of that, by its first frame. */
export interface SegmentBounds {
  readonly salt: string
  readonly sequence: number
  readonly firstNumber: number
  /** The CRC that the first frame names as the one before it. Undefined: the header is damaged. */
  readonly firstCrc: number | undefined
  /** Of the next segment: frames from this number on are not in this one. */
  readonly numberMax: number
  /** Where the next segment says that this one ends. Undefined: where its frames end. */
  readonly end: number | undefined
  /** The CRC of the last frame, as the next segment has it. */
  readonly endCrc: number | undefined
}

export interface FrameFound {
  readonly kind: 'frame'
  readonly frame: Frame
  /** False: a value of the frame is not what was written. Only looked at when the values are checked. */
  readonly isSound: boolean
}

export interface DamageFound {
  readonly kind: 'damage'
  readonly offset: number
  /** In words. */
  readonly what: string
}

export type Found = FrameFound | DamageFound

/** Where the segment ends: where the next frame would begin, its number, and the CRC before it. */
export interface SegmentEnd {
  readonly end: number
  readonly nextNumber: number
  readonly endCrc: number
}

const wrongFrame = 'a frame does not match its checksum, and it is not a torn end'
/** The fault of a frame that is not sound, in words. */
export const wrongValue = 'a value does not match its checksum, and it is not a torn end'
const endsEarly = 'its frames end before the place that the next segment names'

export class SegmentScan {
  readonly #window: SegmentWindow
  readonly #bounds: SegmentBounds
  readonly #checksValues: boolean
  readonly #onFound: (found: Found) => Promise<void> | undefined
  /** The frame that was read last: whether one follows decides what a wrong value in it is. */
  #held: FrameFound | undefined
  #at = headerBytes
  #number: number
  #crc: number | undefined

  constructor(
    window: SegmentWindow,
    bounds: SegmentBounds,
    checksValues: boolean,
    onFound: (found: Found) => Promise<void> | undefined,
  ) {
    this.#window = window
    this.#bounds = bounds
    this.#checksValues = checksValues
    this.#onFound = onFound
    this.#number = bounds.firstNumber
    this.#crc = bounds.firstCrc
  }

  async run(): Promise<SegmentEnd> {
    const { end = Infinity } = this.#bounds
    while (this.#at < end) {
      const frame = await this.#frameAt(this.#at)
      if (frame !== undefined && this.#isNext(frame)) await this.#take(frame)
      else if (!(await this.#skip())) break
    }
    await this.#finish()
    const isAtEnd = end === Infinity || this.#at === end
    assert(isAtEnd, 'JRN-7: a segment ends elsewhere than the next one says')
    return { end: this.#at, nextNumber: this.#number, endCrc: this.#crc ?? 0 }
  }

  /** Goes on behind a wrong frame; false: no frame follows it. */
  async #skip(): Promise<boolean> {
    const next = await this.#search()
    const isDamage = next !== undefined || this.#bounds.end !== undefined
    if (!isDamage) return false
    await this.#release()
    const what = next === undefined ? endsEarly : wrongFrame
    await this.#onFound({ kind: 'damage', offset: this.#at, what })
    if (next === undefined) {
      this.#at = this.#bounds.end ?? this.#at
      this.#number = Math.max(this.#number, this.#nextSegmentNumber())
      this.#crc = this.#bounds.endCrc
      return false
    }
    await this.#take(next)
    return true
  }

  #nextSegmentNumber(): number {
    const { numberMax } = this.#bounds
    return Number.isFinite(numberMax) ? numberMax : 0
  }

  #isNext({ number, previousCrc }: Frame): boolean {
    const isChained = this.#crc === undefined || previousCrc === this.#crc
    return number === this.#number && isChained
  }

  async #take(frame: Frame): Promise<void> {
    await this.#release()
    this.#held = { kind: 'frame', frame, isSound: await this.#isSound(frame) }
    this.#at = aligned(frame.end)
    this.#number = frame.number + 1
    this.#crc = frame.crc
  }

  async #isSound({ parts }: Frame): Promise<boolean> {
    if (!this.#checksValues) return true
    for (const part of parts) if (!(await this.#window.isSound(part))) return false
    return true
  }

  /** The held frame was whole once. */
  async #release(): Promise<void> {
    const held = this.#held
    this.#held = undefined
    if (held !== undefined) await this.#onFound(held)
  }

  async #finish(): Promise<void> {
    const { end, endCrc } = this.#bounds
    const held = this.#held
    // The checkpoint was durable before the segment had its name.
    const isTorn = held?.isSound === false && end === undefined && held.frame.kind === 'write'
    if (held !== undefined && isTorn) {
      this.#at = held.frame.offset
      this.#number = held.frame.number
      this.#crc = held.frame.previousCrc
      return
    }
    await this.#release()
    if (endCrc === undefined || endCrc === this.#crc) return
    const what = 'its last frame is not the one that the next segment names'
    await this.#onFound({ kind: 'damage', offset: this.#at, what })
  }

  async #frameAt(offset: number): Promise<Frame | undefined> {
    const claimed = claimedHeadBytes(await this.#window.at(offset, headBytes))
    if (claimed === undefined) return undefined
    const frame = decodeFrame(await this.#window.at(offset, claimed), offset)
    return frame !== undefined && this.#isOwn(frame) ? frame : undefined
  }

  /** Of this use of the file, and within it. */
  #isOwn({ salt, sequence, number, end }: Frame): boolean {
    const bounds = this.#bounds
    const endMax = Math.min(bounds.end ?? Infinity, this.#window.file.length)
    const isInside = end <= endMax && number < bounds.numberMax
    return salt === bounds.salt && sequence === bounds.sequence && isInside
  }

  /**
   * The next sound frame behind the wrong one. Its number is higher: a value may hold a copy of an older frame, as
   * where a client stores files of this folder.
   */
  async #search(): Promise<Frame | undefined> {
    const endMax = this.#bounds.end ?? this.#window.file.length
    const stepBytes = 1024 * alignBytes
    for (let start = this.#at + alignBytes; start < endMax; start += stepBytes) {
      const bytes = asBuffer(await this.#window.at(start, Math.min(stepBytes, endMax - start)))
      const candidates: number[] = []
      for (let at = 0; at + 4 <= bytes.length; at += alignBytes) {
        if (bytes.readUInt32BE(at) === frameMagic) candidates.push(start + at)
      }
      for (const offset of candidates) {
        const frame = await this.#frameAt(offset)
        if (frame !== undefined && frame.number > this.#number) return frame
      }
    }
    return undefined
  }
}

/** The first frame of a segment, if it is sound in itself. */
export async function firstFrameOf(window: SegmentWindow): Promise<Frame | undefined> {
  const claimed = claimedHeadBytes(await window.at(headerBytes, headBytes))
  if (claimed === undefined) return undefined
  return decodeFrame(await window.at(headerBytes, claimed), headerBytes)
}
