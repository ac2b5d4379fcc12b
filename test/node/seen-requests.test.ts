import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { requestsOutOfOrderMax, SeenRequests } from '../../src/node/seen-requests.ts'

test('TXN-5: each request is taken once, in whatever order copies of it come', () => {
  const number = fc.integer({ min: 1, max: requestsOutOfOrderMax })
  fc.assert(
    fc.property(fc.array(number, { maxLength: 200 }), (numbers) => {
      const seen = new SeenRequests()
      const taken = numbers.filter((id) => seen.add(id))
      expect(taken).toEqual([...new Set(numbers)])
    }),
    { seed: 1 },
  )
})

test('a request that a thousand others have overtaken is taken for a copy', () => {
  const seen = new SeenRequests()
  expect(seen.add(requestsOutOfOrderMax + 1)).toBe(true)
  expect(seen.add(1)).toBe(false)
  expect(seen.add(2)).toBe(true)
})
