/**
 * A schema version as it is made into data for storing: numbers instead of names, the steps by which a key
 * becomes bytes, what each property is stored as. All of it is data; `compile.ts` makes it.
 */
import type { Direction, OnDelete, Presence, PropertyKind } from '../../schema/model.ts'

export interface CompiledProperty {
  readonly name: string
  readonly path: string
  readonly number: number
  readonly presence: Presence
  readonly kind: PropertyKind
  /** Of a message. */
  readonly fields: readonly CompiledProperty[]
  readonly fieldNames: ReadonlySet<string>
  /** The value that stands for it where a row has none. */
  readonly fallback: unknown
  /** Does the program declare it? A program that was written for an earlier version may not. */
  readonly isKnown: boolean
}

/** How one part of a key becomes bytes; a sequence's number is a plain count also in keys below. */
export interface KeyPart {
  readonly name: string
  readonly kind: PropertyKind
  readonly direction: Direction
  /** Of an index: a row may be without it, and its entry says so in a byte before the value. */
  readonly mayBeAbsent?: boolean
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
  /**
   * The names that a scan may give, in the order of `steps`; of an index, those that a query of it may give.
   */
  readonly queryNames: ReadonlySet<string>
  readonly groupPartCount: number
  readonly steps: readonly KeyStep[]
  /** The parts that `steps` has after the parent's. */
  readonly ownParts: readonly KeyPart[]
  readonly properties: readonly CompiledProperty[]
  /** Of the properties: all names, and those that are not in the key and are no sequence. */
  readonly names: ReadonlySet<string>
  readonly stored: readonly CompiledProperty[]
  /** Each property with its place in the key, -1 for what is not in it. */
  readonly parts: readonly { readonly property: CompiledProperty; readonly keyPlace: number }[]
  /** The bytes that the names of its groups begin with, when it is a root. */
  readonly groupPrefix: Uint8Array
  /** The place in the names of its groups, behind `groupPrefix`. Absent: they have none. */
  readonly placement: CompiledPlacement | undefined
  readonly sequence: { readonly name: string; readonly isInKey: boolean } | undefined
  /** Parts of the key that are whole numbers here, and a sequence's number where they come from. */
  readonly numbered: readonly KeyPart[]
  /** Local and inline ones. */
  readonly indexes: readonly CompiledIndex[]
  /** Whether one of them is. */
  readonly isUnique: boolean
  readonly globals: readonly CompiledGlobal[]
  /** Rows may have what the program does not declare: who replaces one keeps it. */
  readonly keepsUnknown: boolean
  /**
   * The table of the newest version that is known here, when it is a later one than this. A change of a
   * row keeps the indexes of that one, which knows the properties that they are over.
   */
  readonly newest: CompiledTable | undefined
  /** Absent: rows stay until they are deleted. */
  readonly expiry: CompiledExpiry | undefined
  /** The tables whose rows belong to a row of this one, and what becomes of them when it is deleted. */
  readonly children: readonly CompiledChild[]
}

export type CompiledExpiry =
  | { readonly kind: 'after'; readonly micros: number }
  /** `keyPlace`: of the property in the key, -1 where it is not in it. */
  | { readonly kind: 'at'; readonly property: CompiledProperty; readonly keyPlace: number }

export type CompiledPlacement =
  /** The same place for all groups of the table. `bytes`: as they stand in each name. */
  | { readonly kind: 'fixed'; readonly bytes: Uint8Array }
  /** The region that the part of the key has as its value. */
  | { readonly kind: 'by'; readonly keyPlace: number }

export interface CompiledChild {
  readonly table: CompiledTable
  readonly onDelete: OnDelete
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
  /** The parts that name the row, after the indexed ones; and the steps of the row's own key. */
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
  /** The place in the names of its groups, where its table has one place for all. Absent: they have none. */
  readonly placeBytes: Uint8Array | undefined
}

export interface CompiledSchema {
  readonly name: string
  readonly version: number
  readonly tables: ReadonlyMap<string, CompiledTable>
  /** Whether rows of one of them expire. */
  readonly hasExpiry: boolean
  readonly tableByNumber: ReadonlyMap<number, CompiledTable>
  readonly indexes: ReadonlyMap<string, CompiledIndex>
  readonly indexByNumber: ReadonlyMap<number, CompiledIndex>
  /** Those of this version: what a program may ask. */
  readonly globals: ReadonlyMap<string, CompiledGlobal>
}

export function isGlobal(index: CompiledIndex): index is CompiledGlobal {
  return 'shards' in index
}
