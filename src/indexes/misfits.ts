/**
 * Rows with values that are too long for an index: they are older than its declaration, or come from a
 * program that does not know it. They stay as they are, queries by these values do not find them, and
 * each build and comparison of the index reports them.
 */
import { latin1 } from '../base/bytes.ts'
import type { GroupId } from '../base/ids.ts'

/** Of rows that do not fit: how many there are, and the first of them in words. */
export interface Misfits {
  readonly count: number
  /** At most `misfitsNamedMax`. */
  readonly rows: readonly string[]
}

export const misfitsNamedMax = 20
/** Beyond this number a row may be counted twice. */
const seenMax = 100_000

export class MisfitRows {
  readonly #seen = new Set<string>()
  readonly #rows: string[] = []
  #count = 0

  /** A step that is done again tells the same row again. */
  add(row: { readonly group: GroupId; readonly key: Uint8Array }, words: () => string): void {
    const name = `${row.group}/${latin1(row.key)}`
    if (this.#seen.has(name)) return
    if (this.#seen.size < seenMax) this.#seen.add(name)
    this.#count += 1
    if (this.#rows.length < misfitsNamedMax) this.#rows.push(words())
  }

  get all(): Misfits {
    return { count: this.#count, rows: [...this.#rows] }
  }
}
