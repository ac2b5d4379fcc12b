/**
 * The note that a purge leaves in its group, in the transaction that takes rows away for good: reads of moments
 * before it are refused from then on, so that no version of such a row is shown (`txn/local-groups.ts`). Its value
 * names the last row or cell that was purged. It begins with 4, which begins no row, no entry and no worklist.
 */
import { encodeTuple } from '../base/tuple.ts'

const noteByte = 4

export const purgeNoteKey: Uint8Array = Buffer.concat([
  Uint8Array.of(noteByte),
  encodeTuple(['purged']),
])
