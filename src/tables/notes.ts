/**
 * The writes of a transaction over tables beside its rows: the note by which a worker finds the group, and the position
 * that it takes in the log. For the parts of this store that are made of tables; programs have no need of it.
 */
import { present } from '../base/assert.ts'
import type { Timestamp } from '../base/ids.ts'
import { purgeNoteKey } from '../group/purge-note.ts'
import type { RawTransaction } from '../txn/raw-transaction.ts'
import type { StoredRow } from '../txn/reads.ts'
import type { GroupTransaction } from './types.ts'

const raws = new WeakMap<GroupTransaction, RawTransaction>()

export function linkRaw(tx: GroupTransaction, raw: RawTransaction): void {
  raws.set(tx, raw)
}

export function putNote(tx: GroupTransaction, key: Uint8Array): void {
  rawOf(tx).put(key, Uint8Array.of(1))
}

/** Takes the note away, if no other transaction has put it again; resolves with whether that is so. */
export async function takeNoteOff(
  tx: GroupTransaction,
  key: Uint8Array,
  putAt: Timestamp,
): Promise<boolean> {
  const note = await rawOf(tx).get(key)
  if (note?.timestamp !== putAt) return false
  rawOf(tx).delete(key)
  return true
}

/** Notes by their keys, as rows that the transaction has read. */
export function getNotes(
  tx: GroupTransaction,
  keys: readonly Uint8Array[],
): Promise<readonly (StoredRow | undefined)[]> {
  return rawOf(tx).getMany(keys)
}

/** Rows are gone for good with this transaction: no read of a moment before it is answered (PURGE-1). */
export function notePurge(tx: GroupTransaction, what: string): void {
  rawOf(tx).put(purgeNoteKey, Buffer.from(`purged ${what}`))
}

/** The transaction takes an entry, though it writes nothing: later reads are of a later timestamp. */
export function takePosition(tx: GroupTransaction): void {
  rawOf(tx).takePosition()
}

function rawOf(tx: GroupTransaction): RawTransaction {
  return present(raws.get(tx), 'TAB-5: a transaction writes what it is asked to')
}
