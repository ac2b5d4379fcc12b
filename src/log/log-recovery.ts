/**
 * Taking a log up again: whose it is, then the flushes after those that are settled, in order, folded
 * into the index; all of them where nothing is.
 *
 * A bad payload makes one position faulty. A flush that is missing, out of order or bad in its
 * header leaves unknown which groups it concerned, and the store must not be used: one of the
 * lost records may be a vote that a peer has counted. Older flushes are read when a value in them is needed, so that
 * damage there costs the positions that are read. A missing tail cannot be seen here: peers know it by the flush number.
 */
import { assert } from '../base/assert.ts'
import { StoreError } from '../base/errors.ts'
import { storeId, type StoreId } from '../base/ids.ts'
import { randomUuid, type Random } from '../ports/random.ts'
import type { Journal, JournalFlush } from '../ports/journal.ts'
import type { Trace } from '../ports/trace.ts'
import { corruptLog } from '../store/damage.ts'
import { decodeFlush, readPayload, type FlushHeader } from './flush.ts'
import type { FlushLedger } from './flush-ledger.ts'
import type { LogIndex } from './log-index.ts'
import { readFlush, readRecord, scanFlushes } from './journal-reads.ts'
import {
  checkOwner,
  checkSeat,
  decodeMeta,
  metaName,
  metaRecords,
  type LogMeta,
  type Owner,
} from './log-meta.ts'
import { mendLog } from './log-mending.ts'
import { lostEpochs } from './own-epochs.ts'
import {
  decodeEpochs,
  decodeMemory,
  encodeLostMemory,
  encodeMemory,
  memoryName,
  PeerMemory,
  type Remembered,
} from './peer-memory.ts'
import type { FlushMark } from './settled.ts'

/**
 * The folder's record with the incarnation raised, durably, before anything else is done: a number
 * drawn in this incarnation can never have been drawn before. Nothing is written to a folder of
 * another node. A journal that was damaged is mended first.
 */
export async function openMeta(
  journal: Journal,
  owner: Owner,
  random: Random,
  trace: Trace,
): Promise<LogMeta> {
  await mendLog(journal, owner, trace)
  const bytes = readRecord(journal, metaName)
  if (bytes === 'damaged') throw corruptLog('the record of its identity cannot be read')
  if (bytes === undefined) await refuseOrphans(journal)
  const found = bytes === undefined ? undefined : decodeMeta(bytes)
  if (found !== undefined) {
    checkOwner(found, owner.cluster, owner.node)
    checkSeat(found, owner.seat)
  }
  const last = found ?? makeMeta(owner, storeId(randomUuid(random)))
  const longestLeaseMs = Math.max(last.longestLeaseMs, owner.leaseMs)
  const meta = { ...last, incarnation: last.incarnation + 1, longestLeaseMs }
  const [record, copy] = metaRecords(meta)
  const records = [record]
  // A log that begins now remembers that it has met no peer. A newcomer is to hear from the others who votes.
  const memory = meta.seat > 0 ? encodeLostMemory() : encodeMemory([])
  if (found === undefined) records.push({ name: memoryName, value: memory })
  records.push(copy)
  await journal.checkpoint(records)
  return meta
}

/** Of an empty folder. The first start makes the incarnation the first one of its seat. */
function makeMeta({ cluster, node, seat = 0 }: Owner, id: StoreId): LogMeta {
  const incarnation = Math.max(0, seat - 1)
  const begin = { firstFlush: 1, previousCrc: 0, longestLeaseMs: 0, seat, epoch: 1 }
  return { storeId: id, cluster, node, incarnation, ...begin }
}

/** The log's memory of peers, and of epochs. */
export function readMemory(journal: Journal, meta: LogMeta, lastFlush: number): PeerMemory {
  const bytes = readRecord(journal, memoryName)
  const known = readStores(bytes, lastFlush)
  const isSound = known !== undefined && bytes !== undefined && bytes !== 'damaged'
  const epochs = isSound ? decodeEpochs(bytes) : undefined
  return new PeerMemory(known, epochs ?? lostEpochs(meta.seat, meta.epoch))
}

/** Undefined when they are lost, or older than the record. */
function readStores(
  bytes: Uint8Array | 'damaged' | undefined,
  lastFlush: number,
): readonly Remembered[] | undefined {
  if (bytes === 'damaged') return undefined
  if (bytes !== undefined) return decodeMemory(bytes)
  // A node that has written nothing has never voted, nor counted a vote.
  return lastFlush === 0 ? [] : undefined
}

/** Flushes without the record of whose they are: that record was lost. */
async function refuseOrphans(journal: Journal): Promise<void> {
  for await (const _ of scanFlushes(journal, 0)) {
    throw corruptLog('the record of its identity is missing')
  }
}

/**
 * The flush that the fold goes on from. Throws `corrupt` when it is not the one that was settled, and where the data store
 * is older than the flushes that the log has given up. One that holds nothing is restored by the peers (LOG-19).
 */
export function settledEnd(
  journal: Journal,
  { firstFlush, previousCrc }: LogMeta,
  mark: FlushMark | undefined,
): FlushMark {
  if (mark !== undefined && firstFlush > 1 && mark.number < firstFlush) {
    throw givenUp(firstFlush, mark)
  }
  if (mark === undefined) {
    return { number: firstFlush - 1, incarnation: 0, crc: previousCrc }
  }
  const { number, crc } = mark
  const bytes = readFlush(journal, number)
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

/** LOG-16: the mark's own flush stays, so a mark before the first flush is of an older data store. */
function givenUp(first: number, { number }: FlushMark): StoreError {
  return new StoreError(
    'corrupt',
    `The log of this node begins with flush ${first}: it gave up the flushes before. The folder "data" is older: it ` +
      `holds them through ${number} alone. Put the folder "data" back that was there last. Or move this one away: ` +
      'the node then starts with an empty one, and its peers restore it.',
    { store: 'data' },
  )
}

/** Flushes between two lines of the node's log about a long fold. */
const progressFlushes = 1_000

/**
 * Folds the flushes after `from` into `index` and `ledger`. Gives the last one: the next goes on from
 * it. Rejects with `corrupt` at the first break.
 */
export async function recoverFlushes(
  journal: Journal,
  meta: LogMeta,
  from: FlushMark,
  index: LogIndex,
  ledger: FlushLedger,
  trace: Trace,
): Promise<FlushMark> {
  let end = from
  for await (const flushes of scanFlushes(journal, from.number + 1)) {
    for (const flush of flushes) {
      const header = nextFlush(flush, end)
      ledger.open(header.number)
      foldFlush(header, flush.bytes, index, ledger, trace)
      ledger.close(header)
      end = header
      if ((header.number - from.number) % progressFlushes === 0) {
        trace.emit({ kind: 'folding', flush: header.number, last: await journal.last() })
      }
    }
  }
  // A scan that ended early would have flush numbers used twice.
  if (readFlush(journal, end.number + 1) !== undefined) {
    throw corruptLog(`flush ${end.number + 1} is there, but the journal does not list it`)
  }
  // A flush of this incarnation, or of a later one, was written after a record that is not there.
  if (end.incarnation >= meta.incarnation) {
    throw corruptLog('the record of its identity is older than its flushes')
  }
  return end
}

function nextFlush(flush: JournalFlush, end: FlushMark): FlushHeader {
  const number = end.number + 1
  if (flush.number !== number) throw corruptLog(`flush ${number} is missing`)
  const header = decodeFlush(flush.bytes)
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
  const previous = new Map(header.groups.map((named) => [named.group, named.previous]))
  for (const [at, record] of header.records.entries()) {
    const { piece } = record
    const isSound = piece === undefined || readPayload(bytes, piece) !== undefined
    const place = isSound ? { flush: header.number, index: at } : 'faulty'
    const { number } = header
    const group = index.fold(record, piece === undefined ? undefined : place, number)
    // Zero: a build that did not know it wrote the flush before, or there is none.
    const told = group.lastFlush === number ? 0 : (previous.get(record.group) ?? 0)
    assert(
      told === 0 || group.lastFlush === 0 || told === group.lastFlush,
      'LOG-15: a flush does not lead to the one before that names its group',
    )
    ledger.add(number, group, record.position, record.kind !== 'promise')
    if (isSound) continue
    trace.mark('damaged_value_found_at_start')
    trace.emit({ kind: 'faulty', group: record.group, position: record.position })
  }
}
