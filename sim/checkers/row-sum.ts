/** A digest of rows that can be kept up row by row. */
import { crc32 } from '../../src/base/bytes.ts'

/** An order-free digest of rows: equal sets of rows have equal sums. */
export class RowSum {
  #xor = 0
  #sum = 0

  toggle(key: Uint8Array, value: Uint8Array, timestamp: number, isAdded: boolean): void {
    const stamp = (timestamp % 2 ** 32) ^ Math.floor(timestamp / 2 ** 32)
    const hash = Math.imul(crc32(value, crc32(key)) ^ stamp, 0x9e3779b1) >>> 0
    this.#xor = (this.#xor ^ hash) >>> 0
    this.#sum = (this.#sum + (isAdded ? hash : -hash)) % 2 ** 32
  }

  digest(): string {
    return `${this.#xor.toString(16)}.${((this.#sum + 2 ** 32) % 2 ** 32).toString(16)}`
  }
}
