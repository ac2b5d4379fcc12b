/** The bound of staleness of a read, as programs give it. */
import { expect, test } from 'vitest'
import { fromOf } from '../../src/client/group-arguments.ts'
import { readFrom } from '../../src/tables/rules.ts'

const least = 'a whole number of milliseconds from 100'

test('a level may be a bound of staleness, from 100 milliseconds', () => {
  expect(readFrom('db.read', { maxStalenessMs: 100 })).toEqual({
    ...{ kind: 'bounded', maxStalenessMs: 100 },
  })
  expect(() => readFrom('db.read', { maxStalenessMs: 99 })).toThrow(least)
  expect(() => readFrom('db.read', { maxStalenessMs: 100.5 })).toThrow(least)
  const both = { maxStalenessMs: 100, at: 1 }
  expect(() => readFrom('db.read', both)).toThrow('not both')
})

test('a bound of staleness goes with no other place to read from', () => {
  const bounded = { kind: 'bounded', maxStalenessMs: 500 }
  expect(fromOf('groups.view', bounded)).toEqual(bounded)
  expect(() => fromOf('groups.view', { kind: 'bounded' })).toThrow(least)
  expect(() => fromOf('groups.view', { kind: 'current', maxStalenessMs: 500 })).toThrow("'bounded'")
  expect(() => fromOf('groups.view', { ...bounded, timestamp: 5 })).toThrow('no timestamp')
})
