/**
 * The targets that the texts of the tree point at are there, and each check finds the fault it is there for.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, test } from 'vitest'
import * as rules from './reference-rules.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const planted: string[] = []

afterEach(() => {
  for (const folder of planted.splice(0)) rmSync(folder, { recursive: true })
})

function plant(files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), 'trilithon-texts-'))
  planted.push(folder)
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  return folder
}

test('every cited rule is stated once', () => {
  expect(rules.checkCitedRules(root)).toEqual([])
})

test('every path in back ticks is of a file', () => {
  expect(rules.checkPaths(root)).toEqual([])
})

test('no text cites a page outside the repository', () => {
  expect(rules.checkOutsidePages(root)).toEqual([])
})

test('a rule that is stated twice, or cited and stated nowhere, is found', () => {
  const tree = plant({
    'src/a/SPEC.md': '| **ONE-1** | a |\n| **TWO-1** | b |\n',
    'src/b/SPEC.md': '| **ONE-1** | c |\n',
    'src/a/a.ts': '// TWO-1, TWO-2, and UTF-8\n',
    'test/a.test.ts': "test('TWO-3: holds', () => expect(rule).toBe('TWO-9'))\n",
  })
  expect(rules.checkCitedRules(tree)).toEqual([
    'ONE-1: stated in src/a/SPEC.md and src/b/SPEC.md',
    'src/a/a.ts: cites TWO-2, which no SPEC.md states',
    'test/a.test.ts: cites TWO-3, which no SPEC.md states',
  ])
})

test('a path of a file that is gone is found, in pages and comments, and not in code', () => {
  const tree = plant({
    'src/a/SPEC.md': '`a.ts`, `../b/b.ts`, `b/b.ts`, `src/b/b.ts`, `gone.ts`\n',
    'src/a/a.ts': "/** `b.ts` */\nexport const a = '`no.ts`' // `../b/b.ts`\n",
    'src/b/b.ts': '',
    'src/docs/page.md': '`calendar.ts`\n',
  })
  expect(rules.checkPaths(tree)).toEqual([
    'src/a/a.ts: `b.ts` is not there',
    'src/a/SPEC.md: `gone.ts` is not there',
  ])
})

test('a citation of a page outside the repository is found, over lines, too', () => {
  const tree = plant({
    'src/a/a.ts': '/**\n * Rows lie together (STORE\n * "Layout").\n */\n',
    'src/a/b.ts': '// as in PERFORMANCE lesson 3\n',
    'src/a/SPEC.md': 'The design notes say 5 ms. HTTP says "No".\n',
  })
  expect(rules.checkOutsidePages(tree)).toEqual([
    'src/a/a.ts: cites STORE "Layout", which is not in the repository',
    'src/a/b.ts: cites PERFORMANCE lesson 3, which is not in the repository',
    'src/a/SPEC.md: cites design notes, which is not in the repository',
  ])
})
