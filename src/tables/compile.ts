/**
 * A schema version made ready for storing: numbers instead of names, the steps by which a key becomes
 * bytes, what each property is stored as. Done once a version; everything here is data.
 */
import { assert, present } from '../base/assert.ts'
import { encodeTuple } from '../base/tuple.ts'
import { valueOf } from '../../schema/default.ts'
import {
  indexesOf,
  type ChildTable,
  type Direction,
  type GlobalIndex,
  type Index,
  type Presence,
  type Property,
  type PropertyKind,
  type Schema,
  type Table,
} from '../../schema/model.ts'
import type { SchemaVersion } from '../../schema/version.ts'

export interface CompiledProperty {
  readonly name: string
  readonly path: string
  readonly number: number
  readonly presence: Presence
  readonly kind: PropertyKind
  /** Of a message. */
  readonly fields: readonly CompiledProperty[]
  readonly fieldNames: ReadonlySet<string>
  /** What stands for it where a row has none. */
  readonly fallback: unknown
}

/** How one part of a key becomes bytes; a sequence's number is a plain count also in keys below. */
export interface KeyPart {
  readonly name: string
  readonly kind: PropertyKind
  readonly direction: Direction
}

/** A key is written step by step. */
export type KeyStep =
  /** Of the group, and so in no key inside it. */
  | { readonly kind: 'group'; readonly name: string; readonly place: number }
  /** Two bytes: the number of the table that the parts from here on belong to. */
  | { readonly kind: 'mark'; readonly number: number }
  | { readonly kind: 'part'; readonly part: KeyPart }

export interface CompiledTable {
  readonly kind: 'table'
  readonly name: string
  readonly number: number
  readonly root: string
  readonly scatter: boolean
  /** The table whose rows these stand next to. */
  readonly parent: string | undefined
  /** All parts of the primary key, those of the group first. */
  readonly key: readonly KeyPart[]
  readonly keyNames: ReadonlySet<string>
  /** What a scan may name, in the order of `steps`; of an index, what a query of it may. */
  readonly queryNames: ReadonlySet<string>
  readonly groupPartCount: number
  readonly steps: readonly KeyStep[]
  /** What `steps` has after the parent's. */
  readonly ownParts: readonly KeyPart[]
  readonly properties: readonly CompiledProperty[]
  /** Of the properties: all names, and those that are not in the key and are no sequence. */
  readonly names: ReadonlySet<string>
  readonly stored: readonly CompiledProperty[]
  /** Each property with its place in the key, -1 for what is not in it. */
  readonly parts: readonly { readonly property: CompiledProperty; readonly keyPlace: number }[]
  /** What the names of its groups begin with, when it is a root. */
  readonly groupPrefix: Uint8Array
  readonly sequence: { readonly name: string; readonly isInKey: boolean } | undefined
  /** Local and inline ones. */
  readonly indexes: readonly CompiledIndex[]
  /** Whether one of them is. */
  readonly isUnique: boolean
  /** Those that whoever changes a row keeps: of the newest version that is known here. */
  readonly globals: readonly CompiledGlobal[]
  /** The table of that version, when it is a later one than this: it knows what its indexes are over. */
  readonly newest: CompiledTable | undefined
}

export interface IndexedPart extends KeyPart {
  /** From the row, or from an element of the index's list, to the value. */
  readonly names: readonly string[]
  readonly isInList: boolean
}

export interface StoredPart {
  readonly path: string
  readonly names: readonly string[]
  readonly property: CompiledProperty
}

export interface CompiledIndex {
  readonly kind: 'index'
  readonly name: string
  readonly number: number
  readonly table: string
  readonly isUnique: boolean
  /** The table in whose rows the entries appear. */
  readonly into: string | undefined
  /** The way to the list that has an entry for each element. */
  readonly list: readonly string[] | undefined
  readonly parts: readonly IndexedPart[]
  /** The indexed parts. */
  readonly steps: readonly KeyStep[]
  readonly queryNames: ReadonlySet<string>
  /** What names the row, after the parts; and the steps of the row's own key. */
  readonly rowParts: readonly KeyPart[]
  readonly rowSteps: readonly KeyStep[]
  readonly rowMarks: number
  readonly storing: readonly StoredPart[]
}

/** Of a global index: `rowParts` are all of the row's key, and no step is of a group. */
export interface CompiledGlobal extends CompiledIndex {
  readonly schema: string
  readonly shards: number
  readonly spread: number
  /** Which of the parts says in which of its groups an entry is. */
  readonly shardPlace: number
}

export interface CompiledSchema {
  readonly name: string
  readonly version: number
  readonly tables: ReadonlyMap<string, CompiledTable>
  readonly tableByNumber: ReadonlyMap<number, CompiledTable>
  readonly indexes: ReadonlyMap<string, CompiledIndex>
  readonly indexByNumber: ReadonlyMap<number, CompiledIndex>
  /** Those of this version: what a program may ask. */
  readonly globals: ReadonlyMap<string, CompiledGlobal>
}

/** Numbers are two bytes in keys; those from ff00 on would be taken for agendas. */
const storedNumberMax = 0xfeff

const compiledVersions = new WeakMap<SchemaVersion, CompiledSchema>()

/** For versions that are opened again and again: each is compiled once. */
export function compiledVersion(version: SchemaVersion): CompiledSchema {
  const known = compiledVersions.get(version)
  if (known !== undefined) return known
  const compiled = compileSchema(version)
  compiledVersions.set(version, compiled)
  return compiled
}

/** `newest`: a later version, whose global indexes are kept too. */
export function compileSchema(
  { schema, numbers, version }: SchemaVersion,
  newest?: CompiledSchema,
): CompiledSchema {
  assert(version <= (newest?.version ?? version), 'TAB-6: a later version has a higher number')
  const asked = new Map<string, CompiledGlobal>()
  const tables = new Map<string, CompiledTable>()
  const numberOf = (name: string): number => storedNumber(numbers, name)
  const compile = (table: Table): CompiledTable => {
    const done = tables.get(table.name)
    if (done !== undefined) return done
    const parent = table.kind === 'child' ? tableOf(schema, table.inTable) : undefined
    const above = parent && compile(parent)
    const root = table.kind === 'root' ? undefined : compile(rootOf(schema, table))
    const properties = table.properties.map((property) =>
      compileProperty(property, `${table.name}.`, numbers.properties),
    )
    const number = numberOf(table.name)
    const keyed = keyOf({ table, number, properties }, root, above)
    const declared = indexesOf(schema, table.name)
    const indexes = declared.flatMap((index) =>
      index.kind === 'global' ? [] : [compileIndex(index, numberOf(index.name), keyed)],
    )
    const globals = declared.flatMap((index) =>
      index.kind === 'global' ? [compileGlobal(schema, index, numberOf(index.name), keyed)] : [],
    )
    for (const index of globals) asked.set(index.name, index)
    const later = newest?.tables.get(table.name)
    const { key, steps, ownParts, groupPartCount } = keyed
    const compiled: CompiledTable = {
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
      sequence: sequenceOf(properties, key),
      indexes,
      globals: later?.globals ?? globals,
      newest: later,
      isUnique: indexes.some((index) => index.isUnique),
      names: namesOf(properties),
      stored: storedOf(properties, key),
      parts: properties.map((property) => ({ property, keyPlace: placeIn(key, property.name) })),
      queryNames: queryNamesOf(steps),
      keyNames: new Set(key.map(({ name }) => name)),
      groupPrefix: encodeTuple(['tables', schema.name, number]),
    }
    tables.set(table.name, compiled)
    return compiled
  }
  for (const table of schema.tables) compile(table)
  const indexes = [...tables.values()].flatMap((table) => table.indexes)
  return {
    name: schema.name,
    version,
    tables,
    tableByNumber: new Map([...tables.values()].map((table) => [table.number, table])),
    indexes: new Map(indexes.map((index) => [index.name, index])),
    indexByNumber: new Map(indexes.map((index) => [index.number, index])),
    globals: asked,
  }
}

function storedNumber({ stored }: SchemaVersion['numbers'], name: string): number {
  const number = present(stored[name], 'TAB-2: tables and indexes have numbers')
  assert(number <= storedNumberMax, 'TAB-2: a number fits its two bytes, and begins no agenda')
  return number
}

function tableOf(schema: Schema, name: string | undefined): Table | undefined {
  return schema.tables.find((table) => table.name === name)
}

function rootOf(schema: Schema, table: ChildTable): Table {
  return present(tableOf(schema, table.root), 'TAB-2: a child has its root in the schema')
}

function compileProperty(
  property: Property,
  prefix: string,
  numbers: Readonly<Record<string, number>>,
): CompiledProperty {
  const { name, presence, type } = property
  const path = `${prefix}${name}`
  const parts = type.kind === 'message' ? type.properties : []
  const fields = parts.map((field) => compileProperty(field, `${path}.`, numbers))
  return {
    name,
    path,
    presence,
    kind: type.kind,
    number: present(numbers[path], 'TAB-2: properties have numbers'),
    fields,
    fieldNames: namesOf(fields),
    fallback: property.default === undefined ? undefined : valueOf(type.kind, property.default),
  }
}

function namesOf(properties: readonly CompiledProperty[]): ReadonlySet<string> {
  return new Set(properties.map(({ name }) => name))
}

function placeIn(key: readonly KeyPart[], name: string): number {
  return key.findIndex((part) => part.name === name)
}

/** What a scan or an index query may name. */
function queryNamesOf(steps: readonly KeyStep[]): ReadonlySet<string> {
  return new Set(
    steps.flatMap((step) => {
      if (step.kind === 'mark') return []
      return [step.kind === 'group' ? step.name : step.part.name]
    }),
  )
}

function storedOf(
  properties: readonly CompiledProperty[],
  key: readonly KeyPart[],
): readonly CompiledProperty[] {
  const ofKey = new Set(key.map(({ name }) => name))
  return properties.filter(({ name, kind }) => kind !== 'sequence' && !ofKey.has(name))
}

interface Keyless {
  readonly table: Table
  readonly number: number
  readonly properties: readonly CompiledProperty[]
}

interface Keyed extends Keyless {
  readonly key: readonly KeyPart[]
  readonly groupPartCount: number
  readonly steps: readonly KeyStep[]
  readonly ownParts: readonly KeyPart[]
}

/** The parts that the root and the parent have too are written as these write them. */
function keyOf(
  { table, number, properties }: Keyless,
  root: CompiledTable | undefined,
  above: CompiledTable | undefined,
): Keyed {
  const inherited = above?.key ?? root?.key ?? []
  const key = table.key.parts.map(({ property: name, direction }, place): KeyPart => {
    const kind = inherited[place]?.kind ?? kindOf(properties, name)
    return { name, kind, direction }
  })
  const groupPartCount = root?.key.length ?? key.length
  const group = key.slice(0, groupPartCount)
  const part = (one: KeyPart): KeyStep => ({ kind: 'part', part: one })
  const mark: KeyStep = { kind: 'mark', number }
  const ownParts = key.slice(above?.key.length ?? groupPartCount)
  if (above === undefined) {
    const named = group.map(({ name }, place): KeyStep => ({ kind: 'group', name, place }))
    const steps = [...named, mark, ...ownParts.map(part)]
    return { table, number, properties, key, groupPartCount, ownParts, steps }
  }
  // The parent's steps, by the names that its parts have here.
  let place = 0
  const renamed = above.steps.map((step): KeyStep => {
    if (step.kind === 'mark') return step
    const own = present(key[place++], "TAB-2: a key begins with its parent's")
    return step.kind === 'group' ? { ...step, name: own.name } : part(own)
  })
  const steps = [...renamed, mark, ...ownParts.map(part)]
  return { table, number, properties, key, groupPartCount, ownParts, steps }
}

function kindOf(properties: readonly CompiledProperty[], name: string): PropertyKind {
  const property = properties.find((one) => one.name === name)
  return present(property, 'TAB-2: a key is of properties').kind
}

function sequenceOf(
  properties: readonly CompiledProperty[],
  key: readonly KeyPart[],
): CompiledTable['sequence'] {
  const name = properties.find(({ kind }) => kind === 'sequence')?.name
  return name === undefined ? undefined : { name, isInKey: key.some((part) => part.name === name) }
}

function compileIndex(index: Index, number: number, keyed: Keyed): CompiledIndex {
  const { table, properties, key, groupPartCount } = keyed
  const parts = index.parts.map(({ path, direction }): IndexedPart => {
    const { trail, kind } = follow(properties, path)
    const at = trail.findIndex(({ presence }) => presence === 'repeated')
    const names = trail.slice(at + 1).map(({ name }) => name)
    // A key part that a sequence of the parent gave is written alike everywhere.
    const inKey = key.find(({ name }) => name === path)
    return { name: path, kind: inKey?.kind ?? kind, direction, names, isInList: at >= 0 }
  })
  const listed = index.parts.map(({ path }) => listOn(follow(properties, path).trail))
  const steps = parts.map((part): KeyStep => {
    const place = key.findIndex(({ name }) => name === part.name)
    const isOfGroup = place >= 0 && place < groupPartCount
    return isOfGroup ? { kind: 'group', name: part.name, place } : { kind: 'part', part }
  })
  return {
    kind: 'index',
    name: index.name,
    number,
    table: table.name,
    isUnique: index.kind === 'local' && index.unique,
    into: index.kind === 'inline' ? index.into : undefined,
    list: listed.find((list) => list !== undefined),
    parts,
    steps,
    queryNames: queryNamesOf(steps),
    rowParts: key.slice(groupPartCount),
    rowSteps: keyed.steps,
    rowMarks: keyed.steps.filter(({ kind }) => kind === 'mark').length,
    storing: index.storing.map((path) => {
      const { trail, property } = follow(properties, path)
      return { path, names: trail.map(({ name }) => name), property }
    }),
  }
}

/** Its entries name the whole row: they lie in no group of its. */
function compileGlobal(
  { name: schema }: Schema,
  index: GlobalIndex,
  number: number,
  keyed: Keyed,
): CompiledGlobal {
  const shardPlace = index.parts.findIndex(({ path }) => path === index.shardBy)
  assert(shardPlace >= 0, 'TAB-2: an index is sharded by what it is over')
  const compiled = compileIndex(index, number, { ...keyed, groupPartCount: 0 })
  // A number that is drawn at commit says nothing before it.
  const isDrawn = kindOf(keyed.properties, index.shardBy.split('.')[0] ?? '') === 'sequence'
  const { shards, spread } = isDrawn ? { shards: 1, spread: 1 } : index
  return { schema, shards, spread, shardPlace, ...compiled }
}

function listOn(trail: readonly CompiledProperty[]): readonly string[] | undefined {
  const at = trail.findIndex(({ presence }) => presence === 'repeated')
  return at < 0 ? undefined : trail.slice(0, at + 1).map(({ name }) => name)
}

function follow(
  properties: readonly CompiledProperty[],
  path: string,
): {
  readonly trail: readonly CompiledProperty[]
  readonly property: CompiledProperty
  readonly kind: PropertyKind
} {
  const trail: CompiledProperty[] = []
  let here = properties
  for (const word of path.split('.')) {
    const property = here.find(({ name }) => name === word)
    trail.push(present(property, 'TAB-2: an index is over properties'))
    here = property?.fields ?? []
  }
  const property = present(trail.at(-1), 'TAB-2: a path has a word')
  return { trail, property, kind: property.kind }
}
