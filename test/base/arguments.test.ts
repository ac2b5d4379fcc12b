/** Arguments of the library's calls: the valid ones pass, and words refuse the rest. */
import { expect, test } from 'vitest'
import { checkPlaces, flag, number, optionsProblem, upperLimit } from '../../src/base/arguments.ts'

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

class Kept {
  reverse = true
}
class Computed {
  limit = 5
  get reverse(): boolean {
    return true
  }
}
class Kind extends Kept {
  more = 1
}

test.each<readonly [object, string | undefined]>([
  [new Kept(), undefined],
  [{ limit: 5, reverse: true }, undefined],
  [Object.assign(new Map(), { limit: 5 }), undefined],
  [new Kind(), 'unknown option "more"'],
  [Object.assign(new Kept(), { reverse: 1 }), 'reverse is 1; expected true or false'],
  [
    new Computed(),
    'the options are an object of the class Computed; expected an object of limit, ',
  ],
  [new Map([['limit', 5]]), 'the options are an object of the class Map; expected an object of'],
  [Object.create({ limit: 5 }), 'the options are an object that inherits from another one'],
  [[1], 'the options are a list'],
  [Buffer.alloc(2), 'the options are 2 bytes'],
])('options %o: %s', (given, words) => {
  const wrong = optionsProblem(given, { limit: number, reverse: flag })
  if (words === undefined) expect(wrong).toBeUndefined()
  else expect(wrong?.words).toContain(words)
})
