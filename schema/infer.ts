/**
 * Types of rows, keys, patches and queries, read off a table's declaration. All of it happens in the
 * compiler; nothing here exists when the program runs.
 *
 * A key is an object (`{ user_id, photo_id }`), so its parts cannot be mixed up. Queries name the
 * parts of a key or index from the first one on, without gaps; the last one named may be a range.
 */
import type { Declared, Properties } from './declared.ts'
import type { Presence } from './model.ts'
import type { Timestamp } from './values.ts'

/** The parts that a table's type carries. `key` and the parts of indexes are names in their order. */
export interface TableShape {
  readonly name: string
  readonly properties: Properties
  readonly key: readonly string[]
  readonly indexes: Readonly<Record<string, IndexShape>>
}

export interface IndexShape {
  readonly parts: readonly string[]
  readonly storing: readonly string[]
  readonly wherePresent: boolean
}

/** Anything declared with `table(…)`; its type is all that is used here. */
export interface Shaped<Shape extends TableShape = TableShape> {
  readonly '~shape'?: Shape
}

type ShapeOf<Table extends Shaped> = Table extends Shaped<infer Shape> ? Shape : never

/** One flat object type, so that editors show members and not their making. */
export type Flat<T> = { [Name in keyof T]: T[Name] } & {}

type ValueOf<Property> =
  Property extends Declared<infer _Kind, Presence, infer Value> ? Value : never

type Named<P extends Properties, Has extends Presence> = {
  [Name in keyof P]: P[Name]['presence'] extends Has ? Name : never
}[keyof P]

export type RowOf<P extends Properties> = Flat<
  { readonly [Name in Named<P, 'required'>]: ValueOf<P[Name]> } & {
    readonly [Name in Named<P, 'optional'>]?: ValueOf<P[Name]>
  } & { readonly [Name in Named<P, 'repeated'>]: readonly ValueOf<P[Name]>[] }
>

/** A row as it is read: optional properties may be absent, repeated ones are lists. */
export type Row<Table extends Shaped> = RowOf<ShapeOf<Table>['properties']>

type SequenceNames<P extends Properties> = {
  [Name in keyof P]: P[Name]['kind'] extends 'sequence' ? Name : never
}[keyof P]

/** With a default: may be left out of an insert. */
type FilledNames<P extends Properties> = {
  [Name in keyof P]: P[Name]['isFilled'] extends true ? Name : never
}[keyof P]

/** A moment may be given as a Date, or as microseconds; it is read as microseconds. */
type GivenValue<Property> =
  Property extends Declared<'timestamp'> ? Timestamp | bigint | Date : ValueOf<Property>

type InsertValue<Property> =
  Property extends Declared<'message', Presence, unknown, infer Fields extends Properties>
    ? InsertOf<Fields>
    : GivenValue<Property>

type InsertOf<P extends Properties> = Flat<
  {
    readonly [
      Name in Exclude<Named<P, 'required'>, SequenceNames<P> | FilledNames<P>>
    ]: InsertValue<P[Name]>
  } & { readonly [Name in Named<P, 'optional'> | FilledNames<P>]?: InsertValue<P[Name]> } & {
    readonly [Name in Named<P, 'repeated'>]?: readonly InsertValue<P[Name]>[]
  }
>

/** A row to be inserted: without its sequence; a list left out is empty, a default fills itself in. */
export type Insert<Table extends Shaped> = InsertOf<ShapeOf<Table>['properties']>

type KeyValues<Shape extends TableShape> = {
  readonly [Name in Shape['key'][number]]: ValueOf<Shape['properties'][Name]>
}

type GivenKeyValues<Shape extends TableShape> = {
  readonly [Name in Shape['key'][number]]: GivenValue<Shape['properties'][Name]>
}

/** The key that names one row. */
export type Key<Table extends Shaped> = GivenKeyValues<ShapeOf<Table>>

/** The same as it is read: moments are microseconds. */
export type ReadKey<Table extends Shaped> = KeyValues<ShapeOf<Table>>

type Unchangeable<Shape extends TableShape> =
  Shape['key'][number] | SequenceNames<Shape['properties']>

type PatchOf<P extends Properties, Kept> = Flat<
  { readonly [Name in Exclude<Named<P, 'required'>, Kept>]?: InsertValue<P[Name]> } & {
    readonly [Name in Exclude<Named<P, 'optional'>, Kept>]?: InsertValue<P[Name]> | null
  } & { readonly [Name in Exclude<Named<P, 'repeated'>, Kept>]?: readonly InsertValue<P[Name]>[] }
>

/** The changes of an update: anything but the key; `null` takes an optional property away. */
export type Patch<Table extends Shaped> = PatchOf<
  ShapeOf<Table>['properties'],
  Unchangeable<ShapeOf<Table>>
>

/** Values between two bounds; each bound is there once, with its value or without. */
export type Range<Value> = (
  { readonly gte?: Value; readonly gt?: never } | { readonly gt: Value; readonly gte?: never }
) &
  ({ readonly lte?: Value; readonly lt?: never } | { readonly lt: Value; readonly lte?: never })

type Nothing<Parts extends readonly string[]> = { readonly [Name in Parts[number]]?: never }

/** The first parts, some or all or none of them. */
type PrefixOf<Parts extends readonly string[], Values, Before = unknown> = Parts extends readonly [
  infer First extends string & keyof Values,
  ...infer Rest extends readonly string[],
]
  ? | Flat<Before & Nothing<Parts>>
    | PrefixOf<Rest, Values, Before & { readonly [Name in First]: Values[Name] }>
  : Flat<Before>

/** The same, and the last part that is named may be a range. */
type QueryOf<Parts extends readonly string[], Values, Before = unknown> = Parts extends readonly [
  infer First extends string & keyof Values,
  ...infer Rest extends readonly string[],
]
  ? | Flat<Before & { readonly [Name in First]?: Range<NonNullable<Values[Name]>> } & Nothing<Rest>>
    | QueryOf<Rest, Values, Before & { readonly [Name in First]: Values[Name] }>
  : Flat<Before>

/** The first parts of a table's key: what a scan goes over. */
export type KeyPrefix<Table extends Shaped> = PrefixOf<
  ShapeOf<Table>['key'],
  GivenKeyValues<ShapeOf<Table>>
>

/** The first parts of a table's key, the last one named as a value or as a range. */
export type KeyRange<Table extends Shaped> = QueryOf<
  ShapeOf<Table>['key'],
  GivenKeyValues<ShapeOf<Table>>
>

/** The property at a path: `exif.camera`. */
type At<P, Path> = P extends Properties
  ? Path extends keyof P
    ? P[Path]
    : Path extends `${infer Head}.${infer Rest}`
      ? Head extends keyof P
        ? At<P[Head]['fields'], Rest>
        : never
      : never
  : never

/**
 * Is a path's value in each row that has the properties `OnWay` above it? With `required` alone there is one
 * in each row; with `repeated` too, one in each element of the list on the way.
 */
type IsAlways<P, Path, OnWay extends Presence> = P extends Properties
  ? Path extends keyof P
    ? P[Path]['presence'] extends 'optional'
      ? false
      : true
    : Path extends `${infer Head}.${infer Rest}`
      ? Head extends keyof P
        ? P[Head]['presence'] extends OnWay
          ? IsAlways<P[Head]['fields'], Rest, OnWay>
          : false
        : false
      : false
  : false

/** The parts that an entry may be without. */
type AbsentParts<Shape extends TableShape, Index extends IndexShape> = {
  [Path in Index['parts'][number]]: true extends
    Index['wherePresent'] | IsAlways<Shape['properties'], Path, 'required' | 'repeated'>
    ? never
    : Path
}[Index['parts'][number]]

type StoredValue<Property> = Property extends Declared
  ? Property['presence'] extends 'repeated'
    ? readonly ValueOf<Property>[]
    : ValueOf<Property>
  : never

export type IndexNames<Table extends Shaped> = string & keyof ShapeOf<Table>['indexes']

type PartValues<Shape extends TableShape, Parts extends readonly string[]> = {
  readonly [Path in Parts[number]]: ValueOf<At<Shape['properties'], Path>>
}

/** A query names a value for each part, or says that there is none. */
type AskedValues<Shape extends TableShape, Index extends IndexShape> = {
  readonly [Path in Index['parts'][number]]:
    | GivenValue<At<Shape['properties'], Path>>
    | (Path extends AbsentParts<Shape, Index> ? null : never)
}

type QueryIn<Shape extends TableShape, Name extends keyof Shape['indexes']> = QueryOf<
  Shape['indexes'][Name]['parts'],
  AskedValues<Shape, Shape['indexes'][Name]>
>

/** The query of an index: its first parts, the last one named as a value or as a range. */
export type IndexQuery<Table extends Shaped, Name extends IndexNames<Table>> = QueryIn<
  ShapeOf<Table>,
  Name
>

type EntryIn<Shape extends TableShape, Index extends IndexShape> = Flat<
  Omit<PartValues<Shape, Index['parts']>, AbsentParts<Shape, Index>> &
    Partial<Pick<PartValues<Shape, Index['parts']>, AbsentParts<Shape, Index>>> &
    KeyValues<Shape> & {
      readonly [
        Path in Index['storing'][number] as IsAlways<
          Shape['properties'],
          Path,
          'required'
        > extends true
          ? Path
          : never
      ]: StoredValue<At<Shape['properties'], Path>>
    } & {
      readonly [
        Path in Index['storing'][number] as IsAlways<
          Shape['properties'],
          Path,
          'required'
        > extends true
          ? never
          : Path
      ]?: StoredValue<At<Shape['properties'], Path>>
    }
>

/**
 * The entry of a row in an index: the indexed values (one element of a list), the row's key, the stored
 * properties.
 */
export type IndexEntry<Table extends Shaped, Name extends IndexNames<Table>> = EntryIn<
  ShapeOf<Table>,
  ShapeOf<Table>['indexes'][Name]
>
