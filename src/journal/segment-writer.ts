/** The segment that is written to, and the step to the next one. */
import { assert } from '../base/assert.ts'
import { asBuffer } from '../base/bytes.ts'
import type { Random } from '../ports/random.ts'
import type { SegmentFolder } from '../ports/segments.ts'
import {
  aligned,
  encodeFrame,
  encodeHeader,
  frameBytes,
  headerBytes,
  headerCrc,
  nameBytesMax,
  saltBytes,
  segmentFormat,
  type Frame,
  type FrameKind,
  type NewPart,
} from './segment-format.ts'
import type { Segment } from './segment-state.ts'
import { segmentName, sequenceOf, type SegmentStock } from './segment-stock.ts'

/** The damage of older segments, as the header of a new one names it. */
export interface Mending {
  readonly damagedFrom: number
  readonly mendedThrough: number
}

export class SegmentWriter {
  /** For the headers of segments from now on. */
  mending: Mending
  readonly #folder: SegmentFolder
  readonly #stock: SegmentStock
  readonly #random: Random
  readonly #journal: string
  #current: Segment | undefined

  constructor(
    folder: SegmentFolder,
    stock: SegmentStock,
    random: Random,
    journal: string | undefined,
    mending: Mending,
  ) {
    this.#folder = folder
    this.#stock = stock
    this.#random = random
    this.#journal = journal ?? drawn(random)
    this.mending = mending
  }

  /** Whether a frame of these values has room in the segment that is written to. */
  hasRoom(values: readonly NewPart[]): boolean {
    const segment = this.#current
    return segment !== undefined && segment.end + frameBytes(values) <= segment.file.length
  }

  /**
   * Begins the segment after `before` with a checkpoint of `records`, and with room for `bytes` more. It has its name
   * only when both are durable, so what stands under such a name is whole, or damaged.
   */
  async begin(
    before: Segment | undefined,
    records: ReadonlyMap<string, Uint8Array>,
    bytes: number,
  ): Promise<Segment> {
    const values = [...records].map(([name, value]) => ({ name, value }))
    const end = aligned(headerBytes + frameBytes(values))
    const sequence = (before?.sequence ?? 0) + 1
    const file = await this.#stock.take(end + bytes, before === undefined)
    const isNamed = sequenceOf(file.name) !== undefined
    assert(!isNamed, 'JRN-3: a segment is begun in a file that has a segment of its own')
    const firstNumber = before?.nextNumber ?? 1
    const salt = drawn(this.#random)
    const header = encodeHeader({
      ...{ format: segmentFormat, journal: this.#journal, salt, sequence, firstNumber },
      ...{ fileBytes: file.length, ...this.mending },
      previousEnd: before?.end ?? 0,
      previousCrc: before?.endCrc ?? 0,
    })
    const segment: Segment = {
      ...{ file, sequence, salt, firstNumber, headerCrc: headerCrc(header) },
      ...{ end: headerBytes, endCrc: headerCrc(header), nextNumber: firstNumber, lastFlush: 0 },
    }
    const { head, frame } = encodeFrame(stampOf(segment, 'checkpoint'), values, headerBytes)
    await file.write([header, head, ...values.map(({ value }) => value)], 0)
    const named = await this.#folder.rename(file, segmentName(sequence))
    this.#current = { ...goneOn(segment, frame), file: named }
    return this.#current
  }

  /** Resolves when the frame is durable; `segment` then ends behind it. */
  async write(segment: Segment, values: readonly NewPart[]): Promise<Frame> {
    assert(
      segment === this.#current,
      'JRN-1: nothing is written to a segment once the next has begun',
    )
    const { head, frame } = encodeFrame(stampOf(segment, 'write'), values, segment.end)
    await segment.file.write([head, ...values.map(({ value }) => value)], segment.end)
    Object.assign(segment, goneOn(segment, frame))
    if (segment.end > segment.file.length / 2) this.#stock.prepare()
    return frame
  }
}

/** A record's name and value as the journal keeps them. */
export function keptRecord(name: string, value: Uint8Array): readonly [string, Uint8Array] {
  const length = Buffer.byteLength(name)
  assert(length > 0 && length <= nameBytesMax, 'JRN-2: the name of a record has 1 to 256 bytes')
  return [name, Uint8Array.from(value)]
}

function stampOf(
  { salt, sequence, nextNumber, endCrc }: Segment,
  kind: FrameKind,
): {
  readonly salt: string
  readonly sequence: number
  readonly kind: FrameKind
  readonly number: number
  readonly previousCrc: number
} {
  return { salt, sequence, kind, number: nextNumber, previousCrc: endCrc }
}

function goneOn(segment: Segment, frame: Frame): Segment {
  assert(frame.offset === segment.end, 'JRN-1: a frame begins where the one before ends')
  const end = { end: aligned(frame.end), endCrc: frame.crc, nextNumber: frame.number + 1 }
  return { ...segment, ...end }
}

function drawn(random: Random): string {
  return asBuffer(random.bytes(saltBytes)).toString('hex')
}
