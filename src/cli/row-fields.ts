/**
 * Fields of a file as the properties of a table. A property without a value in the file is absent, and null is no
 * value; nor is a blank field of a CSV. Whether a value is one of the property's type is checked where rows are stored.
 */
import type { Json } from '../cells/body.ts'
import type { Property, Table } from '../../schema/model.ts'
import { StoreError } from '../base/errors.ts'
import { wordsFor } from '../base/words.ts'
import { isLeftBlank, jsonOfText, parseList, parseScalar, type ValueFormat } from './row-values.ts'
import { fieldAt, memberAt, readMembers, type Members, type Sources } from './row-sources.ts'

/** Names of fields that no property has taken, and in how many rows they were. */
export type Ignored = Map<string, number>

/** The row, by property; fields that are in no property are counted. Throws `invalid` for what is no row. */
export function rowOfFields(
  table: Table,
  fields: Json,
  sources: Sources,
  ignored: Ignored,
  format: ValueFormat = 'jsonl',
): Readonly<Record<string, unknown>> {
  const members = readMembers(fields)
  const where = `table ${table.name}`
  if (members === undefined) throw invalid(where, 'a row is an object of fields, and this is none')
  const reading = { ignored, format }
  const used = new Set<string>()
  const row = Object.fromEntries(
    table.properties.flatMap((property) => {
      const { name } = property
      const source = sources.get(name) ?? { text: name, path: undefined }
      const found = fieldAt(members, source)
      if (found !== undefined) used.add(found.field)
      const value = readProperty(property, found?.value, where, reading)
      return value === undefined ? [] : [[name, value]]
    }),
  )
  for (const name of Object.keys(members)) if (!used.has(name)) count(ignored, name)
  return row
}

interface Reading {
  readonly ignored: Ignored
  readonly format: ValueFormat
}

/** `where` is what the property is in. */
function readProperty(
  property: Property,
  given: Json | undefined,
  where: string,
  reading: Reading,
): unknown {
  const { name, presence, type } = property
  const isBlank = reading.format === 'csv' && isLeftBlank(property, given)
  const value = isBlank ? null : given
  if (value === null && reading.format === 'csv' && isNeeded(property)) {
    const hint = type.kind === 'string' ? '; "" with quotes is the empty string' : ''
    throw invalid(where, `${name} is blank; it is required${hint}`)
  }
  if (value === undefined || value === null) return undefined
  const place = `${where}: ${name}`
  if (presence !== 'repeated') return readValue(type, value, place, reading)
  const { list, format } = parseList(value, reading.format)
  // It may be one text in brackets, or a list meant with other elements: the loader cannot know which.
  const wrong = type.kind === 'string' ? list.findIndex((one) => typeof one !== 'string') : -1
  if (wrong >= 0 && typeof value === 'string') {
    const words = `${name}[${wrong}] is ${wordsFor(list[wrong])}; expected a string`
    throw invalid(where, `${words} (one text with brackets is written ["[…]"])`)
  }
  return list.map((one, i) => readValue(type, one, `${place}[${i}]`, { ...reading, format }))
}

function isNeeded(property: Property): boolean {
  return property.presence === 'required' && property.default === undefined
}

function readValue(type: Property['type'], value: Json, where: string, reading: Reading): unknown {
  const { kind } = type
  if (kind !== 'message') return parseScalar(kind, value, where, reading.format)
  const members = readMembers(reading.format === 'csv' ? jsonOfText(value, where) : value)
  // A message's members are JSON's, also in a CSV.
  const inside: Reading = reading.format === 'csv' ? { ...reading, format: 'jsonl' } : reading
  return members === undefined ? value : readMessage(type.properties, members, where, inside)
}

function readMessage(
  properties: readonly Property[],
  members: Members,
  where: string,
  reading: Reading,
): unknown {
  for (const name of Object.keys(members)) {
    if (properties.some((property) => property.name === name)) continue
    count(reading.ignored, `${pathIn(where)}.${name}`)
  }
  return Object.fromEntries(
    properties.flatMap((property) => {
      const { name } = property
      const found = readProperty(property, memberAt(members, name), where, reading)
      return found === undefined ? [] : [[name, found]]
    }),
  )
}

/** `part.era` of `table Thing: part[3]: era`. */
function pathIn(where: string): string {
  const [, ...names] = where.split(': ')
  return names.map((name) => name.replace(/\[\d+\]$/, '')).join('.')
}

function invalid(where: string, reason: string): StoreError {
  return new StoreError('invalid', `${where}: ${reason}`)
}

function count(ignored: Ignored, name: string): void {
  ignored.set(name, (ignored.get(name) ?? 0) + 1)
}
