/** The log records in what became durable on a log disk. */
import { present } from '../../src/base/assert.ts'
import type { Put } from '../../src/ports/storage.ts'
import { decodeFlush, flushKey, readPayload, type RecordHeader } from '../../src/replica/flush.ts'
import type { LogRecord } from '../../src/replication/effect.ts'

const flushKeySample = flushKey(1)

/** The records of a flush; of another row of the log store, none. */
export function recordsOf({ key, value }: Put): readonly LogRecord[] {
  const isFlush = key.length === flushKeySample.length && key[0] === flushKeySample[0]
  if (!isFlush || value === undefined) return []
  const header = present(decodeFlush(value), 'flush-records: a durable flush does not decode')
  return header.records.map((record) => recordOf(record, value))
}

function recordOf(header: RecordHeader, flush: Uint8Array): LogRecord {
  const { kind, group, position, ballot, piece } = header
  const value = piece === undefined ? undefined : readPayload(flush, piece)
  if (kind === 'promise') return { kind, group, position, ballot }
  if (kind === 'chosen') {
    return value === undefined
      ? { kind, group, position, ballot }
      : { kind, group, position, ballot, value }
  }
  return { kind, group, position, ballot, value: present(value, 'flush-records: no value') }
}
