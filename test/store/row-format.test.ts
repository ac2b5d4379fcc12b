import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { groupOfBytes } from '../../src/base/ids.ts'
import { groupPrefix, joined, rowsPrefix, rowStoreKey } from '../../src/store/row-format.ts'

test('the key that a row is looked up by is the one that it is written under', () => {
  const groups = fc.uint8Array({ minLength: 1, maxLength: 40 }).map(groupOfBytes)
  fc.assert(
    fc.property(groups, fc.uint8Array({ maxLength: 40 }), (group, key) => {
      const written = joined(rowsPrefix(groupPrefix(group)), key)
      expect(rowStoreKey(group, key).equals(written)).toBe(true)
    }),
    { numRuns: 500, seed: 2 },
  )
})
