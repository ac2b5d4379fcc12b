/** Problem details of each code. */
import { expect, test } from 'vitest'
import { isStoreErrorCode, retryByCode } from '../../src/base/errors.ts'
import { problem } from '../../src/base/problem.ts'
import { problemResponse } from '../../src/gateway/problems.ts'

const codes = Object.keys(retryByCode).filter(isStoreErrorCode)

test('an answer to a request that may be sent again says when', () => {
  const told = codes.filter((code) =>
    problemResponse(problem(code, ''), '/').headers.has('retry-after'),
  )
  expect(told.toSorted()).toEqual(['closed', 'contention', 'overloaded', 'unavailable'])
  const safe = codes.filter((code) => retryByCode[code] === 'safe')
  expect(safe.filter((code) => !told.includes(code))).toEqual([])
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
