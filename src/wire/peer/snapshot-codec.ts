/** Messages about snapshots of groups as positional arrays, checked when read. */
import { entryBytesMax } from '../../base/limits.ts'
import type { Packable } from '../../base/pack.ts'
import type { SnapshotMessage } from '../../replication/message.ts'
import * as field from '../fields.ts'
import { packRow, readRow } from '../stored-row.ts'

/** The fields behind kind and envelope. */
export function packSnapshot(message: SnapshotMessage): readonly Packable[] {
  const { transfer } = message
  switch (message.kind) {
    case 'snapshot-request':
      return [transfer, message.part, message.above]
    case 'snapshot-part': {
      const { part, position, rows, state, crc } = message
      return [transfer, part, position, rows.map(packRow), state, crc]
    }
    case 'snapshot-refused':
      return [transfer]
  }
}

/** `fields`: all of the message's. */
export function readSnapshot(
  kind: SnapshotMessage['kind'],
  fields: readonly unknown[],
): SnapshotMessage {
  const group = field.group(fields[1])
  const epoch = field.count(fields[2], 'epoch', 1)
  const transfer = field.count(fields[3], 'transfer')
  if (kind === 'snapshot-refused') return { kind, group, epoch, transfer }
  const part = field.count(fields[4], 'part')
  if (kind === 'snapshot-request') {
    return { kind, group, epoch, transfer, part, above: field.count(fields[5], 'above') }
  }
  const position = field.position(fields[5])
  const rows = field.list(fields[6], 'rows').map(readRow)
  const state = field.bytes(fields[7], 'state', entryBytesMax)
  const common = { kind, group, epoch, transfer, part, position, rows, state }
  return field.isAbsent(fields[8]) ? common : { ...common, crc: field.count(fields[8], 'crc') }
}
