/** Sets of small whole numbers as bits: the number n is bit n % 8 of byte n / 8, the lowest first. */
import { assert } from './assert.ts'

/** `count`: all numbers are below it; a multiple of 8. */
export function packBits(numbers: readonly number[], count: number): Uint8Array {
  const bits = new Uint8Array(count / 8)
  for (const number of numbers) {
    assert(number >= 0 && number < count, 'bits: a number is out of range')
    bits[number >> 3] = (bits[number >> 3] ?? 0) | (1 << (number & 7))
  }
  return bits
}

/** The numbers in their order; undefined for bytes of another length. */
export function readBits(bits: Uint8Array, count: number): readonly number[] | undefined {
  if (bits.length !== count / 8) return undefined
  const numbers: number[] = []
  for (const [at, byte] of bits.entries()) {
    for (let bit = 0; bit < 8; bit++) if ((byte & (1 << bit)) !== 0) numbers.push(at * 8 + bit)
  }
  return numbers
}
