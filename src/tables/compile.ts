/** Makes a schema version ready for storing (`compiled.ts`); done once a version. */
import { assert, present } from '../base/assert.ts'
import { encodePlace, placedPrefix } from '../base/placed-group.ts'
import { encodeTuple } from '../base/tuple.ts'
import { fingerprintOf } from '../../schema/fingerprint.ts'
import { decodeLiteral } from '../../schema/default.ts'
import {
  listIndexes,
  type ChildTable,
  type PropertyDefault,
  type PropertyKind,
  type Property,
  type Schema,
  type Table,
} from '../../schema/model.ts'
import { deleteRule, type SchemaVersion } from '../../schema/version.ts'
import { compileGlobal, compileIndex } from './compile-index.ts'
import { compileKey, listNumbered, listQueryNames, findSequence } from './compile-key.ts'
import type {
  CompiledChild,
  CompiledExpiry,
  CompiledGlobal,
  CompiledPlacement,
  CompiledProperty,
  CompiledSchema,
  CompiledTable,
  KeyPart,
} from './compiled.ts'

/** Numbers are two bytes in keys; those from ff00 on would be taken for worklists. */
const storedNumberMax = 0xfeff

const compiledVersions = new WeakMap<SchemaVersion, CompiledSchema>()

/** For versions that are opened again and again: each is compiled once. */
export function compiledVersion(version: SchemaVersion, declared: Schema): CompiledSchema {
  if (fingerprintOf(declared) !== version.fingerprint) return compileSchema(version, { declared })
  const known = compiledVersions.get(version)
  if (known !== undefined) return known
  const compiled = compileSchema(version)
  compiledVersions.set(version, compiled)
  return compiled
}

export interface CompileOptions {
  /** A later version, whose indexes are kept. */
  readonly newest?: CompiledSchema | undefined
  /** The schema that the program declares: this version without it, or an earlier one. */
  readonly declared?: Schema | undefined
}

export function compileSchema(
  compiling: SchemaVersion,
  { newest, declared = compiling.schema }: CompileOptions = {},
): CompiledSchema {
  const { schema, numbers, version } = compiling
  assert(version <= (newest?.version ?? version), 'TAB-6: a later version has a higher number')
  const asked = new Map<string, CompiledGlobal>()
  const tables = new Map<string, CompiledTable>()
  const childrenOf = new Map<string, CompiledChild[]>()
  const compile = (table: Table): CompiledTable => {
    const done = tables.get(table.name)
    if (done !== undefined) return done
    const parent = table.kind === 'child' ? findTable(schema, table.inTable) : undefined
    const above = parent && compile(parent)
    const root = table.kind === 'root' ? undefined : compile(findRoot(schema, table))
    const later = newest?.tables.get(table.name)
    const known = findTable(declared, table.name)?.properties
    const children: CompiledChild[] = []
    const around = { schema, numbers, root, above, later, known, children }
    const compiled = compileTable(table, around)
    childrenOf.set(table.name, children)
    if (table.kind === 'child') {
      const onDelete = deleteRule(compiling, table)
      childrenOf.get(table.inTable ?? table.root)?.push({ table: compiled, onDelete })
    }
    for (const index of compiled.globals) asked.set(index.name, index)
    tables.set(table.name, compiled)
    return compiled
  }
  for (const table of schema.tables) compile(table)
  const indexes = [...tables.values()].flatMap((table) => table.indexes)
  return {
    name: schema.name,
    version,
    tables,
    hasExpiry: schema.tables.some(({ expiry }) => expiry !== undefined),
    tableByNumber: new Map([...tables.values()].map((table) => [table.number, table])),
    indexes: new Map(indexes.map((index) => [index.name, index])),
    indexByNumber: new Map(indexes.map((index) => [index.number, index])),
    globals: asked,
  }
}

/** The compiler's input for a table: its version, and the compiled tables that it is below. */
interface Surroundings extends Pick<SchemaVersion, 'schema' | 'numbers'> {
  readonly root: CompiledTable | undefined
  readonly above: CompiledTable | undefined
  /** The same table of a later version. */
  readonly later: CompiledTable | undefined
  /** The table's properties as the program declares them. */
  readonly known: readonly Property[] | undefined
  /** Filled when the tables below are compiled. */
  readonly children: readonly CompiledChild[]
}

function compileTable(
  table: Table,
  { schema, numbers, root, above, later, known, children }: Surroundings,
): CompiledTable {
  const properties = table.properties.map((property) =>
    compileProperty(property, `${table.name}.`, numbers.properties, known),
  )
  const findNumber = (name: string): number => storedNumber(numbers, name)
  const number = findNumber(table.name)
  const keyed = compileKey({ table, number, properties }, root, above)
  const placement = compilePlacement(table, keyed.key)
  const placed = root?.placement ?? placement
  const placeBytes = placed?.kind === 'fixed' ? placed.bytes : undefined
  const declared = listIndexes(schema, table.name)
  const indexes = declared.flatMap((index) =>
    index.kind === 'global' ? [] : [compileIndex(index, findNumber(index.name), keyed)],
  )
  const globals = declared.flatMap((index) =>
    index.kind === 'global'
      ? [compileGlobal(schema, index, findNumber(index.name), { keyed, placeBytes })]
      : [],
  )
  const { key, steps, ownParts, groupPartCount } = keyed
  return {
    kind: 'table',
    name: table.name,
    number,
    root: root?.name ?? table.name,
    scatter: table.key.scatter,
    parent: above?.name,
    key,
    groupPartCount,
    steps,
    ownParts,
    properties,
    sequence: findSequence(properties, key),
    numbered: listNumbered(properties, key),
    indexes,
    globals,
    newest: later,
    children,
    expiry: compileExpiry(table, properties, key),
    keepsUnknown: later !== undefined || hasUnknown(properties),
    isUnique: indexes.some((index) => index.isUnique),
    names: collectNames(properties),
    stored: pickStored(properties, key),
    parts: properties.map((property) => ({ property, keyPlace: placeIn(key, property.name) })),
    queryNames: listQueryNames(steps),
    keyNames: new Set(key.map(({ name }) => name)),
    groupPrefix:
      placement === undefined
        ? encodeTuple(['tables', schema.name, number])
        : placedPrefix('tables', schema.name, number),
    placement,
  }
}

function compilePlacement(table: Table, key: readonly KeyPart[]): CompiledPlacement | undefined {
  const placement = table.kind === 'root' ? table.placement : undefined
  if (placement === undefined) return undefined
  if (placement.kind !== 'by') return { kind: 'fixed', bytes: encodePlace(placement) }
  const keyPlace = placeIn(key, placement.property)
  assert(keyPlace >= 0, 'SCH-17: groups are placed by a part of the key')
  return { kind: 'by', keyPlace }
}

function compileExpiry(
  { expiry }: Table,
  properties: readonly CompiledProperty[],
  key: readonly KeyPart[],
): CompiledExpiry | undefined {
  if (expiry === undefined) return undefined
  if (expiry.kind === 'after') return { kind: 'after', micros: expiry.seconds * 1e6 }
  const named = properties.find(({ name }) => name === expiry.property)
  const property = present(named, 'SCH-16: rows expire at a moment of theirs')
  return { kind: 'at', property, keyPlace: placeIn(key, property.name) }
}

function storedNumber({ stored }: SchemaVersion['numbers'], name: string): number {
  const number = present(stored[name], 'TAB-2: tables and indexes have numbers')
  assert(number <= storedNumberMax, 'TAB-2: a number fits its two bytes, and begins no worklist')
  return number
}

function findTable(schema: Schema, name: string | undefined): Table | undefined {
  return schema.tables.find((table) => table.name === name)
}

function findRoot(schema: Schema, table: ChildTable): Table {
  return present(findTable(schema, table.root), 'TAB-2: a child has its root in the schema')
}

function compileProperty(
  property: Property,
  prefix: string,
  numbers: Readonly<Record<string, number>>,
  known: readonly Property[] | undefined,
): CompiledProperty {
  const { name, presence, type } = property
  const declared = known?.find((one) => one.name === name)
  const inside = declared?.type.kind === 'message' ? declared.type.properties : undefined
  const path = `${prefix}${name}`
  const parts = type.kind === 'message' ? type.properties : []
  const fields = parts.map((field) => compileProperty(field, `${path}.`, numbers, inside))
  return {
    name,
    path,
    presence,
    kind: type.kind,
    number: present(numbers[path], 'TAB-2: properties have numbers'),
    fields,
    fieldNames: collectNames(fields),
    fallback:
      property.default === undefined ? undefined : decodeFallback(type.kind, property.default),
    isKnown: declared !== undefined,
  }
}

/** As it would be stored: a float has 32 bits in rows of before there was a default, too. */
function decodeFallback(kind: PropertyKind, literal: PropertyDefault): unknown {
  const value = decodeLiteral(kind, literal)
  return kind === 'float' && typeof value === 'number' ? Math.fround(value) : value
}

function hasUnknown(properties: readonly CompiledProperty[]): boolean {
  return properties.some(({ isKnown, fields }) => !isKnown || hasUnknown(fields))
}

function collectNames(properties: readonly CompiledProperty[]): ReadonlySet<string> {
  return new Set(properties.map(({ name }) => name))
}

function placeIn(key: readonly KeyPart[], name: string): number {
  return key.findIndex((part) => part.name === name)
}

function pickStored(
  properties: readonly CompiledProperty[],
  key: readonly KeyPart[],
): readonly CompiledProperty[] {
  const ofKey = new Set(key.map(({ name }) => name))
  return properties.filter(({ name, kind }) => kind !== 'sequence' && !ofKey.has(name))
}
