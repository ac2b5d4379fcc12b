/**
 * Symptoms of sentences that have to be read twice, as functions over a text that answer with what they
 * found. The rule is: subject, verb, object, and the actor is named (proposer, holder, client).
 */
import { readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { filesUnder, titlesIn } from './architecture-rules.ts'

export interface Symptom {
  readonly path: string
  readonly kind: string
  readonly words: string
}

const verb =
  'is|are|was|were|has|have|had|does|do|can|may|must|will|would|needs?|comes?|came|goes|went|gets?|got|gives?|gave|takes?|took|asks?|asked|says?|said|waits?|waited|wants?|writes?|wrote|reads?|holds?|held|knows?|knew|lists?|sees?|saw|stands?|stood|keeps?|kept|makes?|made|serves?|begins?|began|fills?|tells?|told|lacks?|leads?|led|lost|loses?|meets?|met|looks?|calls?|fails?|failed|stops?|proposes?|proposed|accepted|sends?|sent|runs?|ran|lives?|died'

/**
 * `so many`, `so long as` and the like count where no `that` or `as to` follows: there they are a comparison
 * without its second half.
 */
const forms: Readonly<Record<string, RegExp>> = {
  'a clause without a head opens a sentence': new RegExp(
    `(?:^|[.:;] |, and |, but )(?:who|what)(?:ever)? (?:[a-z]+ )?(?:${verb})\\b`,
    'gi',
  ),
  'a comparison without its second half': /\bso (?:many|often|long|much|few)\b(?! that\b)/gi,
  'a passive past without its actor': /\b(?:is|are|was|were) (?:told|gone by|asked)\b/gi,
  'a pronoun for an actor': /\b(?:somebody|whoever|anybody|nobody)\b/gi,
}

/** A comment names its subject first: `What a node sends` makes the reader look for it. A question is none. */
const headless = /^(?:what|who)(?:ever)?\b(?![^.:;]*\?)/i

/** The symptoms of a comment: those of any text, and how it opens. */
export function symptomsOfComment(text: string): ReturnType<typeof symptomsIn> {
  const opening = headless.exec(text.trim())
  const found = symptomsIn(text)
  if (opening === null) return found
  const words = text.trim().replaceAll(/\s+/g, ' ').slice(0, 40)
  return [{ kind: 'a clause without a head opens a comment', words }, ...found]
}

/** Each symptom in a text, line breaks aside. */
export function symptomsIn(text: string): { readonly kind: string; readonly words: string }[] {
  const flat = text.replaceAll(/\s+/g, ' ').trim()
  return Object.entries(forms).flatMap(([kind, form]) =>
    [...flat.matchAll(form)].map((match) => ({ kind, words: match[0].trim() })),
  )
}

/** Titles of tests, as those read them whose test has failed. */
export function symptomsOfTitles(root: string): readonly Symptom[] {
  return filesUnder(root, 'test', '.test.ts')
    .filter((path) => basename(path) !== 'english.test.ts')
    .flatMap((path) =>
      titlesIn(readFileSync(join(root, path), 'utf8'))
        .map((title) => title.replace(/^(?:[A-Z]+-?\d+[, ]*)+: /, ''))
        .flatMap((title) => symptomsIn(title))
        .map((found) => ({ path, ...found })),
    )
}

/** Comments of sources and tests. */
export function symptomsOfComments(root: string): readonly Symptom[] {
  return ['src', 'sim', 'schema', 'bench', 'test']
    .flatMap((folder) => filesUnder(root, folder, '.ts'))
    .filter((path) => !path.startsWith('test/english'))
    .flatMap((path) =>
      commentsOf(readFileSync(join(root, path), 'utf8'))
        .flatMap((comment) => symptomsOfComment(comment))
        .map((found) => ({ path, ...found })),
    )
}

/** A block comment each; lines of `//` that follow one another are one. */
function commentsOf(text: string): string[] {
  const blocks = [...text.matchAll(/\/\*\*?([^]*?)\*\//g)].map((match) =>
    (match[1] ?? '').replaceAll(/^\s*\* ?/gm, ''),
  )
  const lines = [...text.matchAll(/(?:^\s*\/\/.*\n)+/gm)].map((match) =>
    match[0].replaceAll(/^\s*\/\/ ?/gm, ''),
  )
  return [...blocks, ...lines]
}

/** Pages: what stands in blocks of code is left out. */
export function symptomsOfPages(root: string): readonly Symptom[] {
  return ['src', 'sim', 'schema', 'bench']
    .flatMap((folder) => filesUnder(root, folder, '.md'))
    .concat('README.md')
    .flatMap((path) => {
      const prose = readFileSync(join(root, path), 'utf8').replaceAll(/^```[^]*?^```/gm, '')
      return symptomsIn(prose).map((found) => ({ path, ...found }))
    })
}
