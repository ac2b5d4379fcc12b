/** Rows that were overwritten or deleted on a simulated disk, and have bytes there until they are erased. */
import type { KeySpan } from '../../src/ports/storage.ts'
import { isWithin, textRange } from './key-ranges.ts'

export interface Remainder {
  /** Its key, as text. */
  readonly name: string
  readonly goneAtMicros: number
}

export class Remains {
  readonly #isKept: boolean
  readonly #nowMicros: () => number
  #old: readonly Remainder[] = []
  #fresh: Remainder[] = []

  constructor(isKept: boolean, nowMicros: () => number) {
    this.#isKept = isKept
    this.#nowMicros = nowMicros
  }

  /** In no order. */
  get all(): readonly Remainder[] {
    return [...this.#old, ...this.#fresh]
  }

  note(name: string): void {
    if (this.#isKept) this.#fresh.push({ name, goneAtMicros: this.#nowMicros() })
  }

  /** Resolves when nothing is left of rows of the spans that were gone at the call. */
  async erase(
    spans: readonly KeySpan[] | 'all',
    wait: () => Promise<void> | undefined,
  ): Promise<void> {
    const ranges = spans === 'all' ? [{}] : spans.map((span) => textRange(span))
    const old = this.all
    this.#fresh = []
    await wait()
    this.#old = old.filter(({ name }) => !ranges.some((one) => isWithin(name, one)))
  }

  clear(): void {
    this.#old = []
    this.#fresh = []
  }
}
