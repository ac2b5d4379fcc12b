/**
 * The mending of a log whose journal was damaged while its node was down. The store passes over batches then, and
 * what it shows may be older than what was durable, without a gap: a promise gone, a memory of peers of
 * yesterday. The mending puts the rest of the batches back as far as their own checksums vouch for them.
 *
 * LOG-13  A log whose journal was damaged is used only where a flush after each batch that cannot be made out tells by
 *         its number what is missing; a memory of peers that may be older than such a batch counts as lost.
 */
import { assert } from '../base/assert.ts'
import { asBuffer } from '../base/bytes.ts'
import type { Journal, JournalRecord, LostWrites } from '../ports/journal.ts'
import type { Trace } from '../ports/trace.ts'
import { corruptLog } from '../store/damage.ts'
import { decodeFlush } from './flush.ts'
import { readFlush, readRecord } from './journal-reads.ts'
import { checkOwner, metaName, tryDecodeMeta, type LogMeta, type Owner } from './log-meta.ts'
import { decodeMemory, encodeLostMemory, memoryName } from './peer-memory.ts'
import { openFields, sealRecord } from './sealed-record.ts'

/** The losses that a log was once found to have, as it keeps them. */
export interface LogDamage {
  /** Which files, where and how. */
  readonly what: string
  /** Flushes that cannot be read any more; their positions are settled, or the log is not used. */
  readonly lostFlushes: readonly number[]
  /** Other nodes have to say which peer votes with which store. */
  readonly isMemoryLost: boolean
  /** A scrub found it beneath a node that was running, and that wrote anew what a start would read there (DISK-16). */
  readonly isRenewed: boolean
}

export const damagesName = 'damages'
const damagesFormat = 'damages 1'
/** The last ones are kept. */
const damagesMax = 20
/** Flushes that are named of one damage. */
const lostFlushesMax = 1000

/**
 * Before anything else is read of the log. Rejects with `corrupt` where it must not be used, with `invalid` where it
 * belongs to another node: nothing is written to it then.
 */
export async function mendLog(journal: Journal, owner: Owner, trace: Trace): Promise<void> {
  const { lost } = journal
  if (lost === undefined) return
  const { what } = lost
  const left = sift(lost)
  for (const meta of metasIn(journal, left)) checkOwner(meta, owner.cluster, owner.node)
  if (left.mayEndEarly) {
    throw corruptLog(`${what}; what cannot be read there may have been its last flush`)
  }
  const known = metasIn(journal, left).map((meta) => meta.incarnation)
  // Raised by now it would be no older than its flushes, and still tell of shorter leases than were given.
  if (left.incarnation > Math.max(0, ...known)) {
    throw corruptLog(`${what}; the record of its identity was there`)
  }
  const { flushes, records, isMemoryOld: isMemoryLost } = left
  const first = Math.max(1, ...metasIn(journal, left).map((meta) => meta.firstFlush))
  const missing = (number: number): readonly number[] =>
    missingBefore(journal, flushes, number, first)
  const lostFlushes = left.afterGaps.flatMap(missing)
  if (isMemoryLost) records.set(memoryName, lostMemory)
  const found = {
    ...{ what, lostFlushes: lostFlushes.slice(0, lostFlushesMax), isMemoryLost },
    isRenewed: false,
  }
  const told = records.get(damagesName)
  const before = told === undefined ? readDamages(journal) : decodeDamages(told)
  const damages = [...(before ?? []), found].slice(-damagesMax)
  const isOld = isMemoryLost && records.get(memoryName) !== lostMemory
  assert(!isOld && !left.mayEndEarly, 'LOG-13: a log is used that may be older than it was')
  records.delete(damagesName)
  await lost.putBack({
    flushes: [...flushes].map(([number, bytes]) => ({ number, bytes })),
    records: [...[...records].map(([name, value]) => ({ name, value })), damagesRecord(damages)],
  })
  trace.mark('damaged_journal_mended')
  if (isMemoryLost) trace.mark('peer_memory_lost_with_journal')
  if (lostFlushes.length > 0) trace.mark('flush_lost_with_journal')
}

const lostMemory: Uint8Array = encodeLostMemory()

/** Those that are to be had of the folder's own record, which may be of several openings. */
function metasIn(journal: Journal, { records }: Left): readonly LogMeta[] {
  const found = [readRecord(journal, metaName), records.get(metaName)]
  return found.flatMap((bytes) => {
    const meta = bytes === undefined || bytes === 'damaged' ? undefined : tryDecodeMeta(bytes)
    return meta === undefined ? [] : [meta]
  })
}

/** The content that could be made out of a journal. */
interface Left {
  /** The flushes to write back, by number. */
  readonly flushes: ReadonlyMap<number, Uint8Array>
  /** The records to write back, by name: the newest of each. */
  readonly records: Map<string, Uint8Array>
  /** The highest that a flush names. */
  readonly incarnation: number
  /** The flushes that come next after something that cannot be made out. */
  readonly afterGaps: readonly number[]
  /** No flush comes after something that cannot be made out. */
  readonly mayEndEarly: boolean
  /** No memory of peers does. */
  readonly isMemoryOld: boolean
}

function sift({ writes }: LostWrites): Left {
  const flushes = new Map<number, Uint8Array>()
  const records = new Map<string, Uint8Array>()
  const afterGaps: number[] = []
  let incarnation = 0
  let [mayEndEarly, isMemoryOld] = [false, false]
  for (const values of writes) {
    let isWhole = values !== undefined
    let [hasFlush, hasMemory] = [false, false]
    for (const value of values ?? []) {
      const flush = decodeFlush(value)
      const name = flush === undefined ? nameFor(value) : undefined
      if (flush !== undefined) {
        hasFlush = true
        flushes.set(flush.number, value)
        if (mayEndEarly) afterGaps.push(flush.number)
        incarnation = Math.max(incarnation, flush.incarnation)
        mayEndEarly = false
      } else if (name === undefined) {
        isWhole = false
      } else {
        records.set(name, value)
        hasMemory ||= name === memoryName
      }
    }
    if (!isWhole && !hasFlush) mayEndEarly = true
    if (hasMemory) isMemoryOld = false
    else if (!isWhole) isMemoryOld = true
  }
  return { flushes, records, incarnation, afterGaps, mayEndEarly, isMemoryOld }
}

/** The name of a record, by what it is: the place where it stood may be what is damaged. */
function nameFor(value: Uint8Array): string | undefined {
  if (tryDecodeMeta(value) !== undefined) return metaName
  if (decodeDamages(value) !== undefined) return damagesName
  return decodeMemory(value) === undefined && !isLostMemory(value) ? undefined : memoryName
}

function isLostMemory(value: Uint8Array): boolean {
  return asBuffer(value).equals(lostMemory)
}

/** Flushes right before this one, from `first` on, that are neither in the journal nor put back. */
function missingBefore(
  journal: Journal,
  flushes: ReadonlyMap<number, Uint8Array>,
  number: number,
  first: number,
): readonly number[] {
  const missing: number[] = []
  for (let before = number - 1; before >= first; before--) {
    if (flushes.has(before) || readFlush(journal, before) !== undefined) break
    missing.unshift(before)
  }
  return missing
}

/** The same as a line of the node's log. */
export function tellDamages(journal: Journal, trace: Trace): readonly LogDamage[] {
  const nothing = { lostFlushes: [], isMemoryLost: false, isRenewed: false }
  const damages = readDamages(journal) ?? [{ what: 'what was damaged before', ...nothing }]
  for (const one of damages) tellDamage(one, trace)
  return damages
}

export function tellDamage(
  { what, lostFlushes, isMemoryLost, isRenewed }: LogDamage,
  trace: Trace,
): void {
  const lost = { lostFlushes: lostFlushes.length, isMemoryLost }
  trace.emit({ kind: 'log-damage', what, ...lost, isRenewed })
}

/** For status. */
export function countDamages(damages: readonly LogDamage[]): {
  readonly logDamages: number
  readonly lostFlushes: number
  readonly logDamage: readonly string[]
  readonly scrubLogDamages: number
} {
  const lostFlushes = damages.reduce((sum, one) => sum + one.lostFlushes.length, 0)
  return {
    logDamages: damages.length,
    lostFlushes,
    logDamage: damages.map(({ what }) => what),
    scrubLogDamages: damages.filter(({ isRenewed }) => isRenewed).length,
  }
}

/** The same list with one more, as it is kept; undefined: that one is in it already. */
export function withDamage(
  damages: readonly LogDamage[],
  found: LogDamage,
): readonly LogDamage[] | undefined {
  if (damages.some(({ what }) => what === found.what)) return undefined
  return [...damages, found].slice(-damagesMax)
}

/** The losses that this log was once found to have; undefined where they cannot be read. */
export function readDamages(journal: Journal): readonly LogDamage[] | undefined {
  const bytes = readRecord(journal, damagesName)
  if (bytes === undefined) return []
  return bytes === 'damaged' ? undefined : decodeDamages(bytes)
}

function encodeDamages(damages: readonly LogDamage[]): Uint8Array {
  const rows = damages.map(({ what, lostFlushes, isMemoryLost, isRenewed }) => [
    what,
    isMemoryLost,
    // Versions before this one pass over it.
    ...(isRenewed ? [true] : []),
    ...lostFlushes,
  ])
  return sealRecord(damagesFormat, rows)
}

export function damagesRecord(damages: readonly LogDamage[]): JournalRecord {
  return { name: damagesName, value: encodeDamages(damages) }
}

/** Undefined for bytes that are not such a record, whole. */
export function decodeDamages(bytes: Uint8Array): readonly LogDamage[] | undefined {
  return openFields(bytes, damagesFormat)?.flatMap((row: unknown): LogDamage[] => {
    const [what, isMemoryLost, ...lost]: unknown[] = Array.isArray(row) ? row : []
    if (typeof what !== 'string' || typeof isMemoryLost !== 'boolean') return []
    const lostFlushes = lost.filter((one) => typeof one === 'number')
    return [{ what, isMemoryLost, lostFlushes, isRenewed: lost[0] === true }]
  })
}
