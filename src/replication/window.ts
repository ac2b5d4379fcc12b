/**
 * Validation (promotion: Paxos-CP): which keys the last entries wrote, and
 * for which intents, so that a transaction read at an older position can still commit when nothing
 * it read has changed. Keys are remembered as written, numbers filled in.
 *
 * TXN-1, TXN-2  What is not remembered any more counts as changed.
 *
 * Remembered are the last entries, however old; of what is young some more, so that a group with many
 * writers does not outrun its readers; never more than `validationKeysMax` keys. It differs between replicas.
 */
import { assert } from '../base/assert.ts'
import { fromLatin1 } from '../base/bytes.ts'
import type { Position, Timestamp } from '../base/ids.ts'
import type { Limits } from '../base/limits.ts'
import { keyInRanges, type TextRange } from './key-range.ts'
import type { Verdict } from '../group/outcome.ts'
import { PackedSets, type EntryWriteSets, type PackedEntry, type Writer } from './packed-sets.ts'

export type { EntryWriteSets, WriteSet } from './packed-sets.ts'

export type Conflict = Omit<Verdict & { readonly kind: 'conflict' }, 'kind'>

type WindowLimits = Pick<
  Limits,
  'validationWindow' | 'validationWindowMax' | 'validationMs' | 'validationKeysMax'
>

interface Written {
  readonly position: Position
  readonly by: Writer
}

/**
 * An entry between its neighbours, and indexed. A list: one comes and one goes with every commit of a
 * busy group, and moving the rest of an array costs more than all else that is done here.
 */
interface Remembered extends PackedEntry {
  /** All keys in order; made when a range is first looked for. */
  sorted: readonly string[] | undefined
  before: Remembered | undefined
  next: Remembered | undefined
}

export class ValidationWindow {
  readonly #limits: WindowLimits
  /** The last write of a key, of the entries from `#oldest` to `#newest`. */
  readonly #lastWrite = new Map<string, Written>()
  /**
   * The entries after those, as bytes. They are indexed when a transaction read at an older
   * position: in most groups none ever does.
   */
  readonly #packed = new PackedSets()
  #oldest: Remembered | undefined
  #newest: Remembered | undefined
  #count = 0
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
  *entries(): Iterable<EntryWriteSets> {
    for (let entry = this.#oldest; entry !== undefined; entry = entry.next) yield entry
    yield* this.#packed.entries()
  }

  add(entry: EntryWriteSets): void {
    assert(entry.position > this.#from, 'TXN-1: an entry comes to the window twice')
    let keyCount = 0
    for (const { keys } of entry.sets) keyCount += keys.length
    this.#packed.push(entry, keyCount)
    this.#count += 1
    this.#keyCount += keyCount
    this.#forgetOld(entry.timestamp)
  }

  /** Nothing is known of the entries through `from`, which were not applied here one by one. */
  restart(from: Position): void {
    assert(from >= this.#from, 'TXN-1: the window goes back')
    this.#lastWrite.clear()
    this.#packed.clear()
    this.#oldest = undefined
    this.#newest = undefined
    this.#count = 0
    this.#keyCount = 0
    this.#from = from
  }

  #index(): void {
    if (this.#packed.size === 0) return
    for (const { position, timestamp, sets, keyCount } of this.#packed.entries()) {
      const before = this.#newest
      const entry: Remembered = {
        position,
        timestamp,
        sets,
        keyCount,
        sorted: undefined,
        before,
        next: undefined,
      }
      if (before === undefined) this.#oldest = entry
      else before.next = entry
      this.#newest = entry
      this.#indexEntry(entry)
    }
    this.#packed.clear()
  }

  #indexEntry({ position, sets }: Remembered): void {
    for (const { by, keys } of sets) {
      const written = { position, by }
      for (const key of keys) this.#lastWrite.set(key, written)
    }
  }

  #forgetOld(now: Timestamp): void {
    while (this.#count > 0 && this.#holdsTooMuch(now)) this.#forget()
  }

  #holdsTooMuch(now: Timestamp): boolean {
    const { validationWindow, validationWindowMax, validationMs, validationKeysMax } = this.#limits
    if (this.#count > validationWindowMax || this.#keyCount > validationKeysMax) return true
    if (this.#count <= validationWindow) return false
    const oldest = this.#oldest?.timestamp ?? this.#packed.oldestTimestamp
    return now - oldest > validationMs * 1000
  }

  #forget(): void {
    const { position, keyCount } = this.#oldest ?? this.#packed.drop()
    assert(position > this.#from, 'TXN-1: the window forgets out of order')
    this.#from = position
    this.#count -= 1
    this.#keyCount -= keyCount
    assert(this.#count >= 0 && this.#keyCount >= 0, 'TXN-1: the window forgets what it never had')
    if (this.#oldest !== undefined) this.#forgetIndexed(this.#oldest)
  }

  #forgetIndexed(oldest: Remembered): void {
    this.#dropFromIndex(oldest)
    const { next } = oldest
    // A forgotten entry that leads to remembered ones would carry them all into the old generation.
    oldest.next = undefined
    this.#oldest = next
    if (next === undefined) this.#newest = undefined
    else next.before = undefined
  }

  #dropFromIndex({ position, sets }: Remembered): void {
    for (const { keys } of sets) {
      for (const key of keys) {
        if (this.#lastWrite.get(key)?.position === position) this.#lastWrite.delete(key)
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
    for (let entry = this.#newest; entry !== undefined; entry = entry.before) {
      if (entry.position <= after) return undefined
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
