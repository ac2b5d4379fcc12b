/**
 * The description of a schema (Megastore, 3.2): plain, frozen data, the same whether it was written
 * in TypeScript or as text. Only `checkSchema` makes one, so code that holds a `Schema` may rely on
 * everything `check-*.ts` asks for. It is its own JSON form: stringify it, and `decodeSchema` what
 * comes back.
 *
 * Tables stand in the order of their declaration; indexes are grouped by table in that order.
 */

/** Rises when the JSON form changes; a format that is not known is refused. */
export const schemaFormat = 1

export interface Schema {
  readonly format: typeof schemaFormat
  readonly name: string
  readonly tables: readonly Table[]
  readonly indexes: readonly Index[]
}

export type Table = RootTable | ChildTable

interface TableBase {
  readonly name: string
  readonly properties: readonly Property[]
  readonly key: Key
  /** Absent: rows stay until they are deleted. */
  readonly expiry?: Expiry
}

/**
 * When a row expires. `after`: this number of seconds after the commit that wrote it last. `at`: at the moment that this
 * property has, a timestamp; a row without it stays.
 */
export type Expiry =
  | { readonly kind: 'after'; readonly seconds: number }
  | { readonly kind: 'at'; readonly property: string }

/**
 * Where groups are: in the replica set of this name, in the sets of this region, or in the sets of the region that this property
 * of the key names. Names of sets and regions are 1 to 32 of `a-z 0-9 -`; which there are, the cluster's configuration says.
 */
export type TablePlacement =
  | { readonly kind: 'set' | 'region'; readonly name: string }
  | { readonly kind: 'by'; readonly property: string }

/** Each of its rows is the root of an entity group, named by its key. */
export interface RootTable extends TableBase {
  readonly kind: 'root'
  /** Absent: groups are spread over all replica sets by a hash of the key. */
  readonly placement?: TablePlacement
}

/** Each of its rows belongs to the group of one root row. */
export interface ChildTable extends TableBase {
  readonly kind: 'child'
  readonly root: string
  /** The properties that name the root row: the first parts of the key. */
  readonly groupKey: readonly string[]
  /** The table whose rows these stand next to; absent: they have a range of their own in the group. */
  readonly inTable?: string
  /**
   * Of these rows when the row that they belong to is deleted: that of `inTable`, or the root row. Absent: as `SchemaVersion.restricting` says.
   */
  readonly onDelete?: OnDelete
}

/** In the order in which a later version may go from one to the next. */
export const deleteRules = ['keep', 'restrict', 'cascade'] as const

/**
 * `keep`: they stay. `restrict`: that row is not deleted while they are there. `cascade`: they go with it, in the
 * same transaction.
 */
export type OnDelete = (typeof deleteRules)[number]

export interface Key {
  readonly parts: readonly KeyPart[]
  /** A two-byte hash stands before the key of a root, and so before all of its group. */
  readonly scatter: boolean
}

export type Direction = 'asc' | 'desc'

export interface KeyPart {
  readonly property: string
  readonly direction: Direction
}

export type Presence = 'required' | 'optional' | 'repeated'

export interface Property {
  readonly name: string
  readonly presence: Presence
  readonly type: PropertyType
  /** The value of a row that was written without one. Only required properties have a default. */
  readonly default?: PropertyDefault
}

/** As JSON has it: an int64 in decimal digits, bytes in hexadecimal ones. */
export type PropertyDefault = string | number | boolean

export type PropertyType = { readonly kind: ScalarKind } | MessageType

export interface MessageType {
  readonly kind: 'message'
  readonly properties: readonly Property[]
}

export const scalarKinds = [
  'string',
  'bytes',
  'bool',
  'int32',
  'int64',
  'integer',
  'float',
  'double',
  'timestamp',
  'uuid',
  'json',
  'sequence',
] as const

/** `int64` is a bigint, `integer` a safe number; a `sequence` is filled in when a row is committed. */
export type ScalarKind = (typeof scalarKinds)[number]
export type PropertyKind = ScalarKind | 'message'

export type Index = LocalIndex | GlobalIndex | InlineIndex

interface IndexBase {
  readonly name: string
  /** The table whose rows have entries here: one each, and of a list one for each element. */
  readonly table: string
  readonly parts: readonly IndexPart[]
  /**
   * There when a part may be absent from a row. `first`: such a row has its entry, and absent stands before all values.
   * `left-out`, in the text `WHERE PRESENT`: it has none.
   */
  readonly absent?: AbsentParts
  /** Paths of what is copied into each entry. */
  readonly storing: readonly string[]
}

/** Entries lie in the group of their row and change with it. */
export interface LocalIndex extends IndexBase {
  readonly kind: 'local'
  readonly unique: boolean
}

/** Entries lie in groups of the index and follow soon. */
export interface GlobalIndex extends IndexBase {
  readonly kind: 'global'
  readonly unique: boolean
  /** How many groups the index has; the value at `shardBy` says which one an entry is in. */
  readonly shards: number
  readonly shardBy: string
  /** How many groups the entries of one value are spread over. */
  readonly spread: number
}

/** Entries appear as a repeated property, named like the index, of a row in the same group. */
export interface InlineIndex extends IndexBase {
  readonly kind: 'inline'
  readonly into: string
}

export type AbsentParts = 'first' | 'left-out'

export interface IndexPart {
  /** A property, or a field inside messages: `exif.camera`. */
  readonly path: string
  readonly direction: Direction
}

export function findTable(schema: Schema, name: string): Table | undefined {
  return schema.tables.find((table) => table.name === name)
}

export function findIndex(schema: Schema, name: string): Index | undefined {
  return schema.indexes.find((index) => index.name === name)
}

export function listIndexes(schema: Schema, table: string): readonly Index[] {
  return schema.indexes.filter((index) => index.table === table)
}

export function keyNames(key: Key): readonly string[] {
  return key.parts.map(({ property }) => property)
}
