/**
 * SCH-3: one rule decides which values a property may have, and the same ones as its default; see
 * `schema/default.ts` and `src/tables/scalar.ts`.
 */
import { losesDigitsAsFloat } from '../../src/base/decimal.ts'
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { fitByKind, decodeLiteral } from '../../schema/default.ts'
import { scalarKinds } from '../../schema/model.ts'
import { checkScalar } from '../../src/tables/scalar.ts'

const literals = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({ unit: fc.constantFrom('\ud800', 'a', '\0', '\udc00', '\u{1f600}') }),
  fc.boolean(),
  fc.double(),
  fc.integer(),
  fc.maxSafeInteger(),
  fc.bigInt({ min: -(2n ** 65n), max: 2n ** 65n }).map(String),
  fc.uuid(),
  fc.stringMatching(/^(?:[0-9a-f]{2}){0,8}$/),
  fc.constantFrom(-0, 3.5e38, -3.4e38, 2 ** 31, -(2 ** 31), 2 ** 53, -(2 ** 63)),
)

function isValue(kind: (typeof scalarKinds)[number], literal: string | number | boolean): boolean {
  try {
    checkScalar(kind, decodeLiteral(kind, literal), 'x')
    return true
  } catch {
    return false
  }
}

/** A schema of before may have such a default, and rows are not given it as a value. */
function isLost(kind: string, literal: string | number | boolean): boolean {
  return kind === 'float' && typeof literal === 'number' && losesDigitsAsFloat(literal)
}

test('SCH-3: a default fits where a row with its value would be taken', () => {
  const seen = new Set<string>()
  fc.assert(
    fc.property(fc.constantFrom(...scalarKinds), literals, (kind, literal) => {
      const fits = fitByKind[kind].fits(literal)
      if (fits) seen.add(kind)
      // A default has a rule of its own: one form for each value.
      if (fits && !isLost(kind, literal)) expect(isValue(kind, literal)).toBe(true)
      const isOneForm = !['json', 'sequence', 'int64', 'bytes'].includes(kind)
      if (isOneForm && !fits) expect(isValue(kind, literal)).toBe(false)
    }),
    { numRuns: 5_000, seed: 3 },
  )
  expect(seen).toEqual(new Set(scalarKinds.filter((kind) => !['json', 'sequence'].includes(kind))))
})
