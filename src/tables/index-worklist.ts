/**
 * Changes of entries on their way to global indexes, as rows on the worklist of the group they come
 * from. One row an entry: a later change takes the place of an earlier one.
 *
 *   key    ff 'index' <the entry's key>
 *   value  format 1 · 0 gone, 1 there · length of the group's name 2 · the group · what it holds
 */
import { afterWorklist, worklistPrefix } from '../group/worklist-key.ts'
import { asBuffer } from '../base/bytes.ts'
import { StoreError } from '../base/errors.ts'
import { bytesOfGroup, groupOfBytes, type GroupId } from '../base/ids.ts'
import { keyBytesMax } from '../base/limits.ts'
import type { SequenceSlot } from '../group/transaction.ts'
import { type KeyRange } from '../group/outcome.ts'
import { prefixRange } from '../txn/key-range.ts'

export const indexTopic = 'index'

const prefix = worklistPrefix(indexTopic)
const changeFormat = 1
const headBytes = 4

/** All changes on a group's worklist. */
export const indexWorklist: KeyRange = { gte: prefix, lt: afterWorklist(indexTopic) }

/** The longest key that an entry of a global index may have. */
export const globalEntryBytesMax: number = keyBytesMax - prefix.length

/** The changes whose entries have keys that begin so. */
export function changesUnder(entryPrefix: Uint8Array): KeyRange {
  return prefixRange(Buffer.concat([prefix, entryPrefix]))
}

/** The next state of an entry: `value` absent when it goes. */
export interface EntryState {
  /** The group of the index that it belongs to. */
  readonly target: GroupId
  readonly key: Uint8Array
  readonly value: Uint8Array | undefined
}

export interface WorklistRow {
  /** It says that an entry goes. */
  readonly isGone: boolean
  readonly key: Uint8Array
  readonly value: Uint8Array
  readonly slots: readonly SequenceSlot[]
}

/** The row that says so; `slots` are those of the entry. */
export function encodeEntryState(
  state: EntryState,
  slots: readonly SequenceSlot[] = [],
): WorklistRow {
  const { target, key, value } = state
  const group = bytesOfGroup(target)
  const head = Buffer.alloc(headBytes)
  head[0] = changeFormat
  head[1] = value === undefined ? 0 : 1
  head.writeUInt16BE(group.length, 2)
  const valueAt = headBytes + group.length
  return {
    isGone: value === undefined,
    key: Buffer.concat([prefix, key]),
    value: Buffer.concat([head, group, value ?? new Uint8Array()]),
    slots: slots.flatMap((slot) => {
      if (slot.at === 'key') return [{ ...slot, offset: slot.offset + prefix.length }]
      return value === undefined ? [] : [{ ...slot, offset: slot.offset + valueAt }]
    }),
  }
}

/** The entry state that a row of the worklist gives. Throws `corrupt` when the row gives none. */
export function decodeEntryState(row: {
  readonly key: Uint8Array
  readonly value: Uint8Array
}): EntryState {
  const value = asBuffer(row.value)
  const groupBytes = value.length < headBytes ? 0 : value.readUInt16BE(2)
  const groupEnd = headBytes + groupBytes
  const isNamed = groupBytes > 0 && groupBytes <= keyBytesMax && groupEnd <= value.length
  // Clients may write any row: a malformed one fails its group's relaying, and no node.
  if (value[0] !== changeFormat || !isNamed) {
    throw new StoreError('corrupt', 'a change of an index on its way is not of a known form')
  }
  return {
    target: groupOfBytes(value.subarray(headBytes, groupEnd)),
    key: row.key.subarray(prefix.length),
    value: value[1] === 0 ? undefined : value.subarray(groupEnd),
  }
}
