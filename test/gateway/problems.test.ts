/** Problem details of each code. */
import { expect, test } from 'vitest'
import { isStoreErrorCode, retryByCode } from '../../src/base/errors.ts'
import { problem } from '../../src/base/problem.ts'
import { problemResponse } from '../../src/gateway/problems.ts'
import { notServing } from '../../src/node/refusals.ts'

const codes = Object.keys(retryByCode).filter(isStoreErrorCode)

test('an answer to a request that may be sent again says when', () => {
  const told = codes.filter((code) =>
    problemResponse(problem(code, ''), '/').headers.has('retry-after'),
  )
  expect(told.toSorted()).toEqual(['closed', 'contention', 'overloaded', 'unavailable'])
  const safe = codes.filter((code) => retryByCode[code] === 'safe')
  expect(safe.filter((code) => !told.includes(code))).toEqual([])
})

test('an answer with a time to ask again does not say never', async () => {
  const answers = codes.map((code) => problemResponse(problem(code, 'in words'), '/v1'))
  const bodies = await Promise.all(answers.map((answer) => answer.json()))
  const told = bodies.filter((_, place) => answers[place]?.headers.has('retry-after'))
  expect(told).toMatchObject(told.map(() => ({ retry: 'safe' })))
  expect(told).toContainEqual(expect.objectContaining({ code: 'closed', retry: 'safe' }))
  // A client of the library that is closed stays so.
  expect(retryByCode.closed).toBe('never')
  const stopping = notServing('draining', 'node')
  expect(stopping.headers.get('retry-after')).toBe('1')
  expect(await stopping.json()).toMatchObject({ code: 'closed', retry: 'safe' })
})

test('contention and another content are one status, and two codes', async () => {
  const answers = (['contention', 'immutable'] as const).map((code) =>
    problemResponse(problem(code, 'in words', { attempts: 3 }), '/v1'),
  )
  const bodies = await Promise.all(answers.map((answer) => answer.json()))
  const same = { status: 409, detail: 'in words', instance: '/v1', attempts: 3 }
  expect(answers.map(({ status }) => status)).toEqual([409, 409])
  expect(bodies).toMatchObject([
    { ...same, type: 'urn:trilithon:problem:contention', retry: 'safe' },
    { ...same, type: 'urn:trilithon:problem:immutable', retry: 'never' },
  ])
})
