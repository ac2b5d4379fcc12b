/**
 * When rows expire (TTL, EXPIRES AT). A read at a timestamp sees a row iff it had not expired by then (TTL-1): the
 * read's own timestamp decides, which is of the group's log, and no clock. So all replicas agree, a snapshot shows
 * the same whenever it is read, and it does not matter how soon expired rows are removed.
 */
import type { Timestamp } from '../base/ids.ts'
import { StoreError } from '../base/errors.ts'
import { worklistPrefix } from '../group/worklist-key.ts'
import type { StoredRow } from '../txn/reads.ts'
import type { CompiledTable } from './compiled.ts'
import { decodeProperty, fieldWith, unpackValue } from './row-value.ts'

export const expiryTopic = 'expiry'

/** On the worklist of each group that has rows which expire, as of its last write of one. */
export const expiryNote: Uint8Array = worklistPrefix(expiryTopic)

/** A row of a table, its key by part. */
export interface KeyedRow {
  readonly table: CompiledTable
  readonly values: readonly unknown[]
  readonly stored: StoredRow
}

/** The first moment at which the row is not there any more; undefined: it stays. */
export function expiresAt({ table, values, stored }: KeyedRow): Timestamp | undefined {
  const { expiry } = table
  if (expiry === undefined) return undefined
  if (expiry.kind === 'after') {
    // One that this transaction is about to write lives from its commit on.
    return stored.timestamp === undefined ? undefined : stored.timestamp + expiry.micros
  }
  const { property, keyPlace } = expiry
  const moment =
    keyPlace >= 0
      ? values[keyPlace]
      : decodeProperty(property, fieldWith(unpackValue(stored.value).fields, property.number))
  return typeof moment === 'number' ? moment : undefined
}

/**
 * TTL-1: is the row in no read at this timestamp? `asOf`: of the view; an inconsistent read has none, and is
 * refused where rows expire.
 */
export function isGone(row: KeyedRow, asOf: Timestamp | undefined): boolean {
  const { expiry, name } = row.table
  if (expiry === undefined) return false
  if (asOf === undefined) throw ofNoMoment(name)
  const moment = expiresAt(row)
  return moment !== undefined && moment <= asOf
}

function ofNoMoment(table: string): StoreError {
  const message = `rows of table ${table} expire, and an inconsistent read is of no moment; read at snapshot, which asks no other node either`
  return new StoreError('invalid', message)
}
