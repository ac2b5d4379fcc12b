/** A segment of an open journal. */
import { assert } from '../base/assert.ts'
import type { SegmentFile } from '../ports/segments.ts'
import { headerBytes, type Frame } from './segment-format.ts'
import type { SegmentHead } from './segment-heads.ts'
import type { FlushIndex } from './segment-index.ts'
import type { SegmentBounds } from './segment-scan.ts'

export interface Segment {
  readonly file: SegmentFile
  readonly sequence: number
  readonly salt: string
  readonly firstNumber: number
  /** Of its header; undefined: the header is damaged. */
  readonly headerCrc: number | undefined
  /** Where the next frame begins. */
  end: number
  /** Of the last frame. */
  endCrc: number
  /** The number of the frame that comes next, here or in the next segment. */
  nextNumber: number
  /** The highest number of a flush in it; 0: none. */
  lastFlush: number
}

/** Before its frames are known. */
export function segmentOf(head: SegmentHead): Segment {
  const { file, sequence, salt, firstNumber, headerCrc } = head
  const end = { end: headerBytes, endCrc: headerCrc ?? 0, nextNumber: firstNumber }
  return { file, sequence, salt, firstNumber, headerCrc, ...end, lastFlush: 0 }
}

/** The flushes of a frame stand there from now on. */
export function noteFlushes(index: FlushIndex, segment: Segment, { parts, salt }: Frame): void {
  assert(salt === segment.salt, 'JRN-5: a frame of an earlier use of the file is believed')
  for (const { flush, offset, length, crc } of parts) {
    if (flush === undefined) continue
    index.set(flush, { segment: segment.sequence, offset, length, crc })
    segment.lastFlush = Math.max(segment.lastFlush, flush)
  }
}

/** The bounds within which a scan of the segment must find its frames now. */
export function boundsOf(segment: Segment): SegmentBounds {
  const { salt, sequence, firstNumber, headerCrc, end, endCrc, nextNumber } = segment
  return { salt, sequence, firstNumber, firstCrc: headerCrc, numberMax: nextNumber, end, endCrc }
}
