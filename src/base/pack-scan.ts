/**
 * Finds where packed values end, without unpacking them. So the node divides incoming bytes before it makes
 * objects of them, which take many times the memory. Of a value, and of each list in it, the parts are
 * counted.
 */

/** The bytes that follow a first byte from `0xc0` on: of the value itself, or of its length. */
const following: readonly number[] = [
  ...[0, -1, 0, 0, 1, 2, 4, 1, 2, 4, 4, 8, 1, 2, 4, 8],
  ...[1, 2, 4, 8, 2, 3, 5, 9, 17, 1, 2, 4, 2, 4, 2, 4],
]

export class PackScan {
  readonly #bytes: Buffer
  #at: number
  #partsLeft: number

  /** Looks at `partsMax` values, those inside of others included. */
  constructor(bytes: Buffer, at: number, partsMax: number) {
    this.#bytes = bytes
    this.#at = at
    this.#partsLeft = partsMax
  }

  /** Where the next value begins. */
  get at(): number {
    return this.#at
  }

  /** The length of the list that begins here, and goes on behind its head; undefined: it is none. */
  list(): number | undefined {
    const first = this.#bytes[this.#at] ?? 0
    if (first >= 0x90 && first <= 0x9f) {
      this.#at += 1
      return first & 0x0f
    }
    const bytes = first === 0xdc ? 2 : 4
    if ((first !== 0xdc && first !== 0xdd) || this.#at + 1 + bytes > this.#bytes.length) {
      return undefined
    }
    const length = this.#bytes.readUIntBE(this.#at + 1, bytes)
    this.#at += 1 + bytes
    return length
  }

  /** Goes behind the next value. False: it does not end here, is of no known form, or has too many parts. */
  skip(): boolean {
    for (let left = 1; left > 0; left--) {
      this.#partsLeft -= 1
      const inner = this.#head()
      if (inner === undefined || this.#partsLeft < 0) return false
      left += inner
      // Each takes a byte at least.
      if (left > this.#bytes.length) return false
    }
    return this.#at <= this.#bytes.length
  }

  /** Goes behind the head of a value; returns how many values it holds, which follow. */
  #head(): number | undefined {
    const first = this.#bytes[this.#at]
    if (first === undefined) return undefined
    this.#at += 1
    if (first < 0x80 || first >= 0xe0) return 0
    if (first >= 0xc0) return this.#long(first)
    if (first < 0x90) return 2 * (first & 0x0f)
    if (first < 0xa0) return first & 0x0f
    this.#at += first & 0x1f
    return 0
  }

  /** Of a value with a length in front, or of a fixed one. */
  #long(first: number): number | undefined {
    const bytes = this.#bytes
    const more = following[first - 0xc0] ?? -1
    if (more < 0 || this.#at + more > bytes.length) return undefined
    const length = more > 0 && more <= 4 ? bytes.readUIntBE(this.#at, more) : 0
    this.#at += more
    if (first >= 0xde) return 2 * length
    if (first >= 0xdc) return length
    if (first >= 0xc7 && first <= 0xc9) this.#at += 1 + length
    else if (isLong(first)) this.#at += length
    return 0
  }
}

/** Bytes or text, with its length in front. */
function isLong(first: number): boolean {
  return (first >= 0xc4 && first <= 0xc6) || (first >= 0xd9 && first <= 0xdb)
}
