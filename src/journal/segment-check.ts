/** Reads all segments of an open journal beside its work, and tells what is not as it was written. */
import { StoreError } from '../base/errors.ts'
import type { SegmentFolder } from '../ports/segments.ts'
import type { CheckPace } from '../ports/storage.ts'
import { decodeHeader, headerBytes, headerCrc } from './segment-format.ts'
import { SegmentScan, wrongValue, type Found } from './segment-scan.ts'
import { closedError, damagedError, damageText } from './segment-errors.ts'
import { boundsOf, type Segment } from './segment-state.ts'
import { SegmentWindow } from './segment-window.ts'

export interface CheckOptions {
  readonly folder: SegmentFolder
  /** As of the call. */
  readonly segments: readonly Segment[]
  /** The segment has not been given up meanwhile: its file may be another one by now. */
  readonly isKept: (segment: Segment) => boolean
  readonly isClosed: () => boolean
  readonly pace: CheckPace | undefined
}

/** As `Journal.check` has it. */
export async function checkSegments(options: CheckOptions): Promise<void> {
  const { folder, segments, pace } = options
  const bytesTotal = segments.reduce((sum, { end }) => sum + end, 0)
  let [bytesRead, bytesBefore] = [0, 0]
  const onRead = async (bytes: number): Promise<void> => {
    bytesRead += bytes
    if (pace !== undefined) {
      const waitMs = (bytes * 1000) / pace.bytesPerSecond()
      if (waitMs >= 1) await folder.pause(waitMs)
    }
    if (options.isClosed()) throw closedError(folder.path)
    if (pace?.isOver() !== true) return
    throw new StoreError('closed', 'the caller does not wait for this check any more')
  }
  for (const segment of segments) {
    // A file that was given up is another segment by now, or gone.
    if (!options.isKept(segment)) continue
    const found = await damageIn(segment, onRead).catch((error: unknown) => {
      if (options.isKept(segment)) throw error
      return []
    })
    if (!options.isKept(segment)) continue
    for (const what of found) {
      if (pace?.onDamage === undefined) throw damagedError(folder.path, what)
      pace.onDamage(what)
    }
    bytesBefore += segment.end
    pace?.onProgress(bytesRead, Math.min(1, bytesBefore / Math.max(1, bytesTotal)))
  }
}

async function damageIn(
  segment: Segment,
  onRead: (bytes: number) => Promise<void>,
): Promise<readonly string[]> {
  const { file } = segment
  const window = new SegmentWindow(file, onRead)
  const found: string[] = []
  const bounds = boundsOf(segment)
  const header = Uint8Array.from(await window.at(0, headerBytes))
  if (decodeHeader(header) === undefined || headerCrc(header) !== segment.headerCrc) {
    found.push(damageText(file, 0, 'its header does not match its checksum'))
  }
  const onFound = async (one: Found): Promise<void> => {
    if (one.kind === 'damage') found.push(damageText(file, one.offset, one.what))
    else if (!one.isSound) found.push(damageText(file, one.frame.offset, wrongValue))
  }
  await new SegmentScan(window, bounds, true, onFound).run()
  return found
}
