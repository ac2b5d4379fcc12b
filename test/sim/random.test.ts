import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { SeededRandom } from '../../sim/world/random.ts'

function draws(random: SeededRandom): number[] {
  return Array.from({ length: 20 }, () => random.int(0, 2 ** 40))
}

test('META-1: a path gives the same numbers every time', () => {
  expect(draws(new SeededRandom('7/network'))).toEqual(draws(new SeededRandom('7/network')))
  expect(draws(new SeededRandom('7/network'))).not.toEqual(draws(new SeededRandom('8/network')))
})

test('META-1: a fork depends on its label, not on what was drawn before it', () => {
  const first = new SeededRandom('7')
  const second = new SeededRandom('7')
  draws(second)
  expect(draws(first.fork('disk'))).toEqual(draws(second.fork('disk')))
  expect(draws(first.fork('disk'))).not.toEqual(draws(first.fork('clock')))
})

test('numbers stay within their range, and rates of nothing and everything are exact', () => {
  fc.assert(
    fc.property(fc.string(), fc.integer(), fc.nat(), (path, from, width) => {
      const random = new SeededRandom(path)
      const drawn = random.int(from, from + width)
      expect(drawn).toBeGreaterThanOrEqual(from)
      expect(drawn).toBeLessThanOrEqual(from + width)
      expect(random.chance(0)).toBe(false)
      expect(random.chance(1_000_000)).toBe(true)
      expect(random.exponential(1000)).toBeGreaterThanOrEqual(0)
    }),
  )
})

test('a shuffle keeps what it shuffles', () => {
  const list = [1, 2, 3, 4, 5, 6, 7, 8]
  const shuffled = new SeededRandom('3').shuffle(list)
  expect(shuffled).not.toEqual(list)
  expect([...shuffled].sort((a, b) => a - b)).toEqual(list)
})
