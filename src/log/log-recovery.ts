/**
 * Taking a log up again: whose it is, then the flushes after those that are settled, in order, folded
 * into the index; all of them where nothing is.
 *
 * A bad payload makes one position faulty. A flush that is missing, out of order or bad in its
 * header leaves unknown which groups it concerned, and the store must not be used: one of the
 * lost records may be a vote that a peer has counted. Older flushes are read when a record in them is needed: the rows
 * say what that is, so that damage there costs the positions that are read. A missing tail cannot be seen here: peers know it by the flush number.
 */
import { equalBytes } from '../base/bytes.ts'
import { storeId } from '../base/ids.ts'
import { randomUuid, type Random } from '../ports/random.ts'
import type { KeyValue, OrderedStore } from '../ports/storage.ts'
import type { Trace } from '../ports/trace.ts'
import { corruptLog } from '../store/damage.ts'
import {
  decodeFlush,
  flushesFrom,
  flushKey,
  numberOfKey,
  readPayload,
  type FlushHeader,
} from './flush.ts'
import type { FlushLedger } from './flush-ledger.ts'
import type { LogIndex } from './log-index.ts'
import { checkOwner, decodeMeta, metaKey, metaPuts, type LogMeta, type Owner } from './log-meta.ts'
import { mendLog } from './log-mending.ts'
import { decodeMemory, encodeMemory, memoryKey, type Remembered } from './peer-memory.ts'
import { getChecked, scanRows } from '../store/read-store.ts'
import type { FlushMark } from './settled.ts'

/**
 * The folder's record with the incarnation raised, durably, before anything else is done: a number
 * drawn in this incarnation can never have been drawn before. Nothing is written to a folder of
 * another node. A journal that was damaged is mended first.
 */
export async function openMeta(
  store: OrderedStore,
  owner: Owner,
  random: Random,
  trace: Trace,
): Promise<LogMeta> {
  await mendLog(store, owner, trace)
  const bytes = getChecked(store, metaKey)
  if (bytes === 'damaged') throw corruptLog('the record of its identity cannot be read')
  if (bytes === undefined) await refuseOrphans(store)
  const found = bytes === undefined ? undefined : decodeMeta(bytes)
  if (found !== undefined) checkOwner(found, owner.cluster, owner.node)
  const { cluster, node } = owner
  const fresh = { cluster, node, incarnation: 0, firstFlush: 1, previousCrc: 0, longestLeaseMs: 0 }
  const last = found ?? { ...fresh, storeId: storeId(randomUuid(random)) }
  const longestLeaseMs = Math.max(last.longestLeaseMs, owner.leaseMs)
  const meta = { ...last, incarnation: last.incarnation + 1, longestLeaseMs }
  const [put, copy] = metaPuts(meta)
  const puts = [put]
  // A log that begins now remembers that it has met no peer.
  if (found === undefined) puts.push({ key: memoryKey, value: encodeMemory([]) })
  puts.push(copy)
  await store.write(puts)
  return meta
}

/** The log's memory of peers; undefined when that is lost, or older than the record. */
export function readMemory(
  store: OrderedStore,
  lastFlush: number,
): readonly Remembered[] | undefined {
  const bytes = getChecked(store, memoryKey)
  if (bytes === 'damaged') return undefined
  if (bytes !== undefined) return decodeMemory(bytes)
  // A node that has written nothing has never voted, nor counted a vote.
  return lastFlush === 0 ? [] : undefined
}

/** Flushes without the record of whose they are: that record was lost. */
async function refuseOrphans(store: OrderedStore): Promise<void> {
  for await (const _ of scanRows(store, { ...flushesFrom(1), limit: 1 }, corruptLog)) {
    throw corruptLog('the record of its identity is missing')
  }
}

/** The flush that the fold goes on from. Throws `corrupt` when it is not the one that was settled. */
export function settledEnd(
  store: OrderedStore,
  { firstFlush, previousCrc }: LogMeta,
  mark: FlushMark | undefined,
): FlushMark {
  if (mark === undefined || mark.number < firstFlush) {
    return { number: firstFlush - 1, incarnation: 0, crc: previousCrc }
  }
  const { number, crc } = mark
  const bytes = getChecked(store, flushKey(number))
  if (bytes === undefined) {
    throw corruptLog(`it ends before flush ${number}, which the data store has taken in`)
  }
  const header = bytes === 'damaged' ? undefined : decodeFlush(bytes)
  if (header === undefined) throw corruptLog(`the header of flush ${number} is damaged`)
  if (header.number !== number || header.crc !== crc) {
    throw corruptLog(`flush ${number} is another one than the data store has taken in`)
  }
  return mark
}

/** Flushes between two lines of the node's log about a long fold. */
const progressFlushes = 1_000

/**
 * Folds the flushes after `from` into `index` and `ledger`. Gives the last one: the next goes on from
 * it. Rejects with `corrupt` at the first break.
 */
export async function recoverFlushes(
  store: OrderedStore,
  meta: LogMeta,
  from: FlushMark,
  index: LogIndex,
  ledger: FlushLedger,
  trace: Trace,
): Promise<FlushMark> {
  let end = from
  for await (const rows of scanRows(store, flushesFrom(from.number + 1), corruptLog)) {
    for (const row of rows) {
      const header = nextFlush(row, end)
      ledger.open(header.number)
      foldFlush(header, row.value, index, ledger, trace)
      ledger.close(header)
      end = header
      if ((header.number - from.number) % progressFlushes === 0) {
        trace.emit({ kind: 'folding', flush: header.number, last: await lastFlush(store) })
      }
    }
  }
  // A scan that ended early would have flush numbers used twice.
  if (getChecked(store, flushKey(end.number + 1)) !== undefined) {
    throw corruptLog(`flush ${end.number + 1} is there, but the store does not list it`)
  }
  // A flush of this incarnation, or of a later one, was written after a record that is not there.
  if (end.incarnation >= meta.incarnation) {
    throw corruptLog('the record of its identity is older than its flushes')
  }
  return end
}

/** For those who wait: flushes are checked one by one. */
async function lastFlush(store: OrderedStore): Promise<number> {
  const range = { ...flushesFrom(1), reverse: true, limit: 1 }
  for await (const [row] of scanRows(store, range, corruptLog)) {
    if (row !== undefined) return numberOfKey(row.key)
  }
  return 0
}

function nextFlush(row: KeyValue, end: FlushMark): FlushHeader {
  const number = end.number + 1
  if (!equalBytes(row.key, flushKey(number))) throw corruptLog(`flush ${number} is missing`)
  const header = decodeFlush(row.value)
  if (header === undefined) throw corruptLog(`the header of flush ${number} is damaged`)
  const isNext = header.number === number && header.previousCrc === end.crc
  if (!isNext || header.incarnation < end.incarnation) {
    throw corruptLog(`flush ${number} does not go on from the flush before it`)
  }
  return header
}

function foldFlush(
  header: FlushHeader,
  bytes: Uint8Array,
  index: LogIndex,
  ledger: FlushLedger,
  trace: Trace,
): void {
  for (const [at, record] of header.records.entries()) {
    const { piece } = record
    const isSound = piece === undefined || readPayload(bytes, piece) !== undefined
    const place = isSound ? { flush: header.number, index: at } : 'faulty'
    const { number } = header
    const group = index.fold(record, piece === undefined ? undefined : place, number)
    ledger.add(number, group, record.position, record.kind !== 'promise')
    if (isSound) continue
    trace.mark('damaged_value_found_at_start')
    trace.emit({ kind: 'faulty', group: record.group, position: record.position })
  }
}
