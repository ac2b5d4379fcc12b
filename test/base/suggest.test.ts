import { expect, test } from 'vitest'
import { unknownWord } from '../../src/base/suggest.ts'

test.each([
  ['lisen', ['listen', 'nodes'], 'unknown field "lisen"; did you mean "listen"?'],
  ['x', ['listen', 'nodes'], 'unknown field "x"; known: listen, nodes'],
  ['x', [], 'unknown field "x"; there is none'],
])('an unknown word %j beside %j reads %j', (word, known, words) => {
  expect(unknownWord('field', word, known)).toBe(words)
})
