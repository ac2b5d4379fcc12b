/** The map of the simulated disk against a plain sorted list. */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { OrderedMap, type KeyRange } from '../../sim/world/ordered-map.ts'

/** Few keys, so that they come, go and come again; more than one list holds. */
const key = fc.integer({ min: 0, max: 400 }).map((number) => number.toString(36).padStart(2, '0'))
const bound = fc.option(key, { nil: undefined })
const range: fc.Arbitrary<KeyRange> = fc.record({
  ...{ gte: bound, gt: bound, lt: bound, reverse: fc.boolean() },
  limit: fc.option(fc.integer({ min: 0, max: 20 }), { nil: undefined }),
})
const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('set'), key }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('delete'), key }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('look'), key, range }) },
)

function expected(keys: ReadonlySet<string>, { gte, gt, lt, reverse, limit }: KeyRange): string[] {
  const within = [...keys].filter(
    (one) =>
      (gte === undefined || one >= gte) &&
      (gt === undefined || one > gt) &&
      (lt === undefined || one < lt),
  )
  within.sort((a, b) => (a < b ? -1 : a > b ? 1 : 0))
  if (reverse === true) within.reverse()
  return within.slice(0, limit)
}

test('the keys of a range come in order, whatever came and went', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 1_500, size: 'max' }), (steps) => {
      const map = new OrderedMap<number>()
      const keys = new Set<string>()
      for (const [value, one] of steps.entries()) {
        if (one.kind === 'set') {
          map.set(one.key, value)
          keys.add(one.key)
          expect(map.get(one.key)).toBe(value)
        } else if (one.kind === 'delete') expect(map.delete(one.key)).toBe(keys.delete(one.key))
        else if ('range' in one) expect(map.keysIn(one.range)).toEqual(expected(keys, one.range))
        expect(map.size).toBe(keys.size)
      }
      expect(map.keysIn({})).toEqual(expected(keys, {}))
    }),
    { seed: 1, numRuns: 60 },
  )
})

test('a map that was cleared takes keys anew', () => {
  const map = new OrderedMap<number>()
  map.set('b', 1)
  map.clear()
  map.set('a', 2)
  expect([map.size, map.get('b'), map.keysIn({})]).toEqual([1, undefined, ['a']])
})
