/**
 * A running hash of everything that happens in a run: the same seed twice gives the same hash, in
 * another folder, another time zone, another process. Two lanes of 32 bits; fast, not secret.
 */
import { crc32 } from '../../src/base/bytes.ts'

const textsKeptMax = 20_000

export class TraceHash {
  #low = 0x811c9dc5
  #high = 0x9e3779b9
  readonly #hashByText = new Map<string, number>()

  /** Any number; the fraction counts to a thousandth. */
  number(value: number): void {
    const scaled = Number.isInteger(value) ? value : Math.round(value * 1000)
    this.#mix(scaled >>> 0)
    if (scaled > 0xffffffff || scaled < 0) this.#mix(Math.floor(scaled / 2 ** 32) >>> 0)
  }

  text(value: string): void {
    let hash = this.#hashByText.get(value)
    if (hash === undefined) {
      hash = hashOfText(value)
      // A cache only: its contents never change a hash.
      if (this.#hashByText.size >= textsKeptMax) this.#hashByText.clear()
      this.#hashByText.set(value, hash)
    }
    this.#mix(hash)
  }

  bytes(value: Uint8Array): void {
    this.#mix(crc32(value))
  }

  /** A value of a trace event: plain data, hashed with its keys in the order they were written. */
  value(value: unknown): void {
    if (typeof value === 'number') this.number(value)
    else if (typeof value === 'string') this.text(value)
    else if (value instanceof Uint8Array) this.bytes(value)
    else if (typeof value === 'object' && value !== null) {
      for (const key of Object.keys(value)) {
        this.text(key)
        this.value(Reflect.get(value, key))
      }
    } else this.text(String(value))
  }

  /** 16 hexadecimal digits. */
  digest(): string {
    return [this.#high, this.#low].map((lane) => lane.toString(16).padStart(8, '0')).join('')
  }

  #mix(word: number): void {
    let low = Math.imul(this.#low ^ word, 0x01000193)
    low ^= low >>> 15
    let high = Math.imul(this.#high ^ word ^ low, 0x85ebca6b)
    high ^= high >>> 13
    this.#low = low >>> 0
    this.#high = high >>> 0
  }
}

function hashOfText(text: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return hash >>> 0
}
