/**
 * The writes of the transactions of an entry in the making, so that none joins them that has read it
 * (combination: Paxos-CP). A key that a number is still to be drawn for may come to stand anywhere under the
 * bytes before the number: a transaction that has read there waits for the next entry.
 */
import { assert } from '../base/assert.ts'
import { latin1 } from '../base/bytes.ts'
import { keyInRanges, type TextRange } from './key-range.ts'
import type { Mutation } from '../group/transaction.ts'

export class EntryWrites {
  /** Not looked at yet: most entries hold one transaction, and no other one asks what it writes. */
  #waiting: (readonly Mutation[])[] = []
  #seen: SeenWrites | undefined

  add(mutations: readonly Mutation[]): void {
    this.#waiting.push(mutations)
  }

  /** Whether something of it may have been written: `ranges` are ordered. */
  meets(reads: readonly string[], ranges: readonly TextRange[]): boolean {
    if (this.#waiting.length === 0 && this.#seen === undefined) return false
    if (reads.length === 0 && ranges.length === 0) return false
    const seen = (this.#seen ??= new SeenWrites())
    for (const mutations of this.#waiting) seen.add(mutations)
    this.#waiting = []
    return seen.meets(reads, ranges)
  }
}

class SeenWrites {
  readonly #keys = new SortedKeys()
  readonly #prefixes = new SortedKeys()
  readonly #prefixLengths = new Set<number>()

  add(mutations: readonly Mutation[]): void {
    for (const mutation of mutations) {
      const known = knownLength(mutation)
      if (known === mutation.key.length) {
        this.#keys.add(latin1(mutation.key))
        continue
      }
      this.#prefixes.add(latin1(mutation.key.subarray(0, known)))
      this.#prefixLengths.add(known)
    }
  }

  meets(reads: readonly string[], ranges: readonly TextRange[]): boolean {
    if (reads.some((key) => this.#keys.has(key) || this.#isUnderPrefix(key))) return true
    if (ranges.length === 0) return false
    if (this.#keys.hasIn(ranges) || this.#prefixes.hasIn(ranges)) return true
    return ranges.some(({ gte }) => this.#isUnderPrefix(gte))
  }

  #isUnderPrefix(key: string): boolean {
    for (const length of this.#prefixLengths) {
      if (key.length >= length && this.#prefixes.has(key.slice(0, length))) return true
    }
    return false
  }
}

/** The bytes of the key that are known before the entry is applied. */
function knownLength({ key, slots }: Mutation): number {
  let known = key.length
  for (const { at, offset } of slots ?? []) if (at === 'key') known = Math.min(known, offset)
  assert(known >= 0 && known <= key.length, 'TXN-2: a number stands outside its key')
  return known
}

/** A set that is put in order when ranges are looked for: in runs, each twice as long as the next. */
class SortedKeys {
  readonly #all = new Set<string>()
  readonly #runs: string[][] = []
  #unsorted: string[] = []

  add(key: string): void {
    this.#all.add(key)
    this.#unsorted.push(key)
  }

  has(key: string): boolean {
    return this.#all.has(key)
  }

  hasIn(ranges: readonly TextRange[]): boolean {
    this.#sort()
    return this.#runs.some((run) => keyInRanges(run, ranges) !== undefined)
  }

  #sort(): void {
    if (this.#unsorted.length === 0) return
    let run = this.#unsorted
    this.#unsorted = []
    for (;;) {
      const before = this.#runs.at(-1)
      if (before === undefined || before.length > 2 * run.length) break
      run = [...before, ...run]
      this.#runs.pop()
    }
    this.#runs.push(run.sort())
  }
}
