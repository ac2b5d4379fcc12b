/**
 * Rows and patches as applications give them: checked against the table and completed, or one error
 * that names table and property and says what was expected. What comes out may be stored as it is.
 */
import { StoreError } from '../base/errors.ts'
import type { CompiledProperty, CompiledTable } from './compile.ts'
import { membersOf } from './key-check.ts'
import { checkScalar, wrongValue } from './scalar.ts'

/** A row, or what a message holds, by name; what is absent is not there. */
export type Values = Readonly<Record<string, unknown>>

/** A whole row without its sequence; defaults and empty lists are filled in. */
export function checkRow(
  table: CompiledTable,
  row: unknown,
  { withSequence }: { readonly withSequence: boolean },
): Values {
  const where = `table ${table.name}`
  const members = membersOf(row, where, namesOf(table.properties))
  const sequence = table.sequence?.name
  if (sequence !== undefined && !withSequence && members.has(sequence)) {
    const message = `${where}: ${sequence} is a sequence: its number is given at commit; leave it out`
    throw new StoreError('invalid', message)
  }
  const properties = table.properties.filter(({ kind }) => withSequence || kind !== 'sequence')
  return complete(properties, members, where)
}

/** What changes: a value, or undefined for what is taken away. */
export type PatchValues = ReadonlyMap<CompiledProperty, unknown>

export function checkPatch(table: CompiledTable, patch: unknown): PatchValues {
  const where = `table ${table.name}`
  const members = membersOf(patch, where, namesOf(table.properties))
  const changes = new Map<CompiledProperty, unknown>()
  for (const property of table.properties) {
    const { name, presence, kind } = property
    const value = members.get(name)
    if (value === undefined) continue
    if (table.key.some((part) => part.name === name) || kind === 'sequence') {
      const message = `${where}: ${name} names the row and stays; delete the row and insert another`
      throw new StoreError('invalid', message)
    }
    const isTaken = value === null && presence === 'optional'
    changes.set(property, isTaken ? undefined : checkProperty(property, value, where))
  }
  return changes
}

function complete(
  properties: readonly CompiledProperty[],
  members: ReadonlyMap<string, unknown>,
  where: string,
): Values {
  const entries = properties.flatMap((property): readonly (readonly [string, unknown])[] => {
    const { name, presence, fallback } = property
    const value = members.get(name) ?? fallback
    if (members.get(name) === null) return [[name, checkProperty(property, null, where)]]
    if (value !== undefined) return [[name, checkProperty(property, value, where)]]
    if (presence === 'repeated') return [[name, []]]
    if (presence === 'optional') return []
    throw new StoreError('invalid', `${where}: ${name} is absent; it is required`)
  })
  return Object.fromEntries(entries)
}

function checkProperty(property: CompiledProperty, value: unknown, where: string): unknown {
  const place = `${where}: ${property.name}`
  if (property.presence !== 'repeated') return checkOne(property, value, place)
  if (!Array.isArray(value)) throw wrongValue(place, value, 'a list')
  return value.map((one: unknown, index) => checkOne(property, one, `${place}[${index}]`))
}

function checkOne({ kind, fields }: CompiledProperty, value: unknown, where: string): unknown {
  if (kind !== 'message') return checkScalar(kind, value, where)
  return complete(fields, membersOf(value, where, namesOf(fields)), where)
}

function namesOf(properties: readonly CompiledProperty[]): readonly string[] {
  return properties.map(({ name }) => name)
}
