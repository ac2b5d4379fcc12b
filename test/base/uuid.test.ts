import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { AssertionError } from '../../src/base/assert.ts'
import { readUuid, uuidBytes, writeUuid } from '../../src/base/uuid.ts'

test('a UUID comes back, in lower case, from wherever it is written', () => {
  fc.assert(
    fc.property(fc.uuid(), fc.nat({ max: 5 }), fc.boolean(), (uuid, at, isUpper) => {
      const bytes = Buffer.alloc(at + uuidBytes + 3, 7)
      writeUuid(bytes, isUpper ? uuid.toUpperCase() : uuid, at)
      expect(bytes.toString('hex', at, at + uuidBytes)).toBe(uuid.replaceAll('-', ''))
      expect([...bytes.subarray(0, at), ...bytes.subarray(at + uuidBytes)]).toEqual(
        Array.from({ length: at + 3 }, () => 7),
      )
      expect(readUuid(bytes, at)).toBe(uuid)
    }),
  )
})

test.each(['', '2a21e868-ff42-4cd9-9e04-466cee193f4', '2a21e868-ff42-4cd9-9e04-466cee193f4g'])(
  'writeUuid refuses %j',
  (text) => {
    expect(() => writeUuid(Buffer.alloc(uuidBytes), text, 0)).toThrow(AssertionError)
  },
)

test('bytes that are not all there are no UUID', () => {
  expect(() => readUuid(Buffer.alloc(uuidBytes), 1)).toThrow(AssertionError)
})
