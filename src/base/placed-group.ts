/**
 * Groups whose name says where they are: the application has chosen a replica set, or a region, for them. Such a name begins
 * with a tuple, and any bytes may follow it.
 *
 *   tuple('placed', the word and the schema and the number that other names begin with, 'region:eu' or 'set:west')
 *
 * No name of another kind begins with the word `placed`. So one name gives the same place at every node and at every client.
 */
import { assert } from './assert.ts'
import { latin1 } from './bytes.ts'
import { groupOfBytes, type GroupId } from './ids.ts'
import { encodeTuple } from './tuple.ts'

/** A replica set by its name, or all sets of a region. */
export interface Place {
  readonly kind: 'set' | 'region'
  readonly name: string
}

const namePattern = /^[a-z0-9-]{1,32}$/
const placePattern = /^(set|region):([a-z0-9-]{1,32})$/

/** Whether a set, a region or a zone may have the name: 1 to 32 of `a-z 0-9 -`. */
export function isPlaceName(text: string): boolean {
  return namePattern.test(text)
}

/** Names of all groups of a table, or of a global index, that have a place begin so, whichever the place is. */
export function placedPrefix(word: string, schema: string, number: number): Uint8Array {
  return encodeTuple(['placed', word, schema, number])
}

/** Whether the name is one of a root entity's group, with a place or without one. */
export function isRootGroup(group: GroupId): boolean {
  return group.startsWith(tablesPrefix) || group.startsWith(placedTables)
}

/** The schema of the tables in which cells are. */
export const cellsSchemaName = 'Schemaless'

/**
 * Whether the group is shared out among the sets by its bucket alone: one of a root entity whose name has no place. Groups of cells
 * stay where their names put them.
 */
export function isSharedOut(group: GroupId): boolean {
  return group.startsWith(tablesPrefix) && !group.startsWith(cellTables)
}

/** The element that follows `placedPrefix`. */
export function encodePlace({ kind, name }: Place): Uint8Array {
  assert(isPlaceName(name), 'MOVE-8: a place was not checked')
  return encodeTuple([`${kind}:${name}`])
}

/** Names of root entities' groups without a place begin so. */
export const tablesPrefix: GroupId = groupOfBytes(encodeTuple(['tables']))
const cellTables = latin1(encodeTuple(['tables', cellsSchemaName]))
const placedTables = latin1(encodeTuple(['placed', 'tables']))
const head = latin1(encodeTuple(['placed']))
/** A text of a tuple ends so; inside it, 00 is followed by ff. */
const endOfText = '\u0000\u0001'
const textMark = ' '
const numberMark = '0'
const numberBytes = 9

/** The place that a group's name says; undefined: it says none, and the group is in the set that its hash gives. */
export function placeOf(group: GroupId): Place | undefined {
  if (!group.startsWith(head)) return undefined
  const wordEnd = endOf(group, head.length)
  const schemaEnd = wordEnd && endOf(group, wordEnd)
  if (schemaEnd === undefined || group[schemaEnd] !== numberMark) return undefined
  const from = schemaEnd + numberBytes
  const to = endOf(group, from)
  if (to === undefined) return undefined
  const text = group.slice(from + 1, to - endOfText.length)
  const [, kind, name] = placePattern.exec(text) ?? []
  if (name === undefined) return undefined
  return { kind: kind === 'set' ? 'set' : 'region', name }
}

/** Where the text ends that stands there; undefined when none does. */
function endOf(group: string, from: number): number | undefined {
  const end = group[from] === textMark ? group.indexOf(endOfText, from) : -1
  return end < 0 ? undefined : end + endOfText.length
}

/** `region eu`, `set west`. */
export function placeWords({ kind, name }: Place): string {
  return `${kind} ${name}`
}
