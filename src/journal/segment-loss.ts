/** The durable writes that an opening found damaged, as the journal tells them (`LostWrites`). */
import type { Frame } from './segment-format.ts'
import { wrongValue, type FrameFound } from './segment-scan.ts'
import { damageText } from './segment-errors.ts'
import type { Segment } from './segment-state.ts'
import type { SegmentWindow } from './segment-window.ts'

/** The words name at most this many places. */
const placesMax = 3

export class SegmentLoss {
  readonly writes: (readonly Uint8Array[] | undefined)[] = []
  /** The owner has mended damage up to this segment as far as it could. */
  readonly mendedThrough: number
  readonly #places: string[] = []
  #damages = 0
  #damagedFrom = 0
  /** No flush was listed since the last damage. */
  #awaitsFlush = false

  constructor(mendedThrough: number) {
    this.mendedThrough = mendedThrough
  }

  /** The first segment with damage to tell; 0: there is none. */
  get damagedFrom(): number {
    return this.#damagedFrom
  }

  get what(): string {
    const more = this.#damages - this.#places.length
    return `${this.#places.join('; ')}${more > 0 ? `; and ${more} more places` : ''}`
  }

  /** False: the damage is old, and need not be told again. */
  tell({ file, sequence }: Segment, offset: number, what: string): boolean {
    if (sequence <= this.mendedThrough) return false
    this.#damages += 1
    if (this.#damagedFrom === 0) this.#damagedFrom = sequence
    if (this.#places.length < placesMax) this.#places.push(damageText(file, offset, what))
    this.#awaitsFlush = true
    return true
  }

  /** A write or more that cannot be made out. */
  lose(segment: Segment, offset: number, what: string): void {
    if (this.tell(segment, offset, what)) this.writes.push(undefined)
  }

  /** Values that a damaged write held, and that are known from elsewhere. */
  know(values: readonly Uint8Array[]): void {
    this.writes.push(values)
  }

  /** The next frame of a segment. */
  async onFrame(
    window: SegmentWindow,
    { frame, isSound }: FrameFound,
    segment: Segment,
    isLast: boolean,
  ): Promise<void> {
    const isTold = isSound || this.tell(segment, frame.offset, wrongValue)
    if (this.#damagedFrom === 0 || !isTold) return
    if (isSound && !isLast && !this.#isWanted(frame)) return
    const values: Uint8Array[] = []
    for (const part of frame.parts) values.push(await window.valueOf(part))
    this.writes.push(values)
    if (isSound && hasFlush(frame)) this.#awaitsFlush = false
  }

  /**
   * Of the sound writes before the last segment: those with records, and one flush after each damage, which shows by
   * its number what is missing. The journal shows the others, and they may be large.
   */
  #isWanted(frame: Frame): boolean {
    const hasRecord = frame.parts.some(({ name }) => name !== undefined)
    return hasRecord || (this.#awaitsFlush && hasFlush(frame))
  }
}

function hasFlush({ parts }: Frame): boolean {
  return parts.some(({ flush }) => flush !== undefined)
}
