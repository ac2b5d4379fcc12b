import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { RingTable } from '../../src/client/ring-table.ts'

const max = 5

test('an added thing stays under its number until it is taken, and numbers only rise', () => {
  const step = fc.oneof(fc.constant('add' as const), fc.nat(40))
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const things = new RingTable<string>(max)
      const model = new Map<number, string>()
      let last = 0
      for (const [place, one] of steps.entries()) {
        if (one === 'add') {
          if (model.size === max) continue
          const number = things.add(`thing ${place}`)
          expect(number).toBeGreaterThan(last)
          last = number
          model.set(number, `thing ${place}`)
        } else {
          // Also numbers that are not there any more, and some that are not there yet.
          const number = Math.max(0, last - 30 + one)
          expect(things.get(number)).toBe(model.get(number))
          expect(things.take(number)).toBe(model.get(number))
          model.delete(number)
        }
        expect(things.where(() => true)).toEqual([...model.keys()])
      }
    }),
    { numRuns: 300, seed: 5 },
  )
})

test('a ring that has become too small keeps what is in it', () => {
  const things = new RingTable<number>(1_000)
  const kept = things.add(-1)
  for (let n = 0; n < 500; n++) things.take(things.add(n))
  const numbers = Array.from({ length: 999 }, (_, n) => things.add(n))
  expect(numbers.map((number) => things.get(number))).toEqual([...numbers.keys()])
  expect([things.get(kept), things.where(() => true)]).toEqual([-1, [kept, ...numbers]])
  expect(() => things.add(0)).toThrow('more is under way')
})

test('a thing that is never taken keeps its number and blocks no other', () => {
  const things = new RingTable<string>(max)
  const first = things.add('first')
  for (let n = 0; n < 100; n++) things.take(things.add('other'))
  expect([things.get(first), things.where((one) => one === 'first')]).toEqual(['first', [first]])
})
