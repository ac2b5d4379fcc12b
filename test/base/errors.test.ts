/** The closed list of error codes, and assertions. */
import { expect, test } from 'vitest'
import { AssertionError, assert, present, unreachable } from '../../src/base/assert.ts'
import { StoreError, isStoreErrorCode, retryByCode } from '../../src/base/errors.ts'

test('errors: the list of codes is closed', () => {
  expect(Object.keys(retryByCode).toSorted()).toEqual([
    'already-exists',
    'closed',
    'contention',
    'corrupt',
    'expired',
    'forbidden',
    'immutable',
    'internal',
    'invalid',
    'not-found',
    'overloaded',
    'schema-mismatch',
    'snapshot-too-old',
    'timeout',
    'too-large',
    'unavailable',
    'unknown-outcome',
  ])
})

test('errors: only a code of the list is a code, whatever an object inherits', () => {
  expect(isStoreErrorCode('timeout')).toBe(true)
  const wrong = ['', 'Timeout', 'toString', 'constructor', '__proto__', 'hasOwnProperty']
  expect(wrong.filter(isStoreErrorCode)).toEqual([])
})

test('errors: only what certainly did nothing is safe to send again unasked', () => {
  const safe = Object.entries(retryByCode).filter(([, retry]) => retry === 'safe')
  expect(safe.map(([code]) => code)).toEqual(['contention', 'unavailable', 'overloaded'])
  expect(retryByCode['unknown-outcome']).toBe('check-first')
  expect(retryByCode.timeout).toBe('check-first')
})

test('errors: an error carries its code, what a retry may do, detail and cause', () => {
  const cause = new Error('below')
  const error = new StoreError('too-large', 'Make it smaller.', { actual: 7 }, { cause })
  expect(error).toMatchObject({
    name: 'StoreError',
    code: 'too-large',
    retry: 'never',
    message: 'Make it smaller.',
    detail: { actual: 7 },
  })
  expect(error.cause).toBe(cause)
  expect(error).toBeInstanceOf(Error)
})

test('assert: stops with the rule as it stands, and only then', () => {
  expect(() => assert(false, 'PAX-0: no such rule')).toThrow(
    new AssertionError('PAX-0: no such rule'),
  )
  expect(() => assert(true, 'PAX-0: no such rule')).not.toThrow()
})

test('assert: a present value may be empty but not absent', () => {
  expect([present(0, 'x'), present('', 'x'), present(false, 'x')]).toEqual([0, '', false])
  expect(() => present(undefined, 'x: it is absent')).toThrow('x: it is absent')
})

test('assert: a case that cannot be stops when it is reached', () => {
  // @ts-expect-error a union with a member left compiles no call of it
  expect(() => unreachable('left')).toThrow('unreachable: "left"')
})
