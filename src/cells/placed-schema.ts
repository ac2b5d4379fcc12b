/**
 * The schema of cells for the datastores of one place: the same tables and numbers, with the place in the name of each
 * shard's group, and of each group of entries (MOVE-8). Groups of other tables have no place in their names.
 */
import { placeOf, placeWords, type Place } from '../base/placed-group.ts'
import type { GroupId } from '../base/ids.ts'
import type { Schema } from '../../schema/model.ts'
import type { SchemaVersion } from '../../schema/version.ts'
import { fingerprintOf } from '../../schema/fingerprint.ts'
import { compileSchema } from '../tables/compile.ts'
import type { CompiledSchema } from '../tables/compiled.ts'
import { placeOfDatastore } from './datastore-form.ts'

export interface PlacedSchema {
  readonly version: SchemaVersion
  readonly compiled: CompiledSchema
}

/** Places whose schemas are kept; with one more, all are made anew. */
const placesKeptMax = 64

export class PlacedSchemas {
  /** Of the datastores whose names say no place. */
  readonly plain: PlacedSchema
  readonly #root: string
  readonly #placed = new Map<string, PlacedSchema>()

  /** `root`: the table whose groups the place is for. */
  constructor(version: SchemaVersion, root: string) {
    this.plain = { version, compiled: compileSchema(version) }
    this.#root = root
  }

  of(datastore: string): PlacedSchema {
    return this.#at(placeOfDatastore(datastore))
  }

  /** Of the datastore, or of the index, that the group is of. */
  ofGroup(group: GroupId): PlacedSchema {
    return this.#at(placeOf(group))
  }

  #at(place: Place | undefined): PlacedSchema {
    if (place === undefined) return this.plain
    const words = placeWords(place)
    const known = this.#placed.get(words)
    if (known !== undefined) return known
    if (this.#placed.size >= placesKeptMax) this.#placed.clear()
    const schema = this.#placedModel(place)
    const version = { ...this.plain.version, schema, fingerprint: fingerprintOf(schema) }
    const placed = { version, compiled: compileSchema(version) }
    this.#placed.set(words, placed)
    return placed
  }

  #placedModel(placement: Place): Schema {
    const { schema } = this.plain.version
    const tables = schema.tables.map((table) =>
      table.kind === 'root' && table.name === this.#root ? { ...table, placement } : table,
    )
    return { ...schema, tables }
  }
}
