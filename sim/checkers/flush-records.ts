/** The log records in what became durable on a log disk. */
import { numberOfKey } from '../../src/journal/ordered-journal.ts'
import { present } from '../../src/base/assert.ts'
import type { Put } from '../../src/ports/storage.ts'
import { decodeFlush, readPayload, type RecordHeader } from '../../src/log/flush.ts'
import type { LogRecord } from '../../src/replication/effect.ts'

/** The records of a flush; of another row of the log store, none. */
export function decodeRecords(put: Put): readonly LogRecord[] {
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

/**
 * The records that a node may count on in a flush that a crash cut short: with its header whole, every
 * record, for a value that is gone the ballot alone.
 */
export function decodeRecordsLeft(put: Put): readonly LogRecord[] {
  const flush = flushIn(put)
  const header = flush && decodeFlush(flush)
  if (flush === undefined || header === undefined) return []
  return header.records.map((record) => decodeRecord(record, flush) ?? ballotAlone(record))
}

function flushIn({ key, value }: Put): Uint8Array | undefined {
  return numberOfKey(key) === undefined ? undefined : value
}

/** The record with its value, or undefined when the value is damaged. */
function decodeRecord(header: RecordHeader, flush: Uint8Array): LogRecord | undefined {
  const { kind, group, position, ballot, piece } = header
  const value = piece === undefined ? undefined : readPayload(flush, piece)
  if (kind === 'promise') return { kind, group, position, ballot }
  if (piece === undefined) {
    return kind === 'chosen' ? { kind, group, position, ballot } : undefined
  }
  return value === undefined ? undefined : { kind, group, position, ballot, value }
}

function ballotAlone({ kind, group, position, ballot }: RecordHeader): LogRecord {
  return { kind: kind === 'chosen' ? kind : 'promise', group, position, ballot }
}
