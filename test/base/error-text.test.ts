import { expect, test } from 'vitest'
import { errorText } from '../../src/base/error-text.ts'

class Odd extends Error {
  override get message(): string {
    throw new Error('no message for you')
  }
}

const symbolic = Object.assign(new Error('x'), { message: Symbol('s') })

test.each([
  [new TypeError('odd'), 'TypeError: odd'],
  ['text', 'text'],
  ['  ', 'it threw an empty text'],
  [undefined, 'it threw undefined'],
  [17n, 'it threw 17'],
  [Symbol('s'), 'it threw Symbol(s)'],
  [Object.create(null), 'it threw what has no words'],
  [symbolic, 'it threw what has no words'],
  [new Odd(), 'it threw what has no words'],
  [
    new Proxy(
      {},
      {
        getPrototypeOf: () => {
          throw new Error('no')
        },
      },
    ),
    'it threw what has no words',
  ],
  ['half \ud83d pair', 'half \ufffd pair'],
])('what is thrown has words: %#', (thrown, text) => {
  expect(errorText(thrown, 100)).toBe(text)
})

test.each([10, 11, 12, 13])('words are cut between whole characters: at %i', (most) => {
  const text = errorText('🙂'.repeat(400), most)
  expect(text.length).toBeLessThanOrEqual(most)
  expect(text).toBe('🙂'.repeat(Math.floor(most / 2)))
})
