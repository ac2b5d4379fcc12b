/** The read set: joined ranges hold what was put in, and nothing else. */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { isInRange } from '../../src/txn/key-range.ts'
import { ReadSet } from '../../src/txn/read-set.ts'

test('TXN-2: ranges that are joined cover the same keys, in order and apart', () => {
  const bound = fc.integer({ min: 0, max: 12 })
  fc.assert(
    fc.property(fc.array(fc.tuple(bound, bound), { maxLength: 8 }), (pairs) => {
      const reads = new ReadSet()
      const ranges = pairs.map(([gte, lt]) => ({ gte: Buffer.from([gte]), lt: Buffer.from([lt]) }))
      for (const range of ranges) reads.addRange(range)
      const joined = reads.ranges()
      for (let byte = 0; byte <= 13; byte++) {
        const key = Buffer.from([byte])
        const isRead = ranges.some((range) => isInRange(key, range))
        expect(joined.filter((range) => isInRange(key, range)).length).toBe(isRead ? 1 : 0)
      }
      for (const [index, { gte }] of joined.entries()) {
        const before = joined[index - 1]
        if (before !== undefined) expect(Buffer.compare(before.lt, gte)).toBeLessThan(0)
      }
    }),
  )
})

test('pages of one scan count as one range, a key read twice as one', () => {
  const reads = new ReadSet()
  for (let page = 0; page < 100; page++) {
    reads.addRange({ gte: Buffer.from([page]), lt: Buffer.from([page + 1]) })
    reads.addKey(Buffer.from('k'))
  }
  expect(reads.count).toBe(2)
})
