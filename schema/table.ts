/**
 * Tables in TypeScript. A declaration is read from left to right, and each step gives what may
 * follow: `table(name, properties)`, then `.key(…)`, then where its rows belong (`.root()`,
 * `.childOf(Root)` or `.in(Parent)`), then its indexes. Every step gives a new value.
 *
 * A wrong name, a key that does not fit the parent's, or a step out of order does not compile;
 * what types cannot say is checked by `defineSchema`.
 */
import { flag, listOf, number, oneOf, text, type Rules } from '../src/base/arguments.ts'
import { wordsFor } from '../src/base/words.ts'
import type { Declared, Properties } from './declared.ts'
import type { IndexDraft, TableDraft } from './draft.ts'
import type { Flat, IndexShape, Shaped, TableShape } from './infer.ts'
import {
  checkBuilderOptions,
  checkParts,
  checkProperties,
  checkTable,
  checkText,
  wrong,
} from './given.ts'
import {
  deleteRules,
  type Expiry,
  type IndexPart,
  type KeyPart,
  type OnDelete,
  type Property,
} from './model.ts'
import { propertyList } from './property.ts'
import { placementRule, readPlacement, type PlacementOption } from './placed.ts'
import { parseTtl, type Ttl } from './ttl.ts'

/** A key or index part in descending order. */
export interface Descending<Name extends string = string> {
  readonly desc: Name
}

export function desc<const Name extends string>(name: Name): Descending<Name> {
  checkText('desc', name)
  return { desc: name }
}

export type Keyable<P extends Properties> = {
  [Name in keyof P]: P[Name] extends Declared<
    Exclude<P[Name]['kind'], 'json' | 'message' | 'float' | 'double'>,
    'required',
    unknown,
    unknown,
    false
  >
    ? Name
    : never
}[keyof P] &
  string

/** Every property and field that has an order, by its path. */
export type IndexablePath<P> = P extends Properties
  ? {
      [Name in keyof P & string]: P[Name]['kind'] extends 'json'
        ? never
        : P[Name]['kind'] extends 'message'
          ? `${Name}.${IndexablePath<P[Name]['fields']>}`
          : Name
    }[keyof P & string]
  : never

/** Every property and field, by its path. */
export type AnyPath<P> = P extends Properties
  ? {
      [Name in keyof P & string]: P[Name]['kind'] extends 'message'
        ? Name | `${Name}.${AnyPath<P[Name]['fields']>}`
        : Name
    }[keyof P & string]
  : never

export type OrDescending<Name extends string> = Name | Descending<Name>

export type NamesOf<Parts extends readonly (string | Descending)[]> = {
  readonly [Place in keyof Parts]: Parts[Place] extends Descending<infer Name>
    ? Name
    : Extract<Parts[Place], string>
}

/** `['int64', 'int32']`: the types of what names a row. */
type OwnKinds<P extends Properties, Key extends readonly string[]> = {
  readonly [Place in keyof Key]: P[Key[Place]]['kind']
}

/** The same as a child's key has to begin: a sequence's number, once given, is an integer. */
type KindsInChild<P extends Properties, Key extends readonly string[]> = {
  readonly [Place in keyof Key]: P[Key[Place]]['kind'] extends 'sequence'
    ? 'integer'
    : P[Key[Place]]['kind']
}

type Joined<Words extends readonly unknown[], Text extends string = ''> = Words extends readonly [
  infer First extends string,
  ...infer Rest,
]
  ? Joined<Rest, Text extends '' ? First : `${Text}, ${First}`>
  : Text

/** Everything when the key of `Shape` begins with that of the parent; else what is wrong, in words. */
export type Fitting<Shape extends TableShape, Parent extends Shaped> =
  Parent extends Shaped<infer Above>
    ? OwnKinds<Shape['properties'], Shape['key']> extends readonly [
        ...KindsInChild<Above['properties'], Above['key']>,
        ...unknown[],
      ]
      ? unknown
      : `the key of ${Shape['name']} (${KeyKinds<Shape>}) does not begin with the key of ${Above['name']} (${KeyKinds<Above>})`
    : never

type KeyKinds<Shape extends TableShape> = Joined<KindsInChild<Shape['properties'], Shape['key']>>

/** A table with its place: what a schema is made of. */
export interface Table<
  Shape extends TableShape = TableShape,
  IsRoot extends boolean = boolean,
> extends Shaped<Shape> {
  readonly name: Shape['name']
  readonly isRoot: IsRoot
  readonly '~draft': TableDraft
  readonly '~indexes': readonly IndexDraft[]
}

export interface IndexOptions<Stored extends string, Present extends boolean = false> {
  /** Properties, by their paths, that are copied into each entry. */
  readonly storing?: readonly Stored[]
  /**
   * Rows without an optional part have no entry. Otherwise they have: absent stands before all values,
   * and a query asks for it with `null`.
   */
  readonly wherePresent?: Present
}

export interface UniqueOptions<
  Stored extends string,
  Present extends boolean = false,
> extends IndexOptions<Stored, Present> {
  /** No two rows have the same values; those without one of them do not count. */
  readonly unique?: boolean
}

export interface GlobalOptions<
  Stored extends string,
  Part,
  Present extends boolean = false,
> extends UniqueOptions<Stored, Present> {
  /** How many groups the index has. */
  readonly shards?: number
  /** The part whose value says which of them; the first part otherwise. */
  readonly shardBy?: Part
  /** How many groups the entries of one value are spread over. */
  readonly spread?: number
}

export type WithIndex<Shape extends TableShape, Name extends string, Index extends IndexShape> = {
  readonly name: Shape['name']
  readonly properties: Shape['properties']
  readonly key: Shape['key']
  readonly indexes: Flat<Shape['indexes'] & { readonly [N in Name]: Index }>
}

export type Path<Shape extends TableShape> = IndexablePath<Shape['properties']>
export type Storable<Shape extends TableShape> = AnyPath<Shape['properties']>
export type PartsOf<Shape extends TableShape> = readonly OrDescending<Path<Shape>>[]

export interface IndexOf<
  Parts extends readonly (string | Descending)[],
  Stored,
  Present extends boolean,
> extends IndexShape {
  readonly parts: NamesOf<Parts>
  readonly storing: readonly (Stored & string)[]
  readonly wherePresent: Present
}

/** A table that indexes can be added to. Parts are paths, in order; `desc(…)` turns one around. */
export interface IndexableTable<Shape extends TableShape, IsRoot extends boolean> extends Table<
  Shape,
  IsRoot
> {
  /** Entries lie in the group of their row and change with it. */
  localIndex<
    const Name extends string,
    const Parts extends PartsOf<Shape>,
    const Stored extends Storable<Shape> = never,
    const Present extends boolean = false,
  >(
    name: Name,
    parts: Parts,
    options?: UniqueOptions<Stored, Present>,
  ): IndexableTable<WithIndex<Shape, Name, IndexOf<Parts, Stored, Present>>, IsRoot>
  /** Entries lie in groups of the index and follow soon. */
  globalIndex<
    const Name extends string,
    const Parts extends PartsOf<Shape>,
    const Stored extends Storable<Shape> = never,
    const Present extends boolean = false,
  >(
    name: Name,
    parts: Parts,
    options?: GlobalOptions<Stored, NamesOf<Parts>[number], Present>,
  ): IndexableTable<WithIndex<Shape, Name, IndexOf<Parts, Stored, Present>>, IsRoot>
  /** Entries appear in the rows of `into` as a repeated property; the first parts name the row. */
  inlineIndex<
    const Name extends string,
    const Parts extends PartsOf<Shape>,
    const Stored extends Storable<Shape> = never,
    const Present extends boolean = false,
  >(
    name: Name,
    into: Table,
    parts: Parts,
    options?: IndexOptions<Stored, Present>,
  ): IndexableTable<WithIndex<Shape, Name, IndexOf<Parts, Stored, Present>>, IsRoot>
}

/** A table with its key; now say where its rows belong. */
export interface KeyedTable<Shape extends TableShape> {
  /** Each row is the root of an entity group. */
  root(options?: RootOptions<TimestampName<Shape>, StringInKey<Shape>>): IndexableTable<Shape, true>
  /** Rows are of the group of the root row that the first parts of the key name. */
  childOf<Root extends Table<TableShape, true>>(
    root: Root & Fitting<Shape, Root>,
    options?: ChildOptions<TimestampName<Shape>>,
  ): IndexableTable<Shape, false>
  /** The same, and rows stand next to the row of `parent` that the first parts of the key name. */
  in<Parent extends Table>(
    parent: Parent & Fitting<Shape, Parent>,
    options?: ChildOptions<TimestampName<Shape>>,
  ): IndexableTable<Shape, false>
}

/** A property that is a moment, or may be absent. */
export type TimestampName<Shape extends TableShape> = {
  [Name in keyof Shape['properties'] & string]: Shape['properties'][Name] extends Declared<
    'timestamp',
    'required' | 'optional'
  >
    ? Name
    : never
}[keyof Shape['properties'] & string]

/** A string of the key. */
export type StringInKey<Shape extends TableShape> = {
  [
    Name in keyof Shape['properties'] & Shape['key'][number]
  ]: Shape['properties'][Name] extends Declared<'string', 'required'> ? Name : never
}[keyof Shape['properties'] & Shape['key'][number]]

/** Not both of these. From the moment on a row is in no read; soon after it is deleted. */
export interface ExpiryOptions<Moment extends string = string> {
  /** A row expires this long after the commit that wrote it last: `'30 days'`, from 1 second to 36500 days. */
  readonly ttl?: Ttl
  /** A row expires at the moment that this property has; one without it stays. */
  readonly expiresAt?: Moment
}

export interface RootOptions<
  Moment extends string = string,
  Part extends string = string,
> extends ExpiryOptions<Moment> {
  /** Puts a two-byte hash before the key, so that rising keys do not all go to one place. */
  readonly scatter?: boolean
  /** Where the groups are. Absent: as the schema says, else spread over all replica sets by a hash of the key. It never changes. */
  readonly placement?: PlacementOption<Part>
}

export interface ChildOptions<Moment extends string = string> extends ExpiryOptions<Moment> {
  /**
   * The row that these belong to, that of `in(Parent)` or the root row, is to be deleted. `restrict`, which
   * tables do that say nothing: it is not deleted while they are there. `cascade`:
   * they are deleted with it, in the same transaction. `keep`: they stay.
   */
  readonly onDelete?: OnDelete
}

/** A record of nothing: `{}` would take anything. */
// oxlint-disable-next-line typescript/no-generated-empty-object-type -- meant: no name is in it
type NoIndexes = Readonly<Record<never, never>>

export interface NewShape<
  Name extends string,
  P extends Properties,
  Key extends readonly string[],
> {
  readonly name: Name
  readonly properties: P
  readonly key: Key
  readonly indexes: NoIndexes
}

/** A table without a key yet. */
export interface UnkeyedTable<Name extends string, P extends Properties> {
  /** The parts of the primary key, in order; `desc(…)` turns one around. */
  key<const Parts extends readonly OrDescending<Keyable<P>>[]>(
    ...parts: Parts
  ): KeyedTable<NewShape<Name, P, NamesOf<Parts>>>
}

export function table<const Name extends string, P extends Properties>(
  name: Name,
  properties: P,
): UnkeyedTable<Name, P> {
  checkText('table', name)
  checkProperties(`table ${name}`, properties)
  return {
    key: (...parts) => {
      checkParts(`the key of table ${name}`, parts)
      return keyed(name, propertyList(properties), parts.map(keyPart))
    },
  }
}

function keyPart(part: string | Descending): KeyPart {
  return typeof part === 'string'
    ? { property: part, direction: 'asc' }
    : { property: part.desc, direction: 'desc' }
}

function indexPart(part: string | Descending): IndexPart {
  const { property: path, direction } = keyPart(part)
  return { path, direction }
}

function keyed<Shape extends TableShape>(
  name: Shape['name'],
  properties: readonly Property[],
  parts: readonly KeyPart[],
): KeyedTable<Shape> {
  const draft = { name, properties, key: { parts, scatter: false }, isRoot: false } as const
  const child = (
    root: string,
    groupSize: number,
    inTable: string | undefined,
    options: ChildOptions = {},
  ): TableDraft => {
    const key = parts.slice(0, groupSize).map(({ property }) => property)
    const { onDelete } = options
    const expiry = readExpiry(`table ${name}`, options)
    return { ...draft, group: { root, key }, inTable, onDelete, expiry, placement: undefined }
  }
  return {
    root: (options) => {
      checkBuilderOptions(`table ${name}: root`, options, rootRules)
      const key = { parts, scatter: options?.scatter ?? false }
      const table: TableDraft = {
        ...draft,
        key,
        isRoot: true,
        group: undefined,
        inTable: undefined,
        onDelete: undefined,
        expiry: readExpiry(`table ${name}`, options),
        placement: readPlacement(`table ${name}`, options?.placement),
      }
      return indexable<Shape, true>(table, true, [])
    },
    childOf: (root, options) => {
      checkTable(`table ${name}: childOf`, root)
      checkBuilderOptions(`table ${name}: childOf`, options, childRules)
      const size = root['~draft'].key?.parts.length ?? 0
      return indexable<Shape, false>(child(root.name, size, undefined, options), false, [])
    },
    in: (parent, options) => {
      checkTable(`table ${name}: in`, parent)
      checkBuilderOptions(`table ${name}: in`, options, childRules)
      const { group, key } = parent['~draft']
      const size = group?.key.length ?? key?.parts.length ?? 0
      return indexable<Shape, false>(
        child(group?.root ?? parent.name, size, parent.name, options),
        false,
        [],
      )
    },
  }
}

const expiryRules: Rules<ExpiryOptions> = { ttl: text, expiresAt: text }
const rootRules: Rules<RootOptions> = {
  ...expiryRules,
  scatter: flag,
  placement: placementRule,
}
const childRules: Rules<ChildOptions> = {
  ...expiryRules,
  onDelete: oneOf(...deleteRules),
}

function readExpiry(subject: string, { ttl, expiresAt }: ExpiryOptions = {}): Expiry | undefined {
  if (ttl === undefined) {
    return expiresAt === undefined ? undefined : { kind: 'at', property: expiresAt }
  }
  if (expiresAt !== undefined)
    throw wrong(subject, 'it has ttl and expiresAt; leave one of them out')
  const seconds = parseTtl(ttl)
  if (seconds !== undefined) return { kind: 'after', seconds }
  const message = `its ttl is ${wordsFor(ttl)}; expected a whole number of seconds, minutes, hours or days, such as '30 days'`
  throw wrong(subject, message)
}

/**
 * Of all kinds of indexes: `defineSchema` reports an option that a kind does not have, as it does for a
 * text.
 */
const indexRules: Rules<GivenOptions> = {
  storing: listOf(text),
  wherePresent: flag,
  unique: flag,
  shards: number,
  shardBy: text,
  spread: number,
}

interface GivenOptions {
  readonly storing?: readonly string[]
  readonly wherePresent?: boolean
  readonly unique?: boolean
  readonly shards?: number
  readonly shardBy?: string
  readonly spread?: number
}

function indexable<Shape extends TableShape, IsRoot extends boolean>(
  draft: TableDraft,
  isRoot: IsRoot,
  indexes: readonly IndexDraft[],
): IndexableTable<Shape, IsRoot> {
  const withIndex = <Next extends TableShape>(
    kind: IndexDraft['kind'],
    name: string,
    parts: readonly (string | Descending)[],
    options: GivenOptions = {},
    into?: string,
  ): IndexableTable<Next, IsRoot> => {
    checkText('an index', name)
    const subject = `index ${name}`
    checkParts(subject, parts)
    checkBuilderOptions(subject, options, indexRules)
    const { storing = [], wherePresent = false, unique = false, shards, shardBy, spread } = options
    const index: IndexDraft = {
      kind,
      name,
      table: draft.name,
      parts: parts.map(indexPart),
      absent: wherePresent ? 'left-out' : 'first',
      storing,
      unique,
      into,
      shards,
      shardBy,
      spread,
    }
    return indexable<Next, IsRoot>(draft, isRoot, [...indexes, index])
  }
  return {
    name: draft.name,
    isRoot,
    '~draft': draft,
    '~indexes': indexes,
    localIndex: (name, parts, options) => withIndex('local', name, parts, options),
    globalIndex: (name, parts, options) => withIndex('global', name, parts, options),
    inlineIndex: (name, into, parts, options) => {
      checkTable(`index ${wordsFor(name)}`, into)
      return withIndex('inline', name, parts, options, into.name)
    },
  }
}
