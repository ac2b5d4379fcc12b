/** Keys in the making: bytes one after another, and the places where a number is still to come. */
import { assert } from '../base/assert.ts'
import type { SequenceSlot } from '../group/transaction.ts'
import type { KeyPart } from './compiled.ts'
import { ByteSink, countBytes, writePart } from './key-codec.ts'

/** A sequence's number that is drawn at commit. */
export interface ComingNumber {
  readonly kind: 'coming-number'
  /** Its place among the numbers of the transaction. */
  readonly allocation: number
}

export function isComing(value: unknown): value is ComingNumber {
  return (
    typeof value === 'object' && value !== null && 'kind' in value && value.kind === 'coming-number'
  )
}

export class KeyWriter {
  readonly #sink = new ByteSink()
  readonly #slots: SequenceSlot[] = []

  /** `space`: the key's first byte. */
  constructor(space: number) {
    const at = this.#sink.extend(1)
    this.#sink.bytes[at] = space
  }

  mark(number: number): this {
    const at = this.#sink.extend(2)
    this.#sink.bytes.writeUInt16BE(number, at)
    return this
  }

  part(part: KeyPart, value: unknown): this {
    if (!isComing(value)) {
      writePart(this.#sink, part, value)
      return this
    }
    assert(part.mayBeAbsent !== true, 'TAB-1: a number that is to come is never absent')
    const at = this.#sink.extend(countBytes)
    this.#sink.bytes.fill(0, at, at + countBytes)
    this.#slots.push({ allocation: value.allocation, at: 'key', offset: at })
    return this
  }

  get length(): number {
    return this.#sink.length
  }

  get bytes(): Uint8Array {
    return this.#sink.written
  }

  get slots(): readonly SequenceSlot[] {
    return this.#slots
  }
}
