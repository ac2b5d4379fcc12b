/**
 * The flushes and records of a log, each against its own checksums and its neighbours: the same rules by which a start
 * takes a log up (`../log/log-recovery.ts`), for all flushes and without an end at the first break.
 */
import { StoreError } from '../base/errors.ts'
import type { GroupId } from '../base/ids.ts'
import { readPayload, type FlushHeader } from '../log/flush.ts'
import { decodeDamages, damagesName } from '../log/log-mending.ts'
import { decodeMeta, metaCopyName, metaName, type LogMeta } from '../log/log-meta.ts'
import { decodeMemory, memoryName } from '../log/peer-memory.ts'
import { decodeEntry } from '../replication/entry.ts'
import type { Findings, NameGroup } from './finding.ts'
import { readFlushes, type ReadFlush } from './flush-pass.ts'
import type { LogView } from './segment-view.ts'

export interface LogFigures {
  /** Flush numbers; 0 and 0 of an empty log. */
  readonly first: number
  readonly last: number
  readonly flushes: number
  readonly records: number
  readonly bytes: number
}

export interface LogCheckParts {
  readonly log: LogView['log']
  readonly findings: Findings
  readonly nameGroup: NameGroup
  /** Called with each flush whose header is sound. */
  readonly onFlush: (header: FlushHeader) => void
  readonly onBytes: (bytes: number) => void
}

/** The identity that the log keeps of itself, or undefined where it has none that can be used. */
export function checkRecords(
  { log }: Pick<LogCheckParts, 'log'>,
  findings: Findings,
): LogMeta | undefined {
  const [bytes, copy] = [log.record(metaName), log.record(metaCopyName)]
  const meta = bytes && readMeta(bytes, findings)
  if (bytes === undefined) findings.add('log', 'the log has no record of its identity')
  const isSame = bytes !== undefined && copy !== undefined && Buffer.compare(bytes, copy) === 0
  if (bytes !== undefined && !isSame) {
    const text =
      copy === undefined
        ? 'the log has no second copy of the record of its identity'
        : 'the two copies of the record of its identity in the log differ'
    findings.add('log', text)
  }
  const memory = log.record(memoryName)
  if (memory === undefined) findings.add('log', 'the log has no memory of peers')
  else if (decodeMemory(memory) === undefined) {
    findings.add('log', 'the memory of peers in the log is damaged, or was lost')
  }
  const damages = log.record(damagesName)
  if (damages !== undefined && decodeDamages(damages) === undefined) {
    findings.add('log', 'what the log keeps of earlier damage cannot be read')
  }
  return meta
}

function readMeta(bytes: Uint8Array, findings: Findings): LogMeta | undefined {
  try {
    return decodeMeta(bytes)
  } catch (error) {
    if (!(error instanceof StoreError)) throw error
    const isFormat = error.code === 'invalid'
    findings.add(
      'log',
      isFormat ? error.message : 'the record of its identity in the log is damaged',
    )
    return undefined
  }
}

/** Reads all flushes that `meta` has not given up. */
export async function checkFlushes(
  parts: LogCheckParts,
  meta: LogMeta | undefined,
): Promise<LogFigures> {
  const check = new FlushCheck(parts, meta)
  for await (const flush of readFlushes(parts.log, meta?.firstFlush ?? 0)) check.take(flush)
  return check.end()
}

class FlushCheck {
  readonly #parts: LogCheckParts
  readonly #meta: LogMeta | undefined
  #before: Pick<FlushHeader, 'number' | 'crc' | 'incarnation'> | undefined
  #next: number
  #first = 0
  #flushes = 0
  #records = 0
  #bytes = 0

  constructor(parts: LogCheckParts, meta: LogMeta | undefined) {
    this.#parts = parts
    this.#meta = meta
    this.#next = meta?.firstFlush ?? 1
    const { firstFlush, previousCrc: crc } = meta ?? { firstFlush: 1, previousCrc: 0 }
    this.#before = { number: firstFlush - 1, crc, incarnation: 0 }
  }

  take({ number, bytes, header }: ReadFlush): void {
    const { findings, onFlush, onBytes } = this.#parts
    this.#flushes += 1
    this.#bytes += bytes.length
    if (this.#first === 0) this.#first = number
    if (number > this.#next) this.#tellMissing(number - 1)
    this.#next = number + 1
    if (header === undefined || header.number !== number) {
      const text =
        header === undefined
          ? `the header of flush ${number} is damaged`
          : `flush ${header.number} stands in the place of flush ${number}`
      findings.add('log', text, { flush: number })
      this.#before = undefined
    } else {
      this.#records += header.records.length
      this.#checkChain(header)
      this.#checkValues(header, bytes)
      this.#before = header
      onFlush(header)
    }
    onBytes(bytes.length)
  }

  #tellMissing(last: number): void {
    const first = this.#next
    const text =
      first === last ? `flush ${first} is missing` : `flushes ${first} to ${last} are missing`
    this.#parts.findings.add('log', text, { flush: first })
    this.#before = undefined
  }

  #checkChain({ number, previousCrc, incarnation }: FlushHeader): void {
    const before = this.#before
    if (before === undefined) return
    const { findings } = this.#parts
    if (previousCrc !== before.crc) {
      const text = `flush ${number} does not go on from flush ${before.number}: it names another checksum of it`
      findings.add('log', text, { flush: number })
    }
    if (incarnation < before.incarnation) {
      const text = `flush ${number} is of incarnation ${incarnation}, and the one before it of ${before.incarnation}`
      findings.add('log', text, { flush: number })
    }
  }

  #checkValues({ number: flush, records }: FlushHeader, bytes: Uint8Array): void {
    for (const [index, { group, position, piece }] of records.entries()) {
      if (piece === undefined) continue
      const payload = readPayload(bytes, piece)
      if (payload !== undefined && decodeEntry(payload)?.position === position) continue
      const what = payload === undefined ? 'does not match its checksum' : 'is no entry of it'
      const text = `the value of ${this.#name(group)} at position ${position}, record ${index} of flush ${flush}, ${what}`
      this.#parts.findings.add('log', text, { flush, group, position })
    }
  }

  #name(group: GroupId): string {
    return this.#parts.nameGroup(group)
  }

  end(): LogFigures {
    const incarnation = this.#before?.incarnation ?? 0
    const known = this.#meta?.incarnation
    if (known !== undefined && incarnation > known) {
      const text = `the record of the log's identity is of incarnation ${known}, and its last flush of ${incarnation}: an older record stands in its place`
      this.#parts.findings.add('log', text)
    }
    return {
      first: this.#first,
      last: this.#flushes === 0 ? 0 : this.#next - 1,
      flushes: this.#flushes,
      records: this.#records,
      bytes: this.#bytes,
    }
  }
}
