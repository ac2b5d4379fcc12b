/**
 * The problems that a schema may have, in one form for text and TypeScript. `kind` is for programs
 * and stays the same; `message` names the table and property, so it can be read without the text;
 * `at` leads to the place in the draft (`['tables', 1, 'key', 0]`), from which the text's parser
 * knows the line.
 */
import { nearest } from '../src/base/suggest.ts'
import { wordsFor } from '../src/base/words.ts'

export type SchemaProblemKind =
  | 'syntax'
  | 'unknown-type'
  | 'too-long'
  | 'format'
  | 'bad-name'
  | 'reserved-name'
  | 'duplicate-name'
  | 'too-many'
  | 'empty'
  | 'missing-key'
  | 'unknown-property'
  | 'unknown-table'
  | 'unknown-field'
  | 'duplicate-part'
  | 'bad-key-part'
  | 'bad-default'
  | 'bad-sequence'
  | 'bad-direction'
  | 'bad-scatter'
  | 'missing-group'
  | 'not-a-root'
  | 'bad-group-key'
  | 'bad-parent'
  | 'wrong-root'
  | 'bad-index-part'
  | 'bad-storing'
  | 'bad-option'
  | 'bad-expiry'
  | 'bad-placement'

export type SchemaPath = readonly (string | number)[]

/** A stretch of text: offsets in characters from its start. */
export interface Span {
  readonly start: number
  readonly end: number
}

export interface SchemaProblem {
  readonly kind: SchemaProblemKind
  readonly message: string
  /** Advice on how to mend it. */
  readonly hint?: string
  readonly at: SchemaPath
  /** Only where the schema is text. */
  readonly span?: Span
}

/** Thrown where a schema is declared in TypeScript: it is the program that is wrong. */
export class SchemaError extends Error {
  override readonly name = 'SchemaError'
  readonly code = 'invalid'
  readonly problems: readonly SchemaProblem[]

  constructor(subject: string, problems: readonly SchemaProblem[]) {
    super(
      problems.length === 1 ? `${subject}: ${joinProblems(problems)}` : longText(subject, problems),
    )
    this.problems = problems
  }
}

function longText(subject: string, problems: readonly SchemaProblem[]): string {
  return `${subject} has ${problems.length} problems:\n${joinProblems(problems)}`
}

function joinProblems(problems: readonly SchemaProblem[]): string {
  return problems.map(problemText).join('\n')
}

/** `table Photo: …; did you mean photo_id?` */
export function problemText(problem: SchemaProblem): string {
  checkMessage('problemText', problem)
  const { message, hint } = problem
  return hint === undefined ? message : `${message}; ${hint}`
}

/** Of a problem or a change that a program hands in; throws `SchemaError`. */
export function checkMessage(call: string, given: unknown): void {
  if (typeof given === 'object' && given !== null && hasText(given)) return
  const message = `it is given ${wordsFor(given)}; expected an object with a message, as this library gives it`
  throw new SchemaError(call, [{ kind: 'bad-option', message, at: [] }])
}

/** A getter, or the handler of a proxy, may throw. */
function hasText(given: object): boolean {
  try {
    return typeof Reflect.get(given, 'message') === 'string'
  } catch {
    return false
  }
}

/** `did you mean photo_id?`, the list of what is there when that is short, or undefined. */
export function didYouMean(word: string, known: readonly string[]): string | undefined {
  const guess = nearest(word, known)
  if (guess !== undefined) return `did you mean ${guess}?`
  return known.length > 0 && known.length <= knownMax ? `there is ${known.join(', ')}` : undefined
}

const knownMax = 12
