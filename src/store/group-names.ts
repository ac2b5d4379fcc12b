/** Which groups this node has a state record of: their names, in order, from a prefix on. */
import { compareBytes, compareText } from '../base/bytes.ts'
import { groupOfBytes, type GroupId } from '../base/ids.ts'
import { afterPrefix } from '../base/tuple.ts'
import type { KeyValue, Range } from '../ports/storage.ts'
import { allStates, groupPrefix, stateKey } from './row-format.ts'

/** The bytes that close a group's name in a key: 00 01. */
const endBytes = 2

export interface NamePorts {
  readonly scan: (range: Range) => AsyncIterable<readonly KeyValue[]>
  /** Groups of which something is not in the store yet. */
  pending(): Iterable<GroupId>
}

/** At most `limit` names that begin so and come behind `after`: one look in the store for each. */
export async function groupNames(
  { scan, pending }: NamePorts,
  prefix: string,
  after: GroupId | undefined,
  limit: number,
): Promise<readonly GroupId[]> {
  const isAsked = (name: GroupId): boolean =>
    name.startsWith(prefix) && (after === undefined || compareText(name, after) > 0)
  const names = new Set([...pending()].filter(isAsked))
  const start = startOf(prefix)
  const lt = afterPrefix(start)
  const behind = after === undefined ? start : afterPrefix(stateKey(groupPrefix(after)))
  // The first name behind `after` may still come before all that begin so.
  let gte = behind !== undefined && compareBytes(behind, start) < 0 ? start : behind
  for (let found = 0; found < limit && gte !== undefined; found++) {
    const name: GroupId | undefined = await firstName(scan, { gte, ...(lt && { lt }) })
    if (name === undefined) break
    names.add(name)
    gte = afterPrefix(stateKey(groupPrefix(name)))
  }
  return [...names].sort(compareText).slice(0, limit)
}

/** The first key of a group whose name begins so; of none, of any group. */
function startOf(prefix: string): Uint8Array {
  if (prefix === '') return allStates.gte
  const opening = stateKey(groupPrefix(groupOfBytes(Buffer.from(prefix, 'latin1'))))
  return opening.subarray(0, opening.length - endBytes)
}

async function firstName(scan: NamePorts['scan'], range: Range): Promise<GroupId | undefined> {
  for await (const rows of scan({ limit: 1, ...range })) {
    for (const { key } of rows) return nameInState(key)
  }
  return undefined
}

/** Of the key of a state record: `s <group, escaped> 00 01`. */
export function nameInState(key: Uint8Array): GroupId {
  const bytes: number[] = []
  for (let at = 1; at < key.length; at++) {
    const byte = key[at] ?? 0
    if (byte === 0 && key[at + 1] === 1) break
    bytes.push(byte)
    if (byte === 0) at += 1
  }
  return groupOfBytes(Uint8Array.from(bytes))
}
