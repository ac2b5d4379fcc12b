/**
 * The rows of many entries. A row may have thousands of entries in one index: it is read once, decoded once, and its
 * entries are made once, not once for each of them.
 */
import { latin1 } from '../base/bytes.ts'
import type { StoredRow } from '../txn/reads.ts'
import type { CompiledIndex, CompiledTable } from './compiled.ts'
import { buildEntries, type Entry } from './entries.ts'
import type { Values } from './row-check.ts'
import { decodeRow } from './row-value.ts'

type FoundRows = readonly (StoredRow | undefined)[]

/**
 * The rows that `read` gives for each key, in the order of `keys`: it asks for equal keys once, and they give
 * one object.
 */
export async function readDistinct(
  keys: readonly Uint8Array[],
  read: (distinct: readonly Uint8Array[]) => Promise<FoundRows>,
): Promise<FoundRows> {
  const placeByKey = new Map<string, number>()
  const distinct: Uint8Array[] = []
  const places = keys.map((key) => {
    const name = latin1(key)
    const known = placeByKey.get(name)
    if (known !== undefined) return known
    placeByKey.set(name, distinct.length)
    return distinct.push(key) - 1
  })
  const rows = await read(distinct)
  return places.map((place) => rows[place])
}

export interface BookedRow {
  readonly row: Values
  readonly entries: ReadonlyMap<string, Entry>
}

/** The entries of one table's rows in one index, each worked out when it is first asked for. */
export class EntryBook {
  readonly #table: CompiledTable
  readonly #index: CompiledIndex
  readonly #byRow = new Map<StoredRow, BookedRow>()

  constructor(table: CompiledTable, index: CompiledIndex) {
    this.#table = table
    this.#index = index
  }

  /** `key`: the row's, by part. */
  of(stored: StoredRow, key: readonly unknown[]): BookedRow {
    const known = this.#byRow.get(stored)
    if (known !== undefined) return known
    const [table, index] = [this.#table, this.#index]
    const row = decodeRow(table, key, stored.value)
    let entries: ReadonlyMap<string, Entry> | undefined
    const made = {
      row,
      // A caller that wants the rows alone does not make their entries.
      get entries() {
        entries ??= buildEntries(table, index, row)
        return entries
      },
    }
    this.#byRow.set(stored, made)
    return made
  }
}
