/** Bounded maps: which key goes first, and that its removal costs the same after many others. */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { BoundedMap } from '../../src/base/bounded-map.ts'

test('the key that was set first goes first, and one that is set again keeps its place', () => {
  const map = new BoundedMap<string, number>(2)
  expect([map.set('a', 1), map.set('b', 2), map.set('a', 3)]).toEqual([false, false, false])
  expect(map.set('c', 4)).toBe(true)
  expect([map.get('a'), map.get('b'), map.get('c'), map.size]).toEqual([undefined, 2, 4, 2])
})

test('a key that is set anew is the youngest', () => {
  const map = new BoundedMap<string, number>(2)
  for (const key of ['a', 'b', 'a', 'c']) map.setAnew(key, 0)
  expect([map.get('a'), map.get('b'), map.get('c')]).toEqual([0, undefined, 0])
})

test('a bounded map always equals a model list that follows the same rules', () => {
  const change = fc.record({ key: fc.nat(7), isAnew: fc.boolean() })
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 5 }), fc.array(change), (max, changes) => {
      const map = new BoundedMap<number, number>(max)
      let model: (readonly [number, number])[] = []
      for (const [step, { key, isAnew }] of changes.entries()) {
        const isKept = !isAnew && model.some(([one]) => one === key)
        if (isKept) model = model.map((one) => (one[0] === key ? [key, step] : one))
        else model = [...model.filter(([one]) => one !== key), [key, step]]
        const forgot = isAnew ? map.setAnew(key, step) : map.set(key, step)
        expect(forgot).toBe(model.length > max)
        model = model.slice(-max)
        expect(map.size).toBe(model.length)
        for (let one = 0; one <= 7; one++) {
          expect(map.get(one)).toBe(model.find(([known]) => known === one)?.[1])
        }
      }
    }),
  )
})
