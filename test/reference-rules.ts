/**
 * The targets that the texts of the tree point at, as functions over a root folder that answer with
 * complaints: rules that are cited and stated nowhere or twice, paths of files that are not there, and pages
 * of other places.
 */
import { existsSync, readFileSync } from 'node:fs'
import { basename, dirname, join, posix } from 'node:path'
import { filesUnder, statedRules, titlesIn } from './architecture-rules.ts'

/** They look like rules, and are names of standards. */
const standards = /^(?:UTF|SHA|CRC|ISO|RFC|P|SSH)-/

/** Tests that plant trees and rules of their own. */
const plantingTests = new Set(['architecture.test.ts', 'references.test.ts'])

const namedRule = /\b[A-Z]{3,}-\d+\b/g

/** Every rule that code, pages or titles of tests cite is stated, once, in a row of a SPEC.md. */
export function checkCitedRules(root: string): string[] {
  const stated = new Map<string, string[]>()
  for (const { spec, rule } of statedRules(root)) {
    stated.set(rule, [...(stated.get(rule) ?? []), spec])
  }
  const twice = [...stated]
    .filter(([, specs]) => specs.length > 1)
    .map(([rule, specs]) => `${rule}: stated in ${specs.join(' and ')}`)
  const unknown = textsOf(root).flatMap(({ path, text }) =>
    [...new Set(text.match(namedRule))]
      .filter((rule) => !stated.has(rule) && !standards.test(rule))
      .map((rule) => `${path}: cites ${rule}, which no SPEC.md states`),
  )
  return [...twice, ...unknown]
}

/** Sources and pages as they are; of a test its titles alone, since rules in its data are made up. */
function textsOf(root: string): { readonly path: string; readonly text: string }[] {
  const sources = ['src', 'sim', 'schema', 'bench'].flatMap((folder) =>
    ['.ts', '.md'].flatMap((ending) => filesUnder(root, folder, ending)),
  )
  const tests = filesUnder(root, 'test', '.test.ts').filter(
    (path) => !plantingTests.has(basename(path)),
  )
  return [
    ...sources.map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') })),
    ...tests.map((path) => {
      const titles = titlesIn(readFileSync(join(root, path), 'utf8'))
      return { path, text: titles.map((title) => title.split(': ')[0]).join('\n') }
    }),
  ]
}

const quotedPath = /`((?:[\w.-]+\/)*[\w.-]+\.(?:ts|md))`/g

/**
 * Every path in back ticks is of a file: from the folder of the text, from the root, or from `src` or
 * `sim`. Pages of `src/docs` are left out: they name files of their readers.
 */
export function checkPaths(root: string): string[] {
  const texts = ['src', 'sim', 'schema', 'bench', 'test']
    .flatMap((folder) => ['.ts', '.md'].flatMap((ending) => filesUnder(root, folder, ending)))
    .filter((path) => !path.startsWith('src/docs/') && !plantingTests.has(basename(path)))
  return texts.flatMap((path) => {
    const text = readFileSync(join(root, path), 'utf8')
    const prose = path.endsWith('.md') ? text : commentsOf(text)
    return [...prose.matchAll(quotedPath)]
      .map((match) => match[1] ?? '')
      .filter((named) => !isThere(root, dirname(path), named))
      .map((named) => `${path}: \`${named}\` is not there`)
  })
}

function isThere(root: string, folder: string, named: string): boolean {
  return [folder, '.', 'src', 'sim'].some((from) => existsSync(join(root, posix.join(from, named))))
}

function commentsOf(text: string): string {
  return [...text.matchAll(/\/\*\*[^]*?\*\/|\/\/.*/g)].map((match) => match[0]).join('\n')
}

/** Ways in which a text cites a page that a reader of the repository does not have. */
const elsewhere = [
  /\b[A-Z][A-Z_]{3,} "[A-Z][^"]*"/,
  /\b[A-Z][A-Z_]{3,},? lessons? \d/,
  /\bdesign (?:notes?|pages?)\b/i,
]

/** No text rests on a page outside the repository. */
export function checkOutsidePages(root: string): string[] {
  return textsOf(root).flatMap(({ path, text }) => {
    const flat = text.replaceAll(/\s*\n\s*\*?\s*/g, ' ')
    return elsewhere.flatMap((form) => {
      const cited = form.exec(flat)?.[0]
      return cited === undefined ? [] : [`${path}: cites ${cited}, which is not in the repository`]
    })
  })
}
