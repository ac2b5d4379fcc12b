/**
 * Rows that were read lately, in memory: a look into an ordered store of several levels costs more
 * than all else that a read under a lease does. Bounded by bytes, in two generations: a row that is read
 * again moves to the young one; when that has half of the bytes, the old one goes.
 *
 * MVCC-1  What is here is the newest version, as the store has it: a row leaves as it is committed,
 *         from when on the overlay answers for it, and comes back only from the store.
 */
import type { GroupId } from '../base/ids.ts'
import type { Stored } from './row-format.ts'

/** By group, then by the row's key as text; keys as bytes would keep the frame that they came in. */
type Generation = Map<GroupId, Map<string, Stored>>

/** The cost of a row beside its bytes, about. */
const rowOverheadBytes = 256

export class RowCache {
  readonly #halfBytes: number
  #young: Generation = new Map()
  #old: Generation = new Map()
  /** All that came into the young generation, also what has left since: it ages by what is read. */
  #youngBytes = 0

  /** 0 keeps nothing. */
  constructor(bytesMax: number) {
    this.#halfBytes = bytesMax / 2
  }

  get(group: GroupId, key: string): Stored | undefined {
    const young = this.#young.get(group)?.get(key)
    if (young !== undefined) return young
    const old = this.#old.get(group)?.get(key)
    if (old !== undefined) this.put(group, key, old)
    return old
  }

  /** A row that is larger than half of the bound is not kept. */
  put(group: GroupId, key: string, row: Stored): void {
    const bytes = rowOverheadBytes + key.length + row.payload.length
    if (bytes > this.#halfBytes) return
    if (this.#youngBytes + bytes > this.#halfBytes) this.#age()
    this.#youngBytes += bytes
    const rows = this.#young.get(group)
    if (rows === undefined) this.#young.set(group, new Map([[key, row]]))
    else rows.set(key, row)
  }

  #age(): void {
    this.#old = this.#young
    this.#young = new Map()
    this.#youngBytes = 0
  }

  /** All rows of the group are others now. */
  dropGroup(group: GroupId): void {
    this.#young.delete(group)
    this.#old.delete(group)
  }

  /** The row is superseded, or deleted. */
  drop(group: GroupId, key: string): void {
    this.#young.get(group)?.delete(key)
    this.#old.get(group)?.delete(key)
  }
}
