import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { applyEdit, packageRoot } from '../../sim/mutant-hunt.ts'
import { mutants } from '../../sim/mutants.ts'

test('every planted bug fits the sources exactly once', async () => {
  const root = await packageRoot()
  for (const mutant of mutants) {
    for (const edit of mutant.edits) {
      const source = await readFile(join(root, edit.file), 'utf8')
      expect(applyEdit(source, edit), mutant.id).not.toBe(source)
    }
  }
})

test('a patch that does not fit, or fits twice, fails', () => {
  const edit = { file: 'a file', find: 'one', replace: 'two' }
  expect(applyEdit('just one here', edit)).toBe('just two here')
  expect(() => applyEdit('nothing', edit)).toThrow('not found in a file')
  expect(() => applyEdit('one and one', edit)).toThrow('twice in a file')
})

test('the bank has the bugs of what is built, a canary and a control', () => {
  const ids = mutants.map((mutant) => mutant.id)
  const expected = ['control', 'canary', 'G01', 'G02', 'G03', 'G05', 'G07', 'G08', 'G17', 'G18']
  expect(ids).toEqual(expect.arrayContaining(expected))
  expect(new Set(ids).size).toBe(ids.length)
})
