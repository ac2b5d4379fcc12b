/** Names of groups with a place: each is read as it was written, and no other name is taken for one. */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { groupOfBytes, type GroupId } from '../../src/base/ids.ts'
import { encodePlace, placedPrefix, placeOf, type Place } from '../../src/base/placed-group.ts'
import { encodeTuple } from '../../src/base/tuple.ts'

const word = fc.constantFrom('tables', 'index')
const name = fc.stringMatching(/^[a-z0-9-]{1,32}$/)
const place: fc.Arbitrary<Place> = fc.record({ kind: fc.constantFrom('set', 'region'), name })
const rest = fc.uint8Array({ maxLength: 40 })

function join(...parts: readonly Uint8Array[]): GroupId {
  return groupOfBytes(Buffer.concat(parts))
}

test('MOVE-8: a name gives the place that it was made with, whatever follows it', () => {
  fc.assert(
    fc.property(word, fc.string({ unit: 'grapheme' }), fc.nat(), place, rest, (...drawn) => {
      const [kind, schema, number, given, tail] = drawn
      const group = join(placedPrefix(kind, schema, number), encodePlace(given), tail)
      expect(placeOf(group)).toEqual(given)
    }),
  )
})

test('MOVE-8: names of tables, indexes, schemas and any other tuple have no place', () => {
  const element = fc.oneof(fc.string(), fc.integer(), fc.uint8Array({ maxLength: 8 }))
  const first = fc.oneof(word, fc.constantFrom('schemas', 'members'), fc.string())
  fc.assert(
    fc.property(first, fc.array(element), rest, (begin, elements, tail) => {
      fc.pre(begin !== 'placed')
      expect(placeOf(join(encodeTuple([begin, ...elements]), tail))).toBeUndefined()
    }),
  )
})

test('MOVE-8: bytes that only begin as such a name have no place', () => {
  const whole = Buffer.concat([
    placedPrefix('tables', 's', 1),
    encodePlace({ kind: 'set', name: 'a' }),
  ])
  for (let end = 1; end < whole.length; end++) {
    expect(placeOf(groupOfBytes(whole.subarray(0, end)))).toBeUndefined()
  }
  const wrong = [
    encodeTuple(['placed', 'tables', 's', 1, 'zone:a']),
    encodeTuple(['placed', 'tables', 's', 1, 'region:']),
    encodeTuple(['placed', 'tables', 's', 1, 'region:EU']),
    encodeTuple(['placed', 'tables', 's', 'x', 'region:eu']),
    encodeTuple(['placed', 'tables', 5, 1, 'region:eu']),
  ]
  for (const bytes of wrong) expect(placeOf(groupOfBytes(bytes))).toBeUndefined()
})

test('a name that no set or region may have is a bug of the caller', () => {
  expect(() => encodePlace({ kind: 'region', name: 'EU' })).toThrow('a place was not checked')
})
