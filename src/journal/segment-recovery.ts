/**
 * Makes of the segments of a folder what the journal shows: where each flush stands, the records, and the durable
 * writes that damage has cost.
 *
 * Records come from the last segment alone, since each segment begins with all of them. Values are checked in the
 * newest segments, which a start is about to read, and from the first damage on that is not mended; elsewhere a reader
 * checks a value when it reads it.
 */
import { headerBytes, type Frame } from './segment-format.ts'
import { boundsFrom, type SegmentHead } from './segment-heads.ts'
import { FlushIndex } from './segment-index.ts'
import { SegmentLoss } from './segment-loss.ts'
import { SegmentScan, type Found } from './segment-scan.ts'
import { noteFlushes, segmentOf, type Segment } from './segment-state.ts'
import { SegmentWindow } from './segment-window.ts'

export interface Recovered {
  /** The oldest first. */
  readonly segments: readonly Segment[]
  readonly index: FlushIndex
  readonly records: Map<string, Uint8Array>
  readonly loss: SegmentLoss
}

const cutShort = 'the file is shorter than when it was made'
const badHeader = 'its header does not match its checksum'
const noCheckpoint = 'its first frame, which repeats all records, does not match its checksum'
const gapBehind = 'frames behind it are missing'

/** `checkedBytes`: the bytes of frames before the last segment whose values it checks along with that one's. */
export function recover(heads: readonly SegmentHead[], checkedBytes: number): Promise<Recovered> {
  return new Recovery(heads, checkedBytes).run()
}

class Recovery {
  readonly #heads: readonly SegmentHead[]
  readonly #index = new FlushIndex()
  readonly #segments: Segment[] = []
  readonly #loss: SegmentLoss
  /** Values are checked from this segment on. */
  readonly #checkedFrom: number
  /** Undefined before the first frame of the last segment. */
  #records: Map<string, Uint8Array> | undefined

  constructor(heads: readonly SegmentHead[], checkedBytes: number) {
    this.#heads = heads
    const headers = heads.flatMap(({ header }) => header ?? [])
    const damagedFrom = headers.at(-1)?.damagedFrom ?? 0
    const newest = newestFrom(heads, checkedBytes)
    this.#checkedFrom = damagedFrom === 0 ? newest : Math.min(damagedFrom, newest)
    this.#loss = new SegmentLoss(Math.max(0, ...headers.map((one) => one.mendedThrough)))
  }

  async run(): Promise<Recovered> {
    for (const [at, head] of this.#heads.entries()) {
      const segment = segmentOf(head)
      this.#segments.push(segment)
      await this.#scan(at, head, segment)
    }
    const records = this.#records ?? new Map<string, Uint8Array>()
    return { segments: this.#segments, index: this.#index, records, loss: this.#loss }
  }

  async #scan(at: number, head: SegmentHead, segment: Segment): Promise<void> {
    const { file, sequence, header } = head
    const next = this.#heads[at + 1]
    const isLast = next === undefined
    const window = new SegmentWindow(file)
    if (header === undefined) this.#loss.tell(segment, 0, badHeader)
    const checks = sequence >= this.#checkedFrom
    const onFound = async (found: Found): Promise<void> => {
      const isKnown = isLast && (await this.#findBase(at, found, segment))
      if (found.kind === 'damage') {
        if (!isKnown) this.#loss.lose(segment, found.offset, found.what)
        return
      }
      noteFlushes(this.#index, segment, found.frame)
      if (isLast) await takeRecords(this.#records, window, found.frame)
      if (!isKnown) await this.#loss.onFrame(window, found, segment, isLast)
    }
    const end = await new SegmentScan(window, boundsFrom(head, next), checks, onFound).run()
    Object.assign(segment, end)
    if (isLast) await this.#findBase(at, undefined, segment)
    const { fileBytes = 0 } = header ?? {}
    if (file.length < fileBytes) this.#loss.lose(segment, file.length, cutShort)
    if (next === undefined || next.header !== undefined) return
    const isGap = segment.nextNumber !== next.firstNumber
    if (isGap) this.#loss.lose(segment, segment.end, gapBehind)
  }

  /**
   * At the first thing found in the last segment. Where that is no sound checkpoint, the segments before have what it
   * repeats. True: `found` is damaged, and all that it held is known from there.
   */
  async #findBase(at: number, found: Found | undefined, segment: Segment): Promise<boolean> {
    if (this.#records !== undefined) return false
    this.#records = new Map()
    if (isCheckpoint(found)) return false
    const { records, isCertain } = await recordsAt(this.#heads, at)
    this.#records = records
    if (!this.#loss.tell(segment, headerBytes, noCheckpoint)) return true
    if (isCertain) this.#loss.know([...records.values()])
    else if (found === undefined) this.#loss.lose(segment, headerBytes, noCheckpoint)
    return isCertain
  }
}

/** The first of the segments that hold `bytes` of frames before the last one. */
function newestFrom(heads: readonly SegmentHead[], bytes: number): number {
  let left = bytes
  for (let at = heads.length - 1; at > 0; at--) {
    const { header, sequence } = heads[at] ?? {}
    if (left <= 0) return sequence ?? 0
    left -= header?.previousEnd ?? 0
  }
  return heads[0]?.sequence ?? 0
}

interface Base {
  readonly records: Map<string, Uint8Array>
  /** False: newer ones may be lost. */
  readonly isCertain: boolean
}

/** The records as they were where a segment begins, out of the segments before it. */
async function recordsAt(heads: readonly SegmentHead[], at: number): Promise<Base> {
  const [head, before] = [heads[at], heads[at - 1]]
  if (before === undefined) return { records: new Map(), isCertain: head?.sequence === 1 }
  let records: Map<string, Uint8Array> | undefined
  let isCertain = true
  const window = new SegmentWindow(before.file)
  const onFound = async (found: Found): Promise<void> => {
    const isFirst = records === undefined
    if (isCheckpoint(found)) records = new Map()
    else if (isFirst) ({ records, isCertain } = await recordsAt(heads, at - 1))
    if (!isFirst && !(found.kind === 'frame' && found.isSound)) isCertain = false
    if (found.kind === 'frame') await takeRecords(records, window, found.frame)
  }
  await new SegmentScan(window, boundsFrom(before, head), true, onFound).run()
  return { records: records ?? new Map(), isCertain: isCertain && records !== undefined }
}

function isCheckpoint(found: Found | undefined): boolean {
  return found?.kind === 'frame' && found.isSound && found.frame.kind === 'checkpoint'
}

/** The records in a frame whose own checksums hold. */
async function takeRecords(
  records: Map<string, Uint8Array> | undefined,
  window: SegmentWindow,
  { parts }: Frame,
): Promise<void> {
  for (const part of parts) {
    if (part.name === undefined || !(await window.isSound(part))) continue
    records?.set(part.name, await window.valueOf(part))
  }
}
