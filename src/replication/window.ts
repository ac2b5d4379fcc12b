/**
 * Validation (Paxos-CP's promotion; REPLICATION "Writes" 3): which keys the last entries wrote, and
 * for which intents, so that a transaction read at an older position can still commit when nothing
 * it read has changed. Keys are remembered as written, numbers filled in.
 *
 * TXN-1, TXN-2  What is not remembered any more counts as changed.
 *
 * Remembered are the last entries, however old; of what is young some more, so that a group with many
 * writers does not outrun its readers; never more than so many keys. It differs between replicas.
 */
import { assert, present } from '../base/assert.ts'
import { fromLatin1 } from '../base/bytes.ts'
import type { Position, Timestamp } from '../base/ids.ts'
import type { Limits } from '../base/limits.ts'
import { keyInRanges, type TextRange } from './key-range.ts'
import type { Verdict } from './message.ts'

/** An intent, as far as its name goes. */
export interface Writer {
  readonly session: string
  readonly sequence: number
}

/** What one transaction wrote, as latin1 text. */
export interface WriteSet {
  readonly by: Writer
  readonly keys: readonly string[]
}

export interface EntryWriteSets {
  readonly position: Position
  readonly timestamp: Timestamp
  readonly sets: readonly WriteSet[]
}

export type Conflict = Omit<Verdict & { readonly kind: 'conflict' }, 'kind'>

type WindowLimits = Pick<
  Limits,
  'validationWindow' | 'validationWindowMax' | 'validationMs' | 'validationKeysMax'
>

interface Written {
  readonly position: Position
  readonly by: Writer
}

interface Remembered extends EntryWriteSets {
  readonly keyCount: number
  /** Whether `#lastWrite` knows of it. */
  isIndexed: boolean
  /** All keys in order; made when a range is first looked for. */
  sorted: readonly string[] | undefined
}

export class ValidationWindow {
  readonly #limits: WindowLimits
  /**
   * The last write of a key, as far as entries are indexed. They are when somebody asks who has read
   * at an older position: in most groups nobody ever does.
   */
  readonly #lastWrite = new Map<string, Written>()
  readonly #entries: Remembered[] = []
  #keyCount = 0
  /** Reads at or above this position can be validated; older ones conflict. */
  #from: Position

  constructor(from: Position, limits: WindowLimits) {
    this.#from = from
    this.#limits = limits
  }

  get from(): Position {
    return this.#from
  }

  /** All that is remembered, the oldest first. */
  get entries(): readonly EntryWriteSets[] {
    return this.#entries
  }

  add({ position, timestamp, sets }: EntryWriteSets): void {
    let keyCount = 0
    for (const { keys } of sets) keyCount += keys.length
    const common = { position, timestamp, sets, keyCount }
    this.#entries.push({ ...common, isIndexed: false, sorted: undefined })
    this.#keyCount += keyCount
    while (this.#holdsTooMuch(timestamp)) this.#forgetOldest()
  }

  #index(): void {
    const entries = this.#entries
    let at = entries.length
    while (at > 0 && entries[at - 1]?.isIndexed === false) at -= 1
    for (; at < entries.length; at++) this.#indexEntry(present(entries[at], 'TXN-2: an entry'))
  }

  #indexEntry(entry: Remembered): void {
    const { position, sets } = entry
    entry.isIndexed = true
    for (const { by, keys } of sets) {
      const written = { position, by }
      for (const key of keys) this.#lastWrite.set(key, written)
    }
  }

  #holdsTooMuch(now: Timestamp): boolean {
    const [oldest] = this.#entries
    if (oldest === undefined) return false
    const { validationWindow, validationWindowMax, validationMs, validationKeysMax } = this.#limits
    const count = this.#entries.length
    if (count > validationWindowMax || this.#keyCount > validationKeysMax) return true
    return count > validationWindow && now - oldest.timestamp > validationMs * 1000
  }

  #forgetOldest(): void {
    const oldest = this.#entries.shift()
    if (oldest === undefined) return
    this.#from = oldest.position
    this.#keyCount -= oldest.keyCount
    if (!oldest.isIndexed) return
    for (const { keys } of oldest.sets) {
      for (const key of keys) {
        if (this.#lastWrite.get(key)?.position === oldest.position) this.#lastWrite.delete(key)
      }
    }
  }

  /**
   * The last write after `readPosition` of one of `keys`, or of any key in one of `ranges` (ordered);
   * `through`, and nothing more, when it is not known.
   */
  conflict(
    readPosition: Position,
    keys: readonly string[],
    ranges: readonly TextRange[],
    through: Position,
  ): Conflict | undefined {
    if (keys.length === 0 && ranges.length === 0) return undefined
    if (readPosition >= through) return undefined
    if (readPosition < this.#from) return { position: through }
    this.#index()
    let latest: string | undefined
    let after = readPosition
    for (const key of keys) {
      const position = this.#lastWrite.get(key)?.position ?? 0
      if (position <= after) continue
      after = position
      latest = key
    }
    latest = this.#lastIn(ranges, after) ?? latest
    return latest === undefined ? undefined : this.#named(latest)
  }

  /** A key in one of `ranges` that the last such entry above `after` wrote. */
  #lastIn(ranges: readonly TextRange[], after: Position): string | undefined {
    if (ranges.length === 0) return undefined
    for (let at = this.#entries.length - 1; at >= 0; at--) {
      const entry = this.#entries[at]
      if (entry === undefined || entry.position <= after) return undefined
      entry.sorted ??= entry.sets.flatMap(({ keys }) => keys).sort()
      const found = keyInRanges(entry.sorted, ranges)
      if (found !== undefined) return found
    }
    return undefined
  }

  #named(key: string): Conflict {
    const written = this.#lastWrite.get(key)
    assert(written !== undefined, 'TXN-2: a key that was written is not remembered')
    return { position: written.position, key: fromLatin1(key), by: written.by }
  }
}
