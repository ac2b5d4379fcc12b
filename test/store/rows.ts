/** Rows as an entry leaves them, and pages of them. */
import { latin1 } from '../../src/base/bytes.ts'
import type { PageRange, Row } from '../../src/group/replica-port.ts'
import type { RowWritten } from '../../src/replication/apply.ts'

export function written(key: Uint8Array, value?: Uint8Array, isNew = false): RowWritten {
  return { key, text: latin1(key), value, isNew }
}

/** The first page of the rows of a range: up to its limit, or to the row that makes it too many bytes. */
export function pageOf(rows: readonly Row[], { limit, bytesMax }: PageRange): Row[] {
  const page: Row[] = []
  let bytes = 0
  for (const row of rows.slice(0, limit)) {
    page.push(row)
    bytes += row.key.length + row.value.length
    if (bytes > (bytesMax ?? Infinity)) break
  }
  return page
}
