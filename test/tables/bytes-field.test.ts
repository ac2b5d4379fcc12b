import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { bytesField } from '../../src/tables/bytes-field.ts'
import { fieldWith, packValue, unpackValue } from '../../src/tables/row-value.ts'

const bytes = fc.oneof(
  fc.uint8Array({ maxLength: 300 }),
  fc.constantFrom(255, 256, 65_535, 65_536).map((length) => new Uint8Array(length).fill(7)),
)
const value = fc.oneof({ weight: 4, arbitrary: bytes }, fc.string(), fc.integer(), fc.boolean())
const number = fc.oneof(fc.integer({ min: 1, max: 8 }), fc.constantFrom(127, 128, 300))
const rows = fc.array(fc.tuple(number, value), { maxLength: 9 })

test('bytes are those that unpacking the row gives, or it says that the row is to be unpacked', () => {
  fc.assert(
    fc.property(
      rows,
      fc.option(fc.nat(), { nil: undefined }),
      number,
      (pairs, sequence, wanted) => {
        const row = packValue(sequence, pairs.flat()).bytes
        const found = bytesField(row, wanted)
        const whole = fieldWith(unpackValue(row).fields, wanted)
        const isPlain =
          pairs.length <= 7 && pairs.every(([n, one]) => n < 128 && typeof one === 'object')
        if (found !== undefined) expect([...found]).toEqual([...asBytes(whole)])
        else expect(isPlain && whole !== undefined).toBe(false)
      },
    ),
    { numRuns: 500, seed: 3 },
  )
})

test('bytesField reads nothing from bytes that are no row, and nothing beyond their end', () => {
  const row = Buffer.from(packValue(5, [1, Buffer.from('body')]).bytes)
  for (let length = 0; length < row.length; length++) {
    expect(bytesField(row.subarray(0, length), 1)).toBeUndefined()
  }
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 40 }), number, (garbage, wanted) => {
      const found = bytesField(garbage, wanted)
      expect(found === undefined || found.length <= garbage.length).toBe(true)
    }),
    { numRuns: 1_000, seed: 4 },
  )
})

function asBytes(value: unknown): Uint8Array {
  if (value instanceof Uint8Array) return value
  throw new Error('no bytes')
}
