/** Keys in the making: bytes one after another, and the places where a number is still to come. */
import { writeCount } from '../base/bytes.ts'
import type { SequenceSlot } from '../replication/transaction.ts'
import type { KeyPart } from './compile.ts'
import { countBytes, encodePart } from './key-codec.ts'

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
  readonly #pieces: Uint8Array[] = []
  readonly #slots: SequenceSlot[] = []
  #length = 0

  add(bytes: Uint8Array): this {
    this.#pieces.push(bytes)
    this.#length += bytes.length
    return this
  }

  mark(number: number): this {
    return this.add(Buffer.from([number >>> 8, number & 0xff]))
  }

  part(part: KeyPart, value: unknown): this {
    if (!isComing(value)) return this.add(encodePart(part, value))
    this.#slots.push({ allocation: value.allocation, at: 'key', offset: this.#length })
    return this.add(Buffer.alloc(countBytes))
  }

  get bytes(): Uint8Array {
    return Buffer.concat(this.#pieces)
  }

  get slots(): readonly SequenceSlot[] {
    return this.#slots
  }
}

/** A number in front of what it goes with, in a value. */
export function countOf(value: number): Buffer {
  const bytes = Buffer.alloc(countBytes)
  writeCount(bytes, value, 0)
  return bytes
}
