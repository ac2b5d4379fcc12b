/**
 * The entry of a row in an index over cells: a function of the latest cells of the index's columns.
 * None where there is no value of the shard field.
 */
import { sha256 } from '../base/bytes.ts'
import { pack, unpack } from '../base/pack.ts'
import { encodeTuple } from '../base/tuple.ts'
import type { Json } from './body.ts'
import { storedName, type NumberedIndex } from './index-definition.ts'
import { indexValue, microsOfBytes, packable, sortBytes, type IndexValue } from './index-values.ts'

export interface IndexRow {
  /** Names the index and the value of the shard field: all entries of one are together. */
  readonly place: Uint8Array
  /** By the second field, if there is one. */
  readonly sort: Uint8Array
  /** Of all fields. */
  readonly fields: Uint8Array
}

/** A value for each field, null where there is none. */
export type FieldValues = readonly (IndexValue | null)[]

const placeBytes = 16
/** Behind the values of the fields. */
const aging = true

/** `ages`: it is made of a cell that expires. */
export function buildIndexRow(
  definition: NumberedIndex,
  bodies: ReadonlyMap<string, Json>,
  ages: boolean,
): IndexRow | undefined {
  const values = definition.fields.map(({ field, type, column }) => {
    const value = memberAt(bodies.get(column), field.split('.'))
    return indexValue(type, value) ?? null
  })
  const [shardValue = null, second = null] = values
  if (shardValue === null) return undefined
  const type = definition.fields[1]?.type
  return {
    place: encodePlace(definition, shardValue),
    sort: type === undefined ? new Uint8Array() : sortBytes(type, second),
    fields: pack(ages ? [...values.map(packable), aging] : values.map(packable)),
  }
}

export function encodePlace(index: NumberedIndex, value: IndexValue): Uint8Array {
  const words = String(value)
  // Half pairs have no bytes, and are no whole text: they are written as JSON writes them.
  const text = /\p{Surrogate}/u.test(words) ? JSON.stringify(words) : words
  return sha256(encodeTuple([index.datastore, storedName(index), nameKind(value), text])).subarray(
    0,
    placeBytes,
  )
}

/** Whether it is made of a cell that expires: a query that finds the entry looks at the cells. */
export function isAging({ fields }: NumberedIndex, stored: Uint8Array): boolean {
  const values = unpack(stored)
  return Array.isArray(values) && values[fields.length] === aging
}

export function fieldValues(definition: NumberedIndex, fields: Uint8Array): FieldValues {
  const values = unpack(fields)
  const list: readonly unknown[] = Array.isArray(values) ? values : []
  return definition.fields.map(({ type }, place) => {
    const held = list[place]
    const value = type === 'datetime' && held instanceof Uint8Array ? microsOfBytes(held) : held
    return indexValue(type, value) ?? null
  })
}

/** Places of numbers were named so before there were bigints among them. */
function nameKind(value: IndexValue): string {
  return typeof value === 'bigint' ? 'number' : typeof value
}

function memberAt(body: unknown, words: readonly string[]): unknown {
  let here = body
  for (const word of words) {
    if (typeof here !== 'object' || here === null || !Object.hasOwn(here, word)) return undefined
    here = Object.entries(here).find(([name]) => name === word)?.[1]
  }
  return here
}
