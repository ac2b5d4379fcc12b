/**
 * A schema as its author wrote it, before anything is checked: what the builder, the text's parser
 * and the JSON decoder hand to `checkSchema`. Names may be wrong here, and needed things may be
 * missing.
 */
import type {
  AbsentParts,
  Expiry,
  Index,
  IndexPart,
  Key,
  OnDelete,
  Property,
  TablePlacement,
} from './model.ts'
import type { SchemaPath, SchemaProblem, SchemaProblemKind } from './problem.ts'

export interface SchemaDraft {
  readonly name: string
  /** Of each root table that says none. */
  readonly placement?: TablePlacement | undefined
  readonly tables: readonly TableDraft[]
  readonly indexes: readonly IndexDraft[]
}

export interface TableDraft {
  readonly name: string
  readonly properties: readonly Property[]
  readonly key: Key | undefined
  readonly isRoot: boolean
  readonly group: { readonly root: string; readonly key: readonly string[] } | undefined
  readonly inTable: string | undefined
  readonly onDelete: OnDelete | undefined
  readonly expiry: Expiry | undefined
  readonly placement: TablePlacement | undefined
}

export interface IndexDraft {
  readonly kind: Index['kind']
  readonly name: string
  readonly table: string
  readonly parts: readonly IndexPart[]
  readonly storing: readonly string[]
  readonly unique: boolean
  /** Rows without a part; undefined: as stored before this was said, which is `left-out`. */
  readonly absent: AbsentParts | undefined
  /** Of an inline index; of the others nothing. */
  readonly into: string | undefined
  /** These three are of a global index; undefined: as usual. */
  readonly shards: number | undefined
  readonly shardBy: string | undefined
  readonly spread: number | undefined
}

/** Gathers problems; each check adds its own and goes on. */
export class Complaints {
  readonly problems: SchemaProblem[] = []

  add(kind: SchemaProblemKind, at: SchemaPath, message: string, hint?: string): void {
    this.problems.push(hint === undefined ? { kind, message, at } : { kind, message, hint, at })
  }

  get count(): number {
    return this.problems.length
  }
}
