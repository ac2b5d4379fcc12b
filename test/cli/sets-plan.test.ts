/** How buckets are shared out evenly. */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { planEven } from '../../src/cli/sets-plan.ts'

test('a set without buckets gets its share of those that have most', () => {
  const sets = [
    { set: 'east', buckets: 2048 },
    { set: 'west', buckets: 2048 },
    { set: 'north', buckets: 0 },
  ]
  expect(planEven(sets)).toEqual([
    { from: 'east', to: 'north', buckets: 682 },
    { from: 'west', to: 'north', buckets: 683 },
  ])
})

test('sets that are even give nothing', () => {
  expect(planEven([{ set: 'main', buckets: 4096 }])).toEqual([])
  const three = [1366, 1365, 1365].map((buckets, at) => ({ set: String(at), buckets }))
  expect(planEven(three)).toEqual([])
})

test('afterwards no set has two more than another one, and none has given and got', () => {
  const counts = fc.array(fc.integer({ min: 0, max: 4096 }), { minLength: 1, maxLength: 9 })
  fc.assert(
    fc.property(counts, (list) => {
      const left = new Map(list.map((buckets, at) => [String(at), buckets]))
      const gifts = planEven(list.map((buckets, at) => ({ set: String(at), buckets })))
      for (const { from, to, buckets } of gifts) {
        expect(buckets).toBeGreaterThan(0)
        left.set(from, (left.get(from) ?? 0) - buckets)
        left.set(to, (left.get(to) ?? 0) + buckets)
      }
      const ends = [...left.values()]
      expect(Math.min(...ends)).toBeGreaterThanOrEqual(0)
      expect(Math.max(...ends) - Math.min(...ends)).toBeLessThanOrEqual(1)
      const givers = new Set(gifts.map(({ from }) => from))
      expect(gifts.some(({ to }) => givers.has(to))).toBe(false)
    }),
  )
})
