/** The types of the handles, by the compiler itself: right programs compile, wrong ones do not. */
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { compile, errorsOf, expectedErrors } from '../schema/compiler.ts'

const here = fileURLToPath(new URL('.', import.meta.url))

test('correct programs compile, with the right types', () => {
  expect(compile(here)).toBe('')
})

test('wrong programs fail to compile, each in its place and with words that say why', () => {
  const folder = join(here, 'refused')
  const expected = expectedErrors(folder)
  const errors = errorsOf(compile(folder))
  expect([...errors.keys()].sort()).toEqual(expected.map(([place]) => place).sort())
  for (const [place, words] of expected) expect(errors.get(place), place).toContain(words)
})
