import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { microsOf } from '../../src/cells/datetime.ts'

test('dates and times are what the machine takes them for', () => {
  const noInvalidDate = {
    noInvalidDate: true,
    min: new Date('0001-01-01'),
    max: new Date('9999-12-31'),
  }
  fc.assert(
    fc.property(fc.date(noInvalidDate), (date) => {
      expect(microsOf(date.toISOString())).toBe(date.getTime() * 1000)
    }),
    { seed: 7, numRuns: 500 },
  )
  expect(microsOf('2016-02-29')).toBe(Date.parse('2016-02-29') * 1000)
  expect(microsOf('2016-02-29 01:02:03.000004+05:30')).toBe(
    Date.parse('2016-02-28T19:32:03Z') * 1000 + 4,
  )
  const bad = [
    '2015-02-29',
    '2016-13-01',
    '2016-01-00',
    '2016-01-01T24:00:00Z',
    '2016-01-01T00:00',
    'x',
  ]
  expect(bad.map(microsOf)).toEqual(bad.map(() => undefined))
})
