/**
 * The versions that a schema goes through. Each is whole by itself, and carries the numbers by which
 * rows and entries are stored instead of by names. A number is given once and means the same from
 * then on: rows need not be rewritten when something is added, and order in a declaration is free.
 */
import { checkModel, checkVersion } from './given.ts'
import { assert } from '../src/base/assert.ts'
import type { SchemaChange } from './change.ts'
import { diffSchemas } from './diff.ts'
import { fingerprintOf } from './fingerprint.ts'
import { findTable, type ChildTable, type OnDelete, type Property, type Schema } from './model.ts'

export interface SchemaVersion {
  /** 1, 2, 3 … */
  readonly version: number
  readonly fingerprint: string
  readonly schema: Schema
  readonly numbers: SchemaNumbers
  /**
   * Child tables that restrict without saying so: those that were declared since this is what no ON DELETE
   * means. Rows of others without one stay. Absent: there are none. Programs that do not know of it
   * read such a version, and leave it out of the next one that they make.
   */
  readonly restricting?: readonly string[]
}

/** By name, each counting from 1: tables and indexes together, properties within what they are in. */
export interface SchemaNumbers {
  readonly stored: Readonly<Record<string, number>>
  /** By path, of fields too: `Photo.exif`, `Photo.exif.camera`. */
  readonly properties: Readonly<Record<string, number>>
}

export function firstVersion(schema: Schema): SchemaVersion {
  checkModel('firstVersion', schema)
  const numbers = numbersFor(schema, { stored: {}, properties: {} })
  const fingerprint = fingerprintOf(schema)
  return { version: 1, fingerprint, schema, numbers, ...restrictingIn(schema) }
}

/** The tables that restrict by what no ON DELETE means, after `earlier` if there was one. */
function restrictingIn(
  schema: Schema,
  earlier?: SchemaVersion,
): Pick<SchemaVersion, 'restricting'> {
  const restricting = schema.tables
    .filter((table) => table.kind === 'child' && table.onDelete === undefined)
    .map(({ name }) => name)
    .filter((name) => {
      const isNew = earlier === undefined || findTable(earlier.schema, name) === undefined
      return isNew || earlier.restricting?.includes(name) === true
    })
  return restricting.length === 0 ? {} : { restricting }
}

/** The rule of this version for rows of the table, when the row that they belong to is deleted. */
export function deleteRule({ restricting }: SchemaVersion, table: ChildTable): OnDelete {
  const { name, onDelete } = table
  return onDelete ?? (restricting?.includes(name) === true ? 'restrict' : 'keep')
}

export type SchemaStep =
  /** Says nothing else than the current one; there is no new version. */
  | { readonly kind: 'same'; readonly version: SchemaVersion }
  | {
      readonly kind: 'next'
      readonly version: SchemaVersion
      readonly changes: readonly SchemaChange[]
    }
  /** At least one of the changes has a refusal; nothing is done. */
  | { readonly kind: 'refused'; readonly changes: readonly SchemaChange[] }

/** Goes from the current version to one that says what `schema` says, when that can be done online. */
export function nextVersion(current: SchemaVersion, schema: Schema): SchemaStep {
  checkVersion('nextVersion', current)
  checkModel('nextVersion', schema)
  const fingerprint = fingerprintOf(schema)
  const changes = diffSchemas(current.schema, schema)
  const isSame = fingerprint === current.fingerprint
  assert(isSame === (changes.length === 0), 'SCH-13: equal fingerprints and no changes go together')
  if (isSame) return { kind: 'same', version: current }
  if (changes.some(({ refusal }) => refusal !== undefined)) return { kind: 'refused', changes }
  const numbers = numbersFor(schema, current.numbers)
  const names = [...schema.tables, ...schema.indexes]
  assert(
    Object.keys(numbers.stored).filter((name) => !isWithdrawn(name)).length === names.length,
    'SCH-14: nothing that was there is gone',
  )
  const restricting = restrictingIn(schema, current)
  const version = { version: current.version + 1, fingerprint, schema, numbers, ...restricting }
  return { kind: 'next', version, changes }
}

/** The same without one of its indexes, whose number stays given. */
export function withoutIndex(
  { schema, numbers, version, ...more }: SchemaVersion,
  name: string,
): SchemaVersion {
  const { [name]: number, ...stored } = numbers.stored
  const withdrawn = `${name}${withdrawnMark}${version}`
  assert(
    number !== undefined && !(withdrawn in stored),
    'SCH-15: an index that is there has a number',
  )
  const rest = { ...schema, indexes: schema.indexes.filter((index) => index.name !== name) }
  return {
    ...more,
    version: version + 1,
    fingerprint: fingerprintOf(rest),
    schema: rest,
    numbers: { ...numbers, stored: { ...stored, [withdrawn]: number } },
  }
}

/** In no name: a withdrawn index keeps its number under this and the last version that had it. */
const withdrawnMark = '~'

/** The versions, in order, after which an index of this name was withdrawn. */
export function withdrawnIn({ stored }: SchemaNumbers, index: string): readonly number[] {
  const prefix = `${index}${withdrawnMark}`
  const names = Object.keys(stored).filter((name) => name.startsWith(prefix))
  return names.map((name) => Number(name.slice(prefix.length))).sort((a, b) => a - b)
}

function isWithdrawn(name: string): boolean {
  return name.includes(withdrawnMark)
}

/** The numbers that were given, and new ones for what has none. */
function numbersFor(schema: Schema, given: SchemaNumbers): SchemaNumbers {
  const stored = new Numbers(given.stored)
  const properties = new Numbers(given.properties)
  for (const { name } of [...schema.tables, ...schema.indexes]) stored.add('', name)
  for (const table of schema.tables) addProperties(properties, table.properties, `${table.name}.`)
  const numbers = { stored: stored.byPath(), properties: properties.byPath() }
  assert(
    Object.entries(given.properties).every(([path, n]) => numbers.properties[path] === n),
    'SCH-15: a number once given stays',
  )
  return numbers
}

function addProperties(numbers: Numbers, properties: readonly Property[], prefix: string): void {
  for (const { name, type } of properties) {
    numbers.add(prefix, name)
    if (type.kind === 'message') addProperties(numbers, type.properties, `${prefix}${name}.`)
  }
}

/** Counts within each prefix: `''`, or the path of what something is in, with a dot. */
class Numbers {
  readonly #byPath: Map<string, number>
  readonly #lastByPrefix = new Map<string, number>()

  constructor(given: Readonly<Record<string, number>>) {
    this.#byPath = new Map(Object.entries(given))
    for (const [path, number] of this.#byPath) {
      const prefix = path.slice(0, path.lastIndexOf('.') + 1)
      this.#lastByPrefix.set(prefix, Math.max(number, this.#lastByPrefix.get(prefix) ?? 0))
    }
  }

  add(prefix: string, name: string): void {
    if (this.#byPath.has(`${prefix}${name}`)) return
    const number = (this.#lastByPrefix.get(prefix) ?? 0) + 1
    this.#lastByPrefix.set(prefix, number)
    this.#byPath.set(`${prefix}${name}`, number)
  }

  byPath(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#byPath)
  }
}
