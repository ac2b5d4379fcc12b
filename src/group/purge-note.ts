/**
 * The note that a purge leaves in its group, in the transaction that takes rows away for good: reads of moments
 * before it are refused from then on, so that no version of such a row is shown (`txn/local-groups.ts`). Its value
 * says in words what was purged last. It begins with 4, which begins no row, no entry and no worklist.
 */
import { encodeTuple } from '../base/tuple.ts'

export const noteSpace = 4

/** A key among the notes of a group. */
export function noteKey(parts: readonly string[]): Uint8Array {
  return Buffer.concat([Uint8Array.of(noteSpace), encodeTuple(parts)])
}

export const purgeNoteKey: Uint8Array = noteKey(['purged'])
