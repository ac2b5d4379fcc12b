import { expect, test } from 'vitest'
import { StoreError } from '../../src/base/errors.ts'
import { checkDates, filtersOfGiven } from '../../src/client/filters.ts'

/** As a program in JavaScript calls it. */
function asked(where: unknown): readonly unknown[] {
  return filtersOfGiven(where, 'index ix').filters
}

function datesOf(where: unknown): ReadonlySet<string> {
  return filtersOfGiven(where, 'index ix').dates
}

const date = new Date('2026-01-31T08:30:00.001Z')

test.each<readonly [unknown, readonly unknown[]]>([
  [{ k: 'a' }, [{ field: 'k', comparison: 'eq', value: 'a' }]],
  [{ k: 1n }, [{ field: 'k', comparison: 'eq', value: 1 }]],
  [{ k: 1_700_000_000_123n }, [{ field: 'k', comparison: 'eq', value: 1_700_000_000_123n }]],
  [{ k: -(2n ** 54n) }, [{ field: 'k', comparison: 'eq', value: -(2n ** 54n) }]],
  [
    { k: 'a', n: { gte: 2, lt: 5 } },
    [
      { field: 'k', comparison: 'eq', value: 'a' },
      { field: 'n', comparison: 'gte', value: 2 },
      { field: 'n', comparison: 'lt', value: 5 },
    ],
  ],
  [{ at: date }, [{ field: 'at', comparison: 'eq', value: '2026-01-31T08:30:00.001000Z' }]],
  [{ at: { lt: date } }, [{ field: 'at', comparison: 'lt', value: '2026-01-31T08:30:00.001000Z' }]],
])('%o is asked as it is', (where, filters) => {
  expect(asked(where)).toEqual(filters)
})

const allowed = 'expected a string, a number, true or false'
test.each<readonly [unknown, string]>([
  [{ n: { ge: 2 } }, 'index ix: n: there is no comparison "ge"; there are eq'],
  [{ n: { $gt: 2 } }, 'index ix: n: there is no comparison "$gt"; there are eq'],
  [{ n: { between: [1, 2] } }, `index ix: n: there is no comparison "between"; there are eq`],
  [{ n: { gt: 2, ge: 3 } }, 'index ix: n: there is no comparison "ge"; there are eq'],
  [
    { n: { __proto__: null, constructor: 1 } },
    'index ix: n: there is no comparison "constructor"; there are eq',
  ],
  [{ n: [2] }, `index ix: n is a list; ${allowed}`],
  [{ n: {} }, `index ix: n is empty; ${allowed}`],
  [{ n: null }, `index ix: n is null; ${allowed}`],
  [{ n: undefined }, `index ix: n is absent; ${allowed}`],
  [{ n: { gt: undefined } }, `index ix: n.gt is absent; ${allowed}`],
  [{ n: { gt: null } }, 'index ix: n.gt is null'],
  [{ n: { gt: { gt: 1 } } }, 'index ix: n.gt is an object'],
  [{ n: { gt: [1] } }, 'index ix: n.gt is a list'],
  [{ n: () => 1 }, 'index ix: n is a function'],
  [{ n: new Map() }, 'index ix: n is an object'],
  [{ n: 'a\ud800' }, 'expected a string of whole characters'],
  [{ n: Number.NaN }, 'index ix: n is NaN; expected a finite number'],
  [{ n: { lt: Number.POSITIVE_INFINITY } }, 'index ix: n.lt is Infinity; expected a finite number'],
  [
    { n: new Date(Number.NaN) },
    'index ix: n is an invalid Date; expected a Date of the years 1 to 9999',
  ],
  [{ n: 2n ** 70n }, 'index ix: n is 1180591620717411303424n; expected a bigint of microseconds'],
  [{ n: Symbol('x') }, 'index ix: n is a symbol'],
  ['k', 'index ix: the query is "k"; expected an object of fields'],
  [null, 'index ix: the query is null'],
  [undefined, 'index ix: the query is absent'],
  [[{ k: 'a' }], 'index ix: the query is a list'],
  [
    new Map([['k', 'a']]),
    'index ix: the query is an object of the class Map; expected an object of fields',
  ],
])('%o is refused, and not passed over', (where, words) => {
  let error: unknown
  try {
    asked(where)
  } catch (thrown) {
    error = thrown
  }
  expect(error).toBeInstanceOf(StoreError)
  expect(error).toMatchObject({ code: 'invalid' })
  expect(String(error)).toContain(words)
})

test('a date is a value of datetimes alone', () => {
  const answer = { fields: ['k', 'at'], types: ['string', 'datetime'] } as const
  checkDates(datesOf({ k: 'a', at: { gt: date } }), answer, 'index ix')
  expect(() => checkDates(datesOf({ k: date }), answer, 'index ix')).toThrow(
    'index ix: k is of type string, and a Date is a value of the type datetime',
  )
})
