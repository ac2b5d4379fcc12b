/**
 * Writes beside those of committed entries, which go along with the applier's batches: parts of snapshots that are put
 * down, and snapshots that take a group to their position. In the order of the calls.
 */
import { assert } from '../base/assert.ts'
import type { GroupId, Position, Timestamp } from '../base/ids.ts'
import type { Put } from '../ports/storage.ts'

/** A group as the last batch of a snapshot makes it. */
export interface Installed {
  readonly group: GroupId
  readonly position: Position
  /** The group's state record at `position`. */
  readonly state: Uint8Array
  /** The group's horizon before, and from there on. */
  readonly horizonBefore: Timestamp
  readonly horizon: Timestamp
  /** Prefixes of the worklist topics that its rows are under, as text. */
  readonly topics: ReadonlySet<string>
}

export interface Alongside {
  readonly puts: readonly Put[]
  readonly installed: Installed | undefined
  readonly resolve: () => void
  readonly reject: (reason: Error) => void
}

export class AlongsideQueue {
  readonly #waiting: Alongside[] = []
  #taken: readonly Alongside[] = []
  readonly #installing = new Set<GroupId>()
  #failure: Error | undefined

  get isEmpty(): boolean {
    return this.#waiting.length === 0
  }

  /** Whether a snapshot of the group waits for its batch, or is in the one under way. */
  isInstalling(group: GroupId): boolean {
    return this.#installing.has(group)
  }

  /** Resolves when `puts` are durable, and the group that `installed` names is at its position. */
  add(puts: readonly Put[], installed?: Installed): Promise<void> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure)
    if (installed !== undefined) this.#installing.add(installed.group)
    return new Promise((resolve, reject) => {
      this.#waiting.push({ puts, installed, resolve, reject })
    })
  }

  /** Of the next batch: the first one, and more of them up to about `bytesMax`. */
  take(bytesMax: number): readonly Alongside[] {
    assert(this.#taken.length === 0, 'replica: two batches under way')
    let bytes = 0
    let count = 0
    for (const { puts, installed } of this.#waiting) {
      for (const { key, value } of puts) bytes += key.length + (value?.length ?? 0)
      bytes += installed?.state.length ?? 0
      if (count > 0 && bytes > bytesMax) break
      count += 1
    }
    this.#taken = this.#waiting.splice(0, count)
    return this.#taken
  }

  /** The batch that took them is durable. */
  onWritten(): void {
    const taken = this.#taken
    this.#taken = []
    for (const { installed, resolve } of taken) {
      if (installed !== undefined) this.#installing.delete(installed.group)
      resolve()
    }
  }

  /** Nothing is written any more. */
  fail(reason: Error): void {
    this.#failure = reason
    for (const { reject } of [...this.#taken, ...this.#waiting.splice(0)]) reject(reason)
    this.#taken = []
  }
}
