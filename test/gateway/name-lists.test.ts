/** Lists of names in a query are understood as they stand, or refused. */
import { expect, test } from 'vitest'
import { columnListProblem, nameListProblem } from '../../src/gateway/name-lists.ts'

test('a name that is given twice, or is empty, is refused', () => {
  expect(nameListProblem('select', ['a', 'b'])).toBeUndefined()
  expect(nameListProblem('select', ['n', 'a', 'n'])).toBe('select names "n" twice')
  expect(nameListProblem('select', ['a', ''])).toBe('select has an empty name between commas')
})

test('the column list "all" stands alone', () => {
  expect(columnListProblem('columns', ['all'])).toBeUndefined()
  expect(columnListProblem('columns', ['BASE', 'STATUS'])).toBeUndefined()
  const text = 'columns is all, or names of columns: all goes with no others'
  expect(columnListProblem('columns', ['all', 'BASE'])).toBe(text)
  expect(columnListProblem('columns', ['BASE', 'BASE'])).toBe('columns names "BASE" twice')
})
