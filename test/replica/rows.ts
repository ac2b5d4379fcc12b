/** Rows as an entry leaves them. */
import { latin1 } from '../../src/base/bytes.ts'
import type { RowWritten } from '../../src/replication/apply.ts'

export function written(key: Uint8Array, value?: Uint8Array, isNew = false): RowWritten {
  return { key, text: latin1(key), value, isNew }
}
