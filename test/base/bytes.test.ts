/** Helpers over bytes against the plainest way to say the same, and known answers of the hashes. */
import { expect, test } from 'vitest'
import * as fc from 'fast-check'
import {
  asBuffer,
  compareBytes,
  compareCodePoints,
  compareText,
  crc32,
  equalBytes,
  fromLatin1,
  latin1,
  readVar,
  sha256,
  varBytes,
  varBytesMax,
  writeVar,
} from '../../src/base/bytes.ts'

const seeded = { seed: 20_110_109, numRuns: 500 }
const rawBytes = fc.uint8Array({ maxLength: 20 })

test('bytes: equality and order are those of the values, unsigned, one by one', () => {
  fc.assert(
    fc.property(rawBytes, rawBytes, (a, b) => {
      const i = a.findIndex((byte, index) => byte !== b[index])
      const order = i < 0 ? a.length - b.length : (a[i] ?? 0) - (b[i] ?? -1)
      expect(Math.sign(compareBytes(a, b))).toBe(Math.sign(order))
      expect(equalBytes(a, b)).toBe(order === 0)
      expect(equalBytes(a, Uint8Array.from(a))).toBe(true)
    }),
    seeded,
  )
})

test('bytes: as latin1 text they come back, and order as before', () => {
  fc.assert(
    fc.property(rawBytes, rawBytes, (a, b) => {
      expect([...fromLatin1(latin1(a))]).toEqual([...a])
      expect(compareText(latin1(a), latin1(b))).toBe(Math.sign(compareBytes(a, b)))
    }),
    seeded,
  )
})

test('bytes: text compares by code point as its UTF-8 bytes do', () => {
  const text = fc.string({
    unit: fc.constantFrom('a', 'é', '\ud7ff', '\ue000', '\uffff', '😀', '𐀀'),
  })
  fc.assert(
    fc.property(text, text, (a, b) => {
      const order = compareBytes(Buffer.from(a), Buffer.from(b))
      expect(Math.sign(compareCodePoints(a, b))).toBe(Math.sign(order))
    }),
    seeded,
  )
  expect(compareText('\uffff', '😀')).toBe(1)
  expect(compareCodePoints('\ud800', '\ufffd')).not.toBe(0)
})

test('bytes: a buffer shares the memory it was made over', () => {
  const memory = Uint8Array.from([1, 2, 3, 4])
  const view = asBuffer(memory.subarray(1, 3))
  view[0] = 9
  expect([...memory]).toEqual([1, 9, 3, 4])
  expect(asBuffer(view)).toBe(view)
})

test('bytes: a checksum in pieces is the checksum of the whole', () => {
  expect(crc32(Buffer.from('123456789'))).toBe(0xcbf43926)
  fc.assert(
    fc.property(rawBytes, rawBytes, (a, b) => {
      expect(crc32(b, crc32(a))).toBe(crc32(Buffer.concat([a, b])))
    }),
    seeded,
  )
})

test('bytes: any one flipped bit changes the checksum', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 1, maxLength: 20 }), fc.nat(), (bytes, at) => {
      const flipped = Uint8Array.from(bytes)
      const index = at % bytes.length
      flipped[index] = (flipped[index] ?? 0) ^ (1 << (at % 8))
      expect(crc32(flipped)).not.toBe(crc32(bytes))
    }),
    seeded,
  )
})

test('bytes: the hash is SHA-256', () => {
  const known = 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'
  expect(sha256('abc').toString('hex')).toBe(known)
  expect(sha256(Buffer.from('abc')).toString('hex')).toBe(known)
})

test('a count takes a byte for seven bits, and comes back as it was', () => {
  const bytes = Buffer.alloc(varBytesMax)
  const numbers = [0, 1, 127, 128, 300, 2 ** 14 - 1, 2 ** 14, 2 ** 32, Number.MAX_SAFE_INTEGER]
  for (const number of numbers) {
    const end = writeVar(bytes, number, 0)
    expect(end).toBe(varBytes(number))
    expect(readVar(bytes.subarray(0, end), 0)).toBe(number)
    expect(readVar(bytes.subarray(0, end - 1), 0)).toBeUndefined()
  }
  expect(numbers.map(varBytes)).toEqual([1, 1, 1, 2, 2, 2, 3, 5, 8])
})

test('a count that is written longer than it is, or beyond 2^53, is none', () => {
  expect(readVar(Buffer.of(0x80, 0), 0)).toBeUndefined()
  expect(readVar(Buffer.of(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x1f), 0)).toBeUndefined()
  expect(readVar(Buffer.alloc(9, 0xff), 0)).toBeUndefined()
  expect(() => writeVar(Buffer.alloc(9), 2 ** 53, 0)).toThrow('safe integer')
})
