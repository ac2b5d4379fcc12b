/**
 * Fields of a file as the properties of a table: JSON has no bigints, bytes or times, and CSV only
 * texts. Only forms are turned here; whether a value is one of the property's type is checked where
 * rows are stored. A property without a value in the file is absent, and null is no value.
 */
import type { Json } from '../cells/body.ts'
import type { Property, ScalarKind, Table } from '../../schema/model.ts'
import { microsOf } from '../base/datetime.ts'

export type FieldPath = readonly (string | number)[]

/** `contributors.0.id`: names of members and numbers of elements, from the outside in. */
export function fieldPath(text: string): FieldPath | undefined {
  const steps = text.split('.')
  if (steps.some((step) => step === '')) return undefined
  return steps.map((step) => (/^\d+$/.test(step) ? Number(step) : step))
}

/** Where properties are found whose name is no field of the file. */
export type Sources = ReadonlyMap<string, FieldPath>

/** Names of fields that no property has taken, and in how many rows they were. */
export type Ignored = Map<string, number>

/** The row, by property; fields that are in no property are counted. */
export function rowOfFields(
  table: Table,
  fields: Json,
  sources: Sources,
  ignored: Ignored,
): Readonly<Record<string, unknown>> {
  const members = membersOf(fields) ?? {}
  const used = new Set<string>()
  const row = Object.fromEntries(
    table.properties.flatMap((property) => {
      const path = sources.get(property.name) ?? [property.name]
      used.add(String(path[0]))
      const value = propertyOf(property, at(fields, path), `${property.name}.`, ignored)
      return value === undefined ? [] : [[property.name, value]]
    }),
  )
  for (const name of Object.keys(members)) if (!used.has(name)) count(ignored, name)
  return row
}

function propertyOf(
  { presence, type }: Property,
  value: Json | undefined,
  prefix: string,
  ignored: Ignored,
): unknown {
  if (value === undefined || value === null) return undefined
  if (presence !== 'repeated') return valueOf(type, value, prefix, ignored)
  // A list of one is written without brackets often enough.
  const list: readonly Json[] = isList(value) ? value : [value]
  return list.map((one) => valueOf(type, one, prefix, ignored))
}

function valueOf(type: Property['type'], value: Json, prefix: string, ignored: Ignored): unknown {
  if (type.kind === 'message') return messageOf(type.properties, value, prefix, ignored)
  return (formOf[type.kind] ?? asItIs)(value)
}

/** What a field's form is turned into, where files have no form of that type. */
const formOf: Partial<Record<ScalarKind, (value: Json) => unknown>> = {
  int64: int64Of,
  int32: numberOf,
  integer: numberOf,
  float: numberOf,
  double: numberOf,
  timestamp: timeOf,
  bool: (value) => (value === 'true' ? true : value === 'false' ? false : value),
  bytes: (value) => (typeof value === 'string' && isHex(value) ? Buffer.from(value, 'hex') : value),
  uuid: (value) => (typeof value === 'string' ? value.toLowerCase() : value),
}

function asItIs(value: Json): unknown {
  return value
}

function messageOf(
  properties: readonly Property[],
  value: Json,
  prefix: string,
  ignored: Ignored,
): unknown {
  const members = membersOf(value)
  if (members === undefined) return value
  for (const name of Object.keys(members)) {
    if (!properties.some((property) => property.name === name)) count(ignored, `${prefix}${name}`)
  }
  return Object.fromEntries(
    properties.flatMap((property) => {
      const { name } = property
      const found = propertyOf(property, members[name], `${prefix}${name}.`, ignored)
      return found === undefined ? [] : [[name, found]]
    }),
  )
}

function int64Of(value: Json): unknown {
  if (typeof value === 'number' && Number.isSafeInteger(value)) return BigInt(value)
  return typeof value === 'string' && /^-?\d{1,19}$/.test(value) ? BigInt(value) : value
}

function numberOf(value: Json): unknown {
  return typeof value === 'string' && value.trim() !== '' && !Number.isNaN(Number(value))
    ? Number(value)
    : value
}

/** Microseconds, or RFC 3339. */
function timeOf(value: Json): unknown {
  if (typeof value !== 'string') return value
  return /^-?\d+$/.test(value) ? Number(value) : (microsOf(value) ?? value)
}

function isHex(text: string): boolean {
  return text.length % 2 === 0 && /^[0-9a-f]*$/i.test(text)
}

function at(fields: Json, path: FieldPath): Json | undefined {
  let value: Json | undefined = fields
  for (const step of path) {
    if (isList(value)) value = typeof step === 'number' ? value[step] : undefined
    else value = membersOf(value)?.[String(step)]
  }
  return value
}

function isList(value: Json | undefined): value is readonly Json[] {
  return Array.isArray(value)
}

function membersOf(value: Json | undefined): { readonly [name: string]: Json } | undefined {
  if (typeof value !== 'object' || value === null || isList(value)) return undefined
  return value
}

function count(ignored: Ignored, name: string): void {
  ignored.set(name, (ignored.get(name) ?? 0) + 1)
}
