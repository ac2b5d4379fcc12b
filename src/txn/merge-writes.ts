/** A transaction's own writes over the rows that its view has. */
import { compareBytes } from '../base/bytes.ts'
import type { Mutation } from '../group/transaction.ts'
import type { ScanRange, StoredRow } from './reads.ts'
import { unknownNumber } from './write-set.ts'

/**
 * Both lists in the order of the scan; a write stands for the row of its key, and nothing for a row
 * that it deletes. Gives one after another, as far as the caller iterates.
 */
export function* mergeWrites(
  rows: readonly StoredRow[],
  writes: readonly Mutation[],
  { reverse = false }: ScanRange,
): Generator<StoredRow | undefined, void> {
  let next = 0
  for (const row of rows) {
    let order = 1
    for (let write = writes[next]; write !== undefined; write = writes[++next]) {
      order = compareBytes(row.key, write.key) * (reverse ? -1 : 1)
      if (order < 0) break
      yield toStoredRow(write)
      if (order > 0) continue
      next += 1
      break
    }
    if (order !== 0) yield row
  }
  for (const write of writes.slice(next)) yield toStoredRow(write)
}

/** The row that a mutation leaves, or undefined when it leaves none. */
export function toStoredRow({ key, value, slots }: Mutation): StoredRow | undefined {
  if (slots !== undefined) throw unknownNumber()
  return value === undefined ? undefined : { key, value }
}
