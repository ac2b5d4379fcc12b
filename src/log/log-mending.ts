/**
 * The mending of a log whose journal was damaged while its node was down. The store passes over batches then, and
 * what it shows may be older than what was durable, without a gap: a promise gone, a memory of peers of
 * yesterday. The mending puts the rest of the batches back as far as their own checksums vouch for them.
 *
 * LOG-13  A log whose journal was damaged is used only where a flush after each batch that cannot be made out tells by
 *         its number what is missing; a memory of peers that may be older than such a batch counts as lost.
 */
import { assert } from '../base/assert.ts'
import { bufferOf, latin1 } from '../base/bytes.ts'
import type { JournalDamage, OrderedStore, Put } from '../ports/storage.ts'
import type { Trace } from '../ports/trace.ts'
import { corruptLog } from '../store/damage.ts'
import { decodeFlush, flushKey, type FlushStamp } from './flush.ts'
import { checkOwner, metaKey, metaOf, type LogMeta, type Owner } from './log-meta.ts'
import { decodeMemory, encodeLostMemory, memoryKey } from './peer-memory.ts'
import { getChecked } from '../store/read-store.ts'
import { fieldsOf, sealRecord } from './sealed-record.ts'

/** The losses that a log was once found to have, as it keeps them. */
export interface LogDamage {
  /** Which files, where and how. */
  readonly what: string
  /** Flushes that cannot be read any more; their records stand in the rows, or the log is not used. */
  readonly lostFlushes: readonly number[]
  /** Other nodes have to say which peer votes with which store. */
  readonly isMemoryLost: boolean
  /** A scrub found it beneath a node that was running, and that wrote anew what a start would read there (DISK-16). */
  readonly isRenewed: boolean
}

export const damagesKey: Uint8Array = Buffer.from('damages')
const damagesFormat = 'damages 1'
/** The last ones are kept. */
const damagesMax = 20
/** Flushes that are named of one damage. */
const lostFlushesMax = 1000

/**
 * Before anything else is read of the log. Rejects with `corrupt` where it must not be used, with `invalid` where it
 * belongs to another node: nothing is written to it then.
 */
export async function mendLog(store: OrderedStore, owner: Owner, trace: Trace): Promise<void> {
  const { damage } = store
  if (damage === undefined) return
  const { what } = damage
  const left = sift(damage)
  for (const meta of metasIn(store, left)) checkOwner(meta, owner.cluster, owner.node)
  if (left.mayEndEarly) {
    throw corruptLog(`${what}; what cannot be read there may have been its last flush`)
  }
  const known = metasIn(store, left).map((meta) => meta.incarnation)
  // Raised by now it would be no older than its flushes, and still tell of shorter leases than were given.
  if (left.incarnation > Math.max(0, ...known)) {
    throw corruptLog(`${what}; the record of its identity was there`)
  }
  const lostFlushes = left.afterGaps.flatMap((number) => missingBefore(store, left.puts, number))
  const { isMemoryOld: isMemoryLost } = left
  if (isMemoryLost) left.puts.set(latin1(memoryKey), lostMemory)
  const lost = { lostFlushes: lostFlushes.slice(0, lostFlushesMax), isMemoryLost }
  const found = { what, ...lost, isRenewed: false }
  const told = left.puts.get(latin1(damagesKey))?.value
  const before = told === undefined ? readDamages(store) : decodeDamages(told)
  const damages = [...(before ?? []), found].slice(-damagesMax)
  const isOld = isMemoryLost && left.puts.get(latin1(memoryKey)) !== lostMemory
  assert(!isOld && !left.mayEndEarly, 'LOG-13: a log is used that may be older than it was')
  await store.write([...left.puts.values(), damagesPut(damages)])
  await damage.done()
  trace.mark('damaged_journal_mended')
  if (isMemoryLost) trace.mark('peer_memory_lost_with_journal')
  if (lostFlushes.length > 0) trace.mark('flush_lost_with_journal')
}

const lostMemory: Put = { key: memoryKey, value: encodeLostMemory() }

/** Those that are to be had of the folder's own record, which may be of several openings. */
function metasIn(store: OrderedStore, { puts }: Left): readonly LogMeta[] {
  const found = [getChecked(store, metaKey), puts.get(latin1(metaKey))?.value]
  return found.flatMap((bytes) => {
    const meta = bytes === undefined || bytes === 'damaged' ? undefined : metaOf(bytes)
    return meta === undefined ? [] : [meta]
  })
}

/** The content that could be made out of a journal. */
interface Left {
  /** The puts to write back, by key: the newest of each. */
  readonly puts: Map<string, Put>
  /** The highest that a flush names. */
  readonly incarnation: number
  /** The flushes that come next after something that cannot be made out. */
  readonly afterGaps: readonly number[]
  /** No flush comes after something that cannot be made out. */
  readonly mayEndEarly: boolean
  /** No memory of peers does. */
  readonly isMemoryOld: boolean
}

function sift({ batches }: JournalDamage): Left {
  const puts = new Map<string, Put>()
  const afterGaps: number[] = []
  let incarnation = 0
  let [mayEndEarly, isMemoryOld] = [false, false]
  for (const batch of batches) {
    const known = batch?.map(madeOut) ?? [undefined]
    const isWhole = !known.includes(undefined)
    const found = known.filter((one) => one !== undefined)
    for (const { put } of found) puts.set(latin1(put.key), put)
    // A batch has one flush at most.
    const flush = found.find((one) => one.flush !== undefined)?.flush
    if (flush !== undefined) {
      if (mayEndEarly) afterGaps.push(flush.number)
      incarnation = Math.max(incarnation, flush.incarnation)
      mayEndEarly = false
    } else if (!isWhole) mayEndEarly = true
    if (found.some(({ put }) => put.key === memoryKey)) isMemoryOld = false
    else if (!isWhole) isMemoryOld = true
  }
  return { puts, incarnation, afterGaps, mayEndEarly, isMemoryOld }
}

interface MadeOut {
  readonly put: Put
  readonly flush?: FlushStamp
}

/** Where the value belongs, by what it is: its key may be what is damaged. */
function madeOut({ value }: Put): MadeOut | undefined {
  if (value === undefined) return undefined
  const flush = decodeFlush(value)
  if (flush !== undefined) return { put: { key: flushKey(flush.number), value }, flush }
  const key = keyOf(value)
  return key && { put: { key, value } }
}

function keyOf(value: Uint8Array): Uint8Array | undefined {
  if (metaOf(value) !== undefined) return metaKey
  if (decodeDamages(value) !== undefined) return damagesKey
  return decodeMemory(value) === undefined && !isLostMemory(value) ? undefined : memoryKey
}

function isLostMemory(value: Uint8Array): boolean {
  return bufferOf(value).equals(lostMemory.value ?? new Uint8Array())
}

/** Flushes right before this one that are neither in the store nor put back. */
function missingBefore(
  store: OrderedStore,
  puts: ReadonlyMap<string, Put>,
  number: number,
): readonly number[] {
  const missing: number[] = []
  for (let before = number - 1; before > 0; before--) {
    const key = flushKey(before)
    if (puts.has(latin1(key)) || getChecked(store, key) !== undefined) break
    missing.unshift(before)
  }
  return missing
}

/** The same as a line of the node's log. */
export function tellDamages(store: OrderedStore, trace: Trace): readonly LogDamage[] {
  const nothing = { lostFlushes: [], isMemoryLost: false, isRenewed: false }
  const damages = readDamages(store) ?? [{ what: 'what was damaged before', ...nothing }]
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
export function figuresOf(damages: readonly LogDamage[]): {
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
export function readDamages(store: OrderedStore): readonly LogDamage[] | undefined {
  const bytes = getChecked(store, damagesKey)
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

export function damagesPut(damages: readonly LogDamage[]): Put {
  return { key: damagesKey, value: encodeDamages(damages) }
}

/** Undefined for bytes that are not such a record, whole. */
export function decodeDamages(bytes: Uint8Array): readonly LogDamage[] | undefined {
  return fieldsOf(bytes, damagesFormat)?.flatMap((row: unknown): LogDamage[] => {
    const [what, isMemoryLost, ...lost]: unknown[] = Array.isArray(row) ? row : []
    if (typeof what !== 'string' || typeof isMemoryLost !== 'boolean') return []
    const lostFlushes = lost.filter((one) => typeof one === 'number')
    return [{ what, isMemoryLost, lostFlushes, isRenewed: lost[0] === true }]
  })
}
