/** Where each flush stands: a few numbers a flush in typed arrays, as flush numbers are dense. */
import { assert } from '../base/assert.ts'

export interface Place {
  /** The sequence of the segment. */
  readonly segment: number
  /** Of the flush's bytes, in the file. */
  readonly offset: number
  readonly length: number
  readonly crc: number
}

/** Numbers of 32 bits a flush: segment, offset (in two), length, CRC. */
const columns = 5
const lengthAt = 3
const sizeMin = 1024
const twoTo32 = 2 ** 32

export class FlushIndex {
  #cells = new Uint32Array(columns * sizeMin)
  /** The number whose cells are the first ones. */
  #base = 0
  #end = 0

  /** The highest number that was ever set; 0: none. */
  get last(): number {
    return Math.max(0, this.#end - 1)
  }

  /** The lowest number that may be there. */
  get first(): number {
    return this.#base
  }

  /** Undefined: there is none. Whether others around it are says `first` and `last`. */
  get(number: number): Place | undefined {
    if (number < this.#base || number >= this.#end) return undefined
    const [segment = 0, high = 0, low = 0, length = 0, crc = 0] = this.#cellsOf(number)
    return segment === 0 ? undefined : { segment, offset: high * twoTo32 + low, length, crc }
  }

  /** Of the flushes from `first` through `last`. */
  bytesBetween(first: number, last: number): number {
    let bytes = 0
    const end = Math.min(last + 1, this.#end)
    for (let number = Math.max(first, this.#base); number < end; number++) {
      const at = (number - this.#base) * columns
      if (this.#cells[at] !== 0) bytes += this.#cells[at + lengthAt] ?? 0
    }
    return bytes
  }

  /** The newest place of a flush counts. */
  set(number: number, { segment, offset, length, crc }: Place): void {
    assert(number > 0 && segment > 0, 'JRN-2: flushes and segments are numbered from 1')
    if (this.#end === 0) this.#base = this.#end = number
    if (number < this.#base) this.#move(number)
    this.#end = Math.max(this.#end, number + 1)
    this.#makeRoom()
    const cells = this.#cellsOf(number)
    cells.set([segment, Math.floor(offset / twoTo32), offset % twoTo32, length, crc])
  }

  /** Forgets the flushes of a segment, none of which is above `through`. */
  forget(segment: number, through: number): void {
    for (let number = this.#base; number <= through; number++) {
      const cells = this.#cellsOf(number)
      if (cells[0] === segment) cells[0] = 0
    }
    let first = this.#base
    while (first < this.#end && this.#cellsOf(first)[0] === 0 && first <= through) first += 1
    if (first > this.#base) this.#move(first)
  }

  #cellsOf(number: number): Uint32Array {
    const at = (number - this.#base) * columns
    return this.#cells.subarray(at, at + columns)
  }

  #makeRoom(): void {
    const wanted = (this.#end - this.#base) * columns
    if (wanted <= this.#cells.length) return
    const grown = new Uint32Array(Math.max(wanted, 2 * this.#cells.length))
    grown.set(this.#cells)
    this.#cells = grown
  }

  /** Makes `base` the first number. */
  #move(base: number): void {
    const count = Math.max(0, this.#end - base)
    const kept = this.#cells.subarray(Math.max(0, base - this.#base) * columns)
    const gap = Math.max(0, this.#base - base) * columns
    const moved = new Uint32Array(Math.max(sizeMin, 2 * count) * columns)
    moved.set(kept.subarray(0, moved.length - gap), gap)
    this.#cells = moved
    this.#base = base
    this.#end = Math.max(this.#end, base)
  }
}
