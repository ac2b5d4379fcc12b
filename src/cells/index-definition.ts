/**
 * An index over cells (Schemaless "Indexes"): which fields of which columns' latest cells it holds. The
 * first field is the shard field: a query names its value. This file checks a caller's definition, and
 * each mistake told with the way to it, so that who has a file can say the line.
 */
import { errorText } from '../base/error-text.ts'
import { readElements, hiddenIn, isList, isReadable } from '../base/readable.ts'
import { unknownWord } from '../base/suggest.ts'
import { wordsFor } from '../base/words.ts'
import { isColumn, isDatastore } from './cell.ts'
import { isBaseName } from './datastore-form.ts'
import { isIndexType, indexTypes, type IndexType } from './index-values.ts'

export interface IndexField {
  /** A member of the cell's body, or a way through its objects: `driver.uuid`. */
  readonly field: string
  readonly type: IndexType
  readonly column: string
}

export interface IndexDefinition {
  readonly name: string
  readonly datastore: string
  /** In the order of the definition; the first one is the shard field. */
  readonly fields: readonly IndexField[]
}

/** An index as it is declared: a later one of the same name has another number, and entries of its own. */
export interface NumberedIndex extends IndexDefinition {
  readonly number: number
}

/** Under which entries are stored; no name of an index has such a sign. */
export function storedName({ name, number }: Pick<NumberedIndex, 'name' | 'number'>): string {
  return number === 0 ? name : `${name}#${number}`
}

export interface DefinitionProblem {
  readonly at: readonly (string | number)[]
  readonly message: string
}

export type DefinitionResult =
  | { readonly ok: true; readonly definition: IndexDefinition }
  | { readonly ok: false; readonly problems: readonly DefinitionProblem[] }

export const indexFieldsMax = 32
const fieldCharsMax = 256
const fieldPattern = /^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$/
const noFields = 'column_defs names no field, and an index has one at least'
const members = ['table', 'datastore', 'column_defs']
const columnMembers = ['column_key', 'fields']
const fieldMembers = ['field', 'type']

/** From what YAML or JSON gives: `table`, `datastore`, `column_defs: [{column_key, fields: [{field, type}]}]`. */
export function checkDefinition(value: unknown): DefinitionResult {
  const problems: DefinitionProblem[] = []
  const complain = (at: readonly (string | number)[], message: string): void => {
    problems.push({ at, message })
  }
  const given = readRecord(value, [], complain)
  if (given === undefined) {
    if (problems.length > 0) return { ok: false, problems }
    const message = 'an index is defined by table, datastore and column_defs'
    return { ok: false, problems: [{ at: [], message }] }
  }
  complainOfOthers(given, members, [], complain)
  const { table: name, datastore, column_defs: columns } = given
  if (typeof name !== 'string' || !isBaseName(name)) {
    complain(['table'], 'table is the name of the index: a-z, 0-9 and _, starting with a letter')
  }
  if (typeof datastore !== 'string' || !isDatastore(datastore)) {
    complain(
      ['datastore'],
      'datastore is the name of a datastore: a-z, 0-9 and _, and maybe its number of shards and their place, as in trips.64.region-eu',
    )
  }
  const fields = readFields(columns, complain)
  if (problems.length === 0 && fields.length === 0) complain(['column_defs'], noFields)
  if (problems.length > 0) return { ok: false, problems }
  return { ok: true, definition: { name: String(name), datastore: String(datastore), fields } }
}

type Complain = (at: readonly (string | number)[], message: string) => void

function readFields(columns: unknown, complain: Complain): readonly IndexField[] {
  const at = ['column_defs']
  if (!isList(columns) || isEmpty(columns)) {
    complain(at, 'column_defs is a list of columns: - column_key: BASE, and its fields')
    return []
  }
  const fields = elementsIn(columns, at, complain).flatMap((one, place) =>
    columnFields(one, [...at, place], complain),
  )
  const first = new Map<string, number>()
  for (const [place, { field }] of fields.entries()) {
    if (first.has(field))
      complain(at, `the field ${field} is there twice: queries could not tell them apart`)
    first.set(field, place)
  }
  return fields.length > indexFieldsMax ? tooMany(at, complain) : fields
}

function columnFields(
  value: unknown,
  at: readonly (string | number)[],
  complain: Complain,
): readonly IndexField[] {
  const given = readRecord(value, at, complain)
  complainOfOthers(given, columnMembers, at, complain)
  const column = given?.['column_key']
  if (typeof column !== 'string' || !isColumn(column)) {
    complain([...at, 'column_key'], 'column_key is the name of a column: letters, digits and _')
    return []
  }
  const fields = given?.['fields']
  if (!isList(fields) || isEmpty(fields)) {
    complain([...at, 'fields'], 'fields is a list: - { field: city_uuid, type: UUID }')
    return []
  }
  const listAt = [...at, 'fields']
  return elementsIn(fields, listAt, complain).flatMap((one, place) => {
    const field = readField(one, column, [...listAt, place], complain)
    return field === undefined ? [] : [field]
  })
}

function readField(
  value: unknown,
  column: string,
  at: readonly (string | number)[],
  complain: Complain,
): IndexField | undefined {
  const given = readRecord(value, at, complain) ?? {}
  const { field, type } = given
  complainOfOthers(given, fieldMembers, at, complain)
  if (typeof field !== 'string' || !fieldPattern.test(field) || field.length > fieldCharsMax) {
    complain(
      [...at, 'field'],
      'field is a member of the cell, or a way to one: city_uuid, driver.uuid',
    )
    return undefined
  }
  const kind = typeof type === 'string' ? type.toLowerCase() : ''
  if (!isIndexType(kind)) {
    const known = indexTypes.join(', ')
    complain([...at, 'type'], `${wordsFor(type)} is no type of a field; there are ${known}`)
    return undefined
  }
  return { field, type: kind, column }
}

/** A list that cannot be read is not empty: the check complains of it with its reason. */
function isEmpty(list: readonly unknown[]): boolean {
  try {
    return list.length === 0
  } catch {
    return false
  }
}

function elementsIn(
  list: readonly unknown[],
  at: readonly (string | number)[],
  complain: Complain,
): readonly unknown[] {
  try {
    const hidden = hiddenIn(list)
    if (hidden !== undefined) complain(at, `${at.join('.')}: the list has ${hidden}; leave it out`)
    return readElements(list, indexFieldsMax) ?? tooMany(at, complain)
  } catch (error) {
    complain(at, `${at.join('.')} cannot be read: ${errorText(error)}`)
    return []
  }
}

function tooMany(at: readonly (string | number)[], complain: Complain): readonly never[] {
  complain(at, `an index has 1 to ${indexFieldsMax} fields`)
  return []
}

/** A member that is passed over would be one that does nothing. */
function complainOfOthers(
  given: Readonly<Record<string, unknown>> | undefined,
  known: readonly string[],
  at: readonly (string | number)[],
  complain: Complain,
): void {
  for (const name of Object.keys(given ?? {})) {
    if (!known.includes(name)) complain([...at, name], unknownWord('member', name, known))
  }
}

/** Each member is read once. It complains of members that copying would lose, and of those that it cannot read. */
function readRecord(
  value: unknown,
  at: readonly (string | number)[],
  complain: Complain,
): Readonly<Record<string, unknown>> | undefined {
  if (typeof value !== 'object' || value === null || !isReadable(value)) return undefined
  if (Array.isArray(value)) return undefined
  const where = at.length === 0 ? 'the definition' : at.join('.')
  try {
    const hidden = hiddenIn(value)
    if (hidden !== undefined) complain(at, `${where} has ${hidden}; leave it out`)
    return Object.fromEntries(Object.entries(value))
  } catch (error) {
    complain(at, `${where} cannot be read: ${errorText(error)}`)
    return undefined
  }
}

/** The same as JSON, as it is stored; `checkDefinition` reads it. */
export function definitionJson({ name, datastore, fields }: IndexDefinition): string {
  const columns = fields.map(({ column, field, type }) => ({
    column_key: column,
    fields: [{ field, type }],
  }))
  return JSON.stringify({ table: name, datastore, column_defs: columns })
}

/** Whether cells of this column have a say in the index. */
export function isOverColumn({ fields }: IndexDefinition, column: string): boolean {
  return fields.some((field) => field.column === column)
}

export function listColumns({ fields }: IndexDefinition): readonly string[] {
  return [...new Set(fields.map(({ column }) => column))]
}
