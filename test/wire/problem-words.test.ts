/** Two codes have one word in frames and rows: that which earlier builds of the protocol know. */
import { expect, test } from 'vitest'
import { pack, unpack } from '../../src/base/pack.ts'
import { problem, type Problem } from '../../src/base/problem.ts'
import {
  bufferKey,
  decodeRejected,
  encodeRejected,
  rejectedTopic,
} from '../../src/cells/buffer-rows.ts'
import { packProblem, problem as readProblem } from '../../src/wire/client/client-fields.ts'

const lost = problem('contention', 'others were faster', { attempts: 21 })
const other = problem('immutable', 'another body is there')

function sent(of: Problem): Problem {
  return readProblem(unpack(pack(packProblem(of))))
}

test('a problem keeps its code over a link, with its detail', () => {
  expect([lost, other].map(sent)).toEqual([lost, other])
  const full = problem('overloaded', 'no room', { retryAfterMs: 7 })
  expect(sent(full)).toEqual(full)
})

test('an earlier build reads both codes as the one that it knows', () => {
  const words = [lost, other].map((of) => unpack(pack(packProblem(of))))
  expect(words).toEqual([
    ['conflict', 'others were faster', null, null, null, null, 'contention', 21],
    ['conflict', 'another body is there', null, null, null, null, 'immutable', null],
  ])
})

test('a conflict that an earlier build tells of is not sent again', () => {
  const told = ['conflict', 'another body is there', null, null, null, null, null, null]
  expect(readProblem(told)).toEqual(other)
  const odd = ['conflict', 'another body is there', null, null, null, null, 'odd', null]
  expect(readProblem(odd)).toEqual(other)
})

test('BUF-2: a rejected cell of an earlier build is listed with its reason', () => {
  const name = { rowKey: '22222222-2222-4222-8222-222222222221', column: 'BASE', refKey: 1 }
  const key = bufferKey(rejectedTopic, name, Buffer.alloc(8))
  const body = Buffer.from(pack(1))
  const row = { ...name, body, bufferedAt: 5, reason: other }
  const value = encodeRejected(row)
  expect(unpack(value)).toEqual([body, 5, 'conflict', 'another body is there'])
  expect(decodeRejected(key, value)).toEqual(row)
  const odd = pack([body, 5, 'no-code', ''])
  expect(() => decodeRejected(key, odd)).toThrow('of no known form')
})
