/**
 * Rows and patches as applications give them: checked against the table and completed, or one error
 * that names table and property and says what was expected. The result may be stored as it is.
 */
import { copyBytes } from '../base/bytes.ts'
import { StoreError } from '../base/errors.ts'
import { readElements, hiddenIn, isList } from '../base/readable.ts'
import type { CompiledProperty, CompiledTable } from './compiled.ts'
import { checkPart, readMember, checkMembers } from './key-check.ts'
import { checkScalar, wrongValue } from './scalar.ts'

/** A row, or what a message holds, by name; an absent one has no member. */
export type Values = Readonly<Record<string, unknown>>

export interface Completion {
  readonly withSequence: boolean
  /** Fill in what the program does not declare and does not name; without it, such members stay absent. */
  readonly withUnknown: boolean
}

/** A whole row, a new object, without its sequence; defaults and empty lists are filled in. */
export function checkRow(
  table: CompiledTable,
  row: unknown,
  completion: Completion,
): Record<string, unknown> {
  const where = `table ${table.name}`
  const members = checkMembers(row, table.names, () => where)
  const sequence = table.sequence?.name
  if (
    sequence !== undefined &&
    !completion.withSequence &&
    readMember(members, sequence) !== undefined
  ) {
    const message = `${where}: ${sequence} is a sequence: its number is given at commit; leave it out`
    throw new StoreError('invalid', message)
  }
  const whole = complete(table.properties, members, where, completion)
  for (const part of table.numbered) checkPart(part, whole[part.name], where)
  return whole
}

/** A row that was checked `withUnknown: false`, with what it lacks of the properties that the program does not declare. */
export function withUnknown(table: CompiledTable, row: Values, completion: Completion): Values {
  return filled(table.properties, row, `table ${table.name}`, { ...completion, withUnknown: true })
}

function filled(
  properties: readonly CompiledProperty[],
  members: Values,
  where: string,
  completion: Completion,
): Values {
  const row: Record<string, unknown> = {}
  for (const property of properties) {
    const { kind, isKnown, name, presence, fields } = property
    const place = `${where}: ${name}`
    let value = readMember(members, name)
    if (isMessage(value) && kind === 'message' && presence !== 'repeated') {
      value = filled(fields, value, place, { ...completion, withSequence: true })
    } else if (
      value === undefined &&
      !isKnown &&
      (kind !== 'sequence' || completion.withSequence)
    ) {
      value = completed(property, undefined, where, completion)
    }
    if (value !== undefined) row[name] = value
  }
  return row
}

function isMessage(value: unknown): value is Values {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The changes of a patch: a value, or undefined for a property that is taken away. */
export type PatchValues = ReadonlyMap<CompiledProperty, unknown>

/** Of a message in a patch, what the program does not declare is kept as it is, or read as its default. */
const asChanged: Completion = { withSequence: true, withUnknown: false }

export function checkPatch(table: CompiledTable, patch: unknown): PatchValues {
  const where = `table ${table.name}`
  const members = checkMembers(patch, table.names, () => where)
  const changes = new Map<CompiledProperty, unknown>()
  for (const property of table.properties) {
    const { name, presence, kind } = property
    const value = readMember(members, name)
    if (value === undefined) continue
    if (table.key.some((part) => part.name === name) || kind === 'sequence') {
      const message = `${where}: ${name} names the row and stays; delete the row and insert another`
      throw new StoreError('invalid', message)
    }
    const isTaken = value === null && presence === 'optional'
    changes.set(property, isTaken ? undefined : checkProperty(property, value, where, asChanged))
  }
  return changes
}

function complete(
  properties: readonly CompiledProperty[],
  members: object,
  where: string,
  completion: Completion,
): Record<string, unknown> {
  const row: Record<string, unknown> = {}
  for (const property of properties) {
    const { kind, isKnown, name } = property
    if (kind === 'sequence' && !completion.withSequence) continue
    const given = readMember(members, name)
    if (given === undefined && !isKnown && !completion.withUnknown) continue
    const value = completed(property, given, where, completion)
    if (value !== undefined) row[property.name] = value
  }
  return row
}

/** The value as it is stored; undefined where an optional property has none. */
function completed(
  property: CompiledProperty,
  given: unknown,
  where: string,
  completion: Completion,
): unknown {
  const { name, presence, fallback } = property
  // A null is refused as a value; the default is for what is not named at all.
  if (given !== undefined) return checkProperty(property, given, where, completion)
  // It was checked when it was declared, by the rules of then.
  if (fallback !== undefined) return fallback instanceof Uint8Array ? copyBytes(fallback) : fallback
  if (presence === 'repeated') return []
  if (presence === 'optional') return undefined
  throw new StoreError('invalid', `${where}: ${name} is absent; it is required`)
}

function checkProperty(
  property: CompiledProperty,
  value: unknown,
  where: string,
  completion: Completion,
): unknown {
  const place = `${where}: ${property.name}`
  if (property.presence !== 'repeated') return checkOne(property, value, place, completion)
  if (!isList(value)) throw wrongValue(place, value, 'a list')
  const hidden = hiddenIn(value)
  if (hidden !== undefined) {
    throw new StoreError('invalid', `${place}: the list has ${hidden}; leave it out`)
  }
  // `map` would leave holes as they are, and no program could read the row any more.
  const elements = readElements(value)
  if (elements === undefined) {
    throw new StoreError('invalid', `${place}: the list has no length that a list has`)
  }
  // There is no way to tell which element was which: each is a new one.
  const whole = { ...completion, withUnknown: true }
  return elements.map((one, index) => checkOne(property, one, `${place}[${index}]`, whole))
}

function checkOne(
  { kind, fields, fieldNames }: CompiledProperty,
  value: unknown,
  where: string,
  completion: Completion,
): unknown {
  if (kind !== 'message') return checkScalar(kind, value, where)
  return complete(
    fields,
    checkMembers(value, fieldNames, () => where),
    where,
    { ...completion, withSequence: true },
  )
}
