/** Requests to entity groups and their answers ⇄ positional arrays. */
import {
  keyBytesMax,
  rangeEndBytesMax,
  transactionBytesMax,
  transactionMutationsMax,
} from '../base/limits.ts'
import type { Packable } from '../base/pack.ts'
import type { Outcome, Row, RowRange } from '../replica/local-replica.ts'
import { decodeTransaction, encodeTransaction } from '../replication/transaction.ts'
import type { CommitGroup, GroupAnswer, ReadGroup } from '../txn/group-operation.ts'
import type { ReadFrom, RowPage, View } from '../txn/group-port.ts'
import * as part from './client-fields.ts'
import * as field from './peer-fields.ts'
import { packVerdict, readVerdict } from './verdict.ts'

/** A transaction's keys and values, and what it takes to tell them apart. */
const transactionWireBytesMax: number = transactionBytesMax + transactionMutationsMax * 64
const rowBytesMax: number = transactionBytesMax
/** Keys, and ranges, of one request. */
const keysMax = 10_000

const froms = ['current', 'snapshot', 'at', 'inconsistent'] as const

export function packReadGroup({ group, from, atLeast, keys, range }: ReadGroup): Packable[] {
  const timestamp = from.kind === 'at' ? from.timestamp : undefined
  return [group, froms.indexOf(from.kind), timestamp, atLeast, keys, range && packRange(range)]
}

function packRange({ gte, gt, lt, reverse, limit }: RowRange): Packable {
  return [gte, gt, lt, reverse === true, limit]
}

export function readReadGroup(fields: readonly unknown[]): ReadGroup {
  const [group, from, timestamp, atLeast, keys, range] = field.list(fields, 'read-group', 6)
  return {
    kind: 'read-group',
    group: field.group(group),
    from: readFrom(from, timestamp),
    atLeast: field.count(atLeast, 'at least'),
    keys: part.some(keys, 'keys', keysMax).map(readKey),
    ...(!field.isAbsent(range) && { range: readRowRange(range) }),
  }
}

function readFrom(number: unknown, timestamp: unknown): ReadFrom {
  const kind = typeof number === 'number' ? froms[number] : undefined
  if (kind === undefined) throw new field.MalformedError('read is of no known kind')
  return kind === 'at' ? { kind, timestamp: field.count(timestamp, 'timestamp') } : { kind }
}

function readKey(value: unknown): Uint8Array {
  return field.bytes(value, 'key', keyBytesMax)
}

function readBound(value: unknown): Uint8Array {
  return field.bytes(value, 'bound', rangeEndBytesMax)
}

function readRowRange(value: unknown): RowRange {
  const [gte, gt, lt, reverse, limit] = field.list(value, 'range', 5)
  return {
    ...(!field.isAbsent(gte) && { gte: readBound(gte) }),
    ...(!field.isAbsent(gt) && { gt: readBound(gt) }),
    ...(!field.isAbsent(lt) && { lt: readBound(lt) }),
    reverse: part.flag(reverse, 'reverse'),
    ...(!field.isAbsent(limit) && { limit: field.count(limit, 'limit', 1) }),
  }
}

export function packCommitGroup({ submission }: CommitGroup): Packable[] {
  const { group, intent, attempt, readPosition, reads, ranges = [] } = submission
  const { allocations, mutations } = submission
  const transaction = encodeTransaction({ ...intent, attempt, allocations, mutations })
  return [group, readPosition, reads, ranges.map(({ gte, lt }) => [gte, lt]), transaction]
}

export function readCommitGroup(fields: readonly unknown[]): CommitGroup {
  const [group, readPosition, reads, ranges, bytes] = field.list(fields, 'commit-group', 5)
  const transaction = decodeTransaction(field.bytes(bytes, 'transaction', transactionWireBytesMax))
  if (transaction === undefined) throw new field.MalformedError('transaction is none')
  const { session, sequence, floor, expiresAt, attempt, allocations, mutations } = transaction
  return {
    kind: 'commit-group',
    submission: {
      group: field.group(group),
      intent: { session, sequence, floor, expiresAt },
      ...{ attempt, allocations, mutations },
      readPosition: field.count(readPosition, 'read position'),
      reads: part.some(reads, 'reads', keysMax).map(readKey),
      ranges: part.some(ranges, 'ranges', keysMax).map(field.keyRange),
    },
  }
}

export function packGroupRows(answer: GroupAnswer & { kind: 'read-group' }): Packable[] {
  const { view, rows, page } = answer
  const packed = page && [page.rows.map(packRow), page.isWhole]
  return [view.position, view.asOf, rows.map((row) => row && packRow(row)), packed]
}

function packRow({ key, value, timestamp }: Row): Packable {
  return [key, value, timestamp]
}

export function readGroupRows(fields: readonly unknown[]): GroupAnswer {
  const [position, asOf, rows, page] = field.list(fields, 'read-group', 4)
  const view: View = {
    position: field.count(position, 'position'),
    asOf: part.optional(asOf, (one) => field.count(one, 'as of')),
  }
  const found = part.some(rows, 'rows', keysMax).map((row) => part.optional(row, readRow))
  if (field.isAbsent(page)) return { kind: 'read-group', view, rows: found }
  return { kind: 'read-group', view, rows: found, page: readPage(page) }
}

function readPage(value: unknown): RowPage {
  const [rows, isWhole] = field.list(value, 'page', 2)
  return {
    rows: part.some(rows, 'rows', keysMax).map(readRow),
    isWhole: part.flag(isWhole, 'whole'),
  }
}

function readRow(value: unknown): Row {
  const [key, content, timestamp] = field.list(value, 'row', 3)
  return {
    key: readKey(key),
    value: field.bytes(content, 'value', rowBytesMax),
    timestamp: field.count(timestamp, 'timestamp'),
  }
}

/** A verdict, or nil for an outcome that is not known. */
export function packGroupOutcome(answer: GroupAnswer & { kind: 'commit-group' }): Packable[] {
  const { outcome, leader } = answer
  return [outcome.kind === 'unknown' ? undefined : packVerdict(outcome), leader]
}

export function readGroupOutcome(fields: readonly unknown[]): GroupAnswer {
  const [verdict, leader] = field.list(fields, 'commit-group', 2)
  const outcome: Outcome = field.isAbsent(verdict) ? { kind: 'unknown' } : readVerdict(verdict)
  if (field.isAbsent(leader)) return { kind: 'commit-group', outcome }
  return { kind: 'commit-group', outcome, leader: field.node(leader) }
}
