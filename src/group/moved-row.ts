/**
 * The row by which a group leaves its replica set: the entry that writes it is the last one of the group's log in that set,
 * and the log goes on in the set that the row names. It begins with 4, as the note of a purge does.
 *
 * The same entry puts the group on the worklist `moved`: each node of the old set clears what it has of the group once the next set has
 * it. The first entry of the next set takes the group off that list.
 */
import { pack, unpack } from '../base/pack.ts'
import { isPlaceName } from '../base/placed-group.ts'
import { encodeTuple } from '../base/tuple.ts'
import { worklistPrefix } from './worklist-key.ts'

const noteByte = 4
const rowFormat = 1

export const movedKey: Uint8Array = Buffer.concat([Uint8Array.of(noteByte), encodeTuple(['moved'])])
/** The same as latin1 text. */
export const movedText: string = Buffer.from(movedKey).toString('latin1')

/** The topic of the worklist, and the row under it. */
export const movedTopic = 'moved'
export const movedNoteKey: Uint8Array = worklistPrefix(movedTopic)

/** The name of the set in which the log goes on. */
export function encodeMove(set: string): Uint8Array {
  return pack([rowFormat, set])
}

/** The set's name; undefined for bytes that name none. */
export function decodeMove(bytes: Uint8Array): string | undefined {
  const fields = unpack(bytes)
  if (!Array.isArray(fields) || fields.length !== 2) return undefined
  const [format, set]: unknown[] = fields
  return format === rowFormat && typeof set === 'string' && isPlaceName(set) ? set : undefined
}
