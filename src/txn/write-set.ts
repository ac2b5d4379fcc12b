/**
 * The writes that a transaction is going to make: one mutation a key, the later one wins, in key order at
 * hand for its own scans. Rows whose key waits for a number (a slot) have no place yet and lie apart.
 */
import { StoreError } from '../base/errors.ts'
import { compareText, latin1 } from '../base/bytes.ts'
import type { Mutation, SequenceSlot } from '../group/transaction.ts'
import { type KeyRange } from '../group/outcome.ts'
import { doRangesMeet, prefixRange } from './key-range.ts'

export class WriteSet {
  readonly #byKey = new Map<string, Mutation>()
  /** The keys of `#byKey`, sorted. */
  readonly #order: string[] = []
  readonly #unplaced: Mutation[] = []
  readonly #allocations: number[] = []
  /** Of `#byKey`: those that take something away. */
  readonly #removals = new Set<string>()
  #bytes = 0

  /** Draws the next number of a counter of the group, at commit; gives its place among the numbers. */
  allocate(counter: number): number {
    return this.#allocations.push(counter) - 1
  }

  /** `isRemoval`: it is written to say that something goes, as the deletion of a row does. */
  add(mutation: Mutation, isRemoval: boolean = mutation.value === undefined): void {
    if (mutation.slots?.some(({ at }) => at === 'key') === true) {
      this.#unplaced.push(mutation)
      this.#bytes += sizeInBytes(mutation)
      return
    }
    const text = latin1(mutation.key)
    const before = this.#byKey.get(text)
    // Its number would be drawn and lost, and numbers have no gaps.
    if (before?.slots !== undefined) throw unknownNumber()
    if (before === undefined) this.#order.splice(this.#findPlace(text), 0, text)
    // A key that is written again goes to the end.
    else this.#byKey.delete(text)
    this.#byKey.set(text, mutation)
    if (isRemoval) this.#removals.add(text)
    else this.#removals.delete(text)
    this.#bytes += sizeInBytes(mutation) - (before === undefined ? 0 : sizeInBytes(before))
  }

  get(key: Uint8Array): Mutation | undefined {
    return this.#byKey.get(latin1(key))
  }

  /** Mutations of the range in key order. */
  inRange({ gte, lt }: KeyRange): readonly Mutation[] {
    const keys = this.#order.slice(this.#findPlace(latin1(gte)), this.#findPlace(latin1(lt)))
    return keys.flatMap((key) => this.#byKey.get(key) ?? [])
  }

  /** Is there a row that may come to lie in the range, but has no number yet? */
  hasUnplacedIn(range: KeyRange): boolean {
    return this.#unplaced.some((mutation) => doRangesMeet(prefixRange(knownPart(mutation)), range))
  }

  /** The same, of rows whose key begins so whatever their number. */
  hasUnplacedUnder(prefix: Uint8Array): boolean {
    const start = latin1(prefix)
    return this.#unplaced.some((mutation) => latin1(knownPart(mutation)).startsWith(start))
  }

  get count(): number {
    return this.#byKey.size + this.#unplaced.length
  }

  /** Those that take nothing away. */
  get written(): number {
    return this.count - this.#removals.size
  }

  get bytes(): number {
    return this.#bytes
  }

  get allocations(): readonly number[] {
    return this.#allocations
  }

  /** In the order in which they were written. */
  mutations(): readonly Mutation[] {
    return [...this.#byKey.values(), ...this.#unplaced]
  }

  #findPlace(text: string): number {
    let from = 0
    let to = this.#order.length
    while (from < to) {
      const middle = (from + to) >>> 1
      if (compareText(this.#order[middle] ?? '', text) < 0) from = middle + 1
      else to = middle
    }
    return from
  }
}

export function unknownNumber(): StoreError {
  return new StoreError(
    'invalid',
    'this would show a row that the transaction itself has inserted, and whose number is known only after commit; read it in the next transaction, or before the insert',
  )
}

function sizeInBytes({ key, value }: Mutation): number {
  return key.length + (value?.length ?? 0)
}

/** The part of the key before the first number to be filled in. */
function knownPart({ key, slots = [] }: Mutation): Uint8Array {
  const offsets = slots.filter(isOfKey).map(({ offset }) => offset)
  return key.subarray(0, Math.min(...offsets))
}

function isOfKey({ at }: SequenceSlot): boolean {
  return at === 'key'
}
