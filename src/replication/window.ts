/**
 * Validation (Paxos-CP's promotion; REPLICATION "Writes" 3): which keys the last entries wrote, so
 * that a transaction read at an older position can still commit when nothing it read has changed.
 */
import type { Position } from '../base/ids.ts'

export class ValidationWindow {
  readonly #positionsMax: number
  /** The last position that wrote a key, by the key as latin1 text. */
  readonly #lastWrite = new Map<string, Position>()
  readonly #keysOf: { position: Position; keys: readonly string[] }[] = []
  /** Reads at or above this position can be validated; older ones conflict. */
  #from: Position

  constructor(from: Position, positionsMax: number) {
    this.#from = from
    this.#positionsMax = positionsMax
  }

  get from(): Position {
    return this.#from
  }

  add(position: Position, keys: readonly string[]): void {
    for (const key of keys) this.#lastWrite.set(key, position)
    this.#keysOf.push({ position, keys })
    if (this.#keysOf.length > this.#positionsMax) this.#forgetOldest()
  }

  #forgetOldest(): void {
    const oldest = this.#keysOf.shift()
    if (oldest === undefined) return
    this.#from = oldest.position
    for (const key of oldest.keys) {
      if (this.#lastWrite.get(key) === oldest.position) this.#lastWrite.delete(key)
    }
  }

  /** The position that wrote one of `keys` after `readPosition`; `through` when it is not known. */
  conflict(
    readPosition: Position,
    keys: readonly string[],
    through: Position,
  ): Position | undefined {
    if (keys.length === 0 || readPosition >= through) return undefined
    if (readPosition < this.#from) return through
    let latest: Position | undefined
    for (const key of keys) {
      const written = this.#lastWrite.get(key)
      if (written !== undefined && written > readPosition) latest = Math.max(latest ?? 0, written)
    }
    return latest
  }
}
