/** Values of indexed fields: their order in the index is the one that filters and sorting go by. */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { compareBytes } from '../../src/base/bytes.ts'
import { compareValues, sortBytes } from '../../src/cells/index-values.ts'

test('texts compare as their bytes in the index do, also beyond the first 65,536 code points', () => {
  const unit = fc.constantFrom('a', '\ud7ff', '\uff5e', '😀', '𐀀')
  const text = fc.string({ unit, maxLength: 8 })
  fc.assert(
    fc.property(text, text, (a, b) => {
      const order = compareBytes(sortBytes('string', a), sortBytes('string', b))
      expect(Math.sign(compareValues(a, b))).toBe(Math.sign(order))
    }),
    { seed: 1, numRuns: 500 },
  )
})
