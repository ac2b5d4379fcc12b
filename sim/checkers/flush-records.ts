/** The log records in what became durable on a log disk. */
import { numberOfKey } from '../../src/journal/ordered-journal.ts'
import { present } from '../../src/base/assert.ts'
import type { Put } from '../../src/ports/storage.ts'
import {
  decodeFlush,
  readPayload,
  type FlushRecord,
  type RecordHeader,
} from '../../src/log/flush.ts'

/** The records of a flush; of another row of the log store, none. */
export function decodeRecords(put: Put): readonly FlushRecord[] {
  const flush = flushIn(put)
  if (flush === undefined) return []
  const header = present(decodeFlush(flush), 'flush-records: a durable flush does not decode')
  return header.records.map((record) =>
    present(
      decodeRecord(record, flush),
      'flush-records: a value in a durable flush does not match its checksum',
    ),
  )
}

/** `isOfLostValue`: a promise that is the rest of an acceptance whose value is gone. */
export type LeftRecord = FlushRecord & { readonly isOfLostValue?: boolean }

/**
 * The records that a node may count on in a flush that a crash cut short: with its header whole, every
 * record, for a value that is gone the ballot alone.
 */
export function decodeRecordsLeft(put: Put): readonly LeftRecord[] {
  const flush = flushIn(put)
  const header = flush && decodeFlush(flush)
  if (flush === undefined || header === undefined) return []
  return header.records.flatMap((record) => decodeRecord(record, flush) ?? ballotAlone(record))
}

function flushIn({ key, value }: Put): Uint8Array | undefined {
  return numberOfKey(key) === undefined ? undefined : value
}

/** The record with its value, or undefined when the value is damaged. */
function decodeRecord(header: RecordHeader, flush: Uint8Array): FlushRecord | undefined {
  const { kind, group, position, ballot, piece } = header
  const value = piece === undefined ? undefined : readPayload(flush, piece)
  if (kind === 'promise') return { kind, group, position, ballot }
  if (piece === undefined) {
    return kind === 'accept' ? undefined : { kind, group, position, ballot }
  }
  return value === undefined ? undefined : { kind, group, position, ballot, value }
}

/** Of a copy, nothing: the flush that it was made from stands before it. */
function ballotAlone({ kind, group, position, ballot }: RecordHeader): readonly LeftRecord[] {
  if (kind === 'copied') return []
  if (kind === 'chosen') return [{ kind, group, position, ballot }]
  return [{ kind: 'promise', group, position, ballot, isOfLostValue: true }]
}
