/** A journal in simulated segment files, and values that tell by themselves whether they are sound, as the log's do. */
import { crc32 } from '../../src/base/bytes.ts'
import type { Journal, JournalRecord, JournalWrite, LostWrites } from '../../src/ports/journal.ts'
import { systemRandom } from '../../src/adapters/system-random.ts'
import { decodeFrame, type Frame } from '../../src/journal/segment-format.ts'
import { openSegmentJournal } from '../../src/journal/segment-journal.ts'
import { SimSegments } from '../../sim/world/segments.ts'

export class Fixture {
  /** Reads wait for it, where a test holds them back. */
  held: Promise<void> | undefined
  readonly disk: SimSegments = new SimSegments({
    waitToRead: () => this.held,
    schedule: (complete) => void setImmediate(complete),
  })
  readonly segmentBytes: number
  readonly flushes: Map<number, string> = new Map()
  readonly records: Map<string, string> = new Map()
  #journal: Journal | undefined

  constructor(segmentBytes = 4096) {
    this.segmentBytes = segmentBytes
  }

  get journal(): Journal {
    if (this.#journal === undefined) throw new Error('not opened')
    return this.#journal
  }

  async open(): Promise<Journal> {
    const { disk, segmentBytes } = this
    this.#journal = await openSegmentJournal({
      folder: disk.open(),
      random: systemRandom,
      segmentBytes,
    })
    return this.#journal
  }

  /** As after a process that ended at rest. */
  async reopen(): Promise<Journal> {
    await this.#journal?.close()
    return this.open()
  }

  /** A flush of about `length` bytes, and records. */
  async append(length = 300, names: readonly string[] = []): Promise<void> {
    const number = this.flushes.size + 1
    const text = sealed('flush', String(number), length)
    const records = names.map((name) => this.#record(name, number))
    await this.journal.append({ number, bytes: Buffer.from(text) }, records)
    this.flushes.set(number, text)
    for (const { name, value } of records) this.records.set(name, value.toString())
  }

  #record(name: string, number: number): JournalRecord & { readonly value: Buffer } {
    return { name, value: Buffer.from(sealed(name, String(number), 20)) }
  }

  /** Names of segments, the oldest first. */
  get segments(): readonly string[] {
    return this.disk.names.filter((name) => /^\d/.test(name))
  }

  /** The frames of a segment in order. */
  splitIntoFrames(name: string): readonly Frame[] {
    const bytes = this.disk.bytesOf(name)
    const frames: Frame[] = []
    for (let at = 128; at < bytes.length; at += 64) {
      const frame = decodeFrame(bytes.subarray(at), at)
      const isNext = frames.length === 0 || frame?.salt === frames[0]?.salt
      if (frame !== undefined && isNext) frames.push(frame)
    }
    return frames
  }
}

export function sealed(kind: string, content: string, length: number): string {
  const text = `${kind}|${content}|`.padEnd(length, `${content}.`)
  return `${text}|${crc32(Buffer.from(text))}`
}

/** The kind and content of a sound value. */
export function unsealed(
  bytes: Uint8Array,
): { readonly kind: string; readonly content: string } | undefined {
  const text = Buffer.from(bytes).toString('latin1')
  const end = text.lastIndexOf('|')
  if (end < 0 || String(crc32(Buffer.from(text.slice(0, end), 'latin1'))) !== text.slice(end + 1))
    return undefined
  const [kind = '', content = ''] = text.split('|')
  return { kind, content }
}

/** The sound values of lost writes, the newest of each. */
export function soundOf({ writes }: LostWrites): JournalWrite {
  const flushes = new Map<number, Uint8Array>()
  const records = new Map<string, Uint8Array>()
  for (const bytes of writes.flatMap((values) => values ?? [])) {
    const found = unsealed(bytes)
    if (found?.kind === 'flush') flushes.set(Number(found.content), bytes)
    else if (found !== undefined) records.set(found.kind, bytes)
  }
  return {
    flushes: [...flushes].map(([number, bytes]) => ({ number, bytes })),
    records: [...records].map(([name, value]) => ({ name, value })),
  }
}

export function textOf(bytes: Uint8Array | undefined): string | undefined {
  return bytes && Buffer.from(bytes).toString()
}

/** `corrupt` for a flush that the journal says is damaged or lost. */
export function readOf(journal: Journal, number: number): string | undefined {
  try {
    return textOf(journal.read(number))
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'corrupt') return 'corrupt'
    throw error
  }
}
