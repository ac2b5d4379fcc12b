/** Rows as data stores have them ⇄ positional arrays: those of snapshots, and of groups that go to another set. */
import { entryBytesMax, keyBytesMax } from '../base/limits.ts'
import type { Packable } from '../base/pack.ts'
import type { MovedRow } from '../group/moving-port.ts'
import * as field from './fields.ts'

/** Of a row's value. */
const payloadBytesMax = entryBytesMax
/** A key of history is escaped, and has its version's start behind it. */
const rowKeyBytesMax = 2 * keyBytesMax + 10
/** Newest versions and superseded ones (`../store/row-format.ts`). */
const subspaceMax = 2

export function packRow({ subspace, key, stamp, payload }: MovedRow): Packable {
  return [subspace, key, stamp, payload]
}

export function readRow(value: unknown): MovedRow {
  const [subspace, key, stamp, payload] = field.list(value, 'row', 4)
  return {
    subspace: readSubspace(subspace),
    key: readRowKey(key),
    stamp: field.count(stamp, 'stamp'),
    payload: field.bytes(payload, 'payload', payloadBytesMax),
  }
}

export function readSubspace(value: unknown): number {
  const of = field.count(value, 'subspace', 1)
  if (of > subspaceMax) throw new field.MalformedError('subspace is of no known number')
  return of
}

export function readRowKey(value: unknown): Uint8Array {
  return field.bytes(value, 'key', rowKeyBytesMax)
}
