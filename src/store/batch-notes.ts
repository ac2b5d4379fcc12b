/** The next batch takes these along, beside rows of groups: small values by name, and rows under keys of their own. */
import type { Put } from '../ports/storage.ts'
import { encodeStored, nameKey } from './row-format.ts'

export class BatchNotes {
  /** Values that no batch has taken yet, and those of the batch under way. */
  #names = new Map<string, Uint8Array>()
  #taken: ReadonlyMap<string, Uint8Array> = new Map()
  #rows: Put[] = []

  /** A value that is not written yet. */
  get(name: string): Uint8Array | undefined {
    return this.#names.get(name) ?? this.#taken.get(name)
  }

  set(name: string, value: Uint8Array): void {
    this.#names.set(name, value)
  }

  setRow(key: Uint8Array, payload: Uint8Array): void {
    this.#rows.push({ key, value: encodeStored(key, 0, payload) })
  }

  dropRow(key: Uint8Array): void {
    this.#rows.push({ key })
  }

  takeRows(): Put[] {
    const rows = this.#rows
    this.#rows = []
    return rows
  }

  takeNames(): readonly Put[] {
    this.#taken = this.#names
    this.#names = new Map()
    return [...this.#taken].map(([name, value]) => {
      const key = nameKey(name)
      return { key, value: encodeStored(key, 0, value) }
    })
  }

  /** The batch that took the names is durable. */
  onWritten(): void {
    this.#taken = new Map()
  }
}
