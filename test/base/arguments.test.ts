/** What is given to calls of the library: what is taken, and in which words the rest is refused. */
import { expect, test } from 'vitest'
import { checkPlaces, upperLimit } from '../../src/base/arguments.ts'

test('a limit is a whole number, or Infinity for all', () => {
  for (const limit of [1, 7, Number.MAX_SAFE_INTEGER, Infinity]) {
    expect(upperLimit.accepts(limit), String(limit)).toBe(true)
  }
  for (const wrong of [0, -1, 1.5, -Infinity, Number.NaN, '7', 7n, null, undefined]) {
    expect(upperLimit.accepts(wrong), String(wrong)).toBe(false)
  }
})

test('places are those that slice takes', () => {
  for (const place of [undefined, 0, 5, -2, Infinity, -Infinity]) {
    expect(() => checkPlaces('rows', 0, place), String(place)).not.toThrow()
    expect(() => checkPlaces('rows', place, undefined), String(place)).not.toThrow()
  }
  for (const wrong of [1.5, Number.NaN, '2', null, 2n]) {
    expect(() => checkPlaces('rows', 0, wrong)).toThrow(
      /^rows: to is .*; expected a whole number or Infinity, as slice takes it$/,
    )
  }
})
