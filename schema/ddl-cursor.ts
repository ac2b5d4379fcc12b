/**
 * Where the parser stands in the tokens. `take…` goes on when the token is there and says whether it
 * was; `need…` fails when it is not. The cursor remembers the tokens that it looked for in vain at
 * one place, which gives `expected , or ), found ;`.
 *
 * After a failure nothing is there any more, so that the parser runs out by itself; `recover` goes
 * on with the next statement.
 */
import { tokenize, type Token } from './ddl-token.ts'
import { nearest } from '../src/base/suggest.ts'
import type { SchemaProblem, SchemaProblemKind, Span } from './problem.ts'
import { isReserved } from './words.ts'

/** A name in the text; empty after a failure. */
export interface Name {
  readonly text: string
  readonly span: Span
}

const foundCharsMax = 40

export class Cursor {
  readonly #tokens: readonly Token[]
  readonly #end: Token
  #at = 0
  #problem: SchemaProblem | undefined
  /** Phrases that would have been taken here. */
  #expected: string[] = []

  constructor(text: string) {
    this.#tokens = tokenize(text)
    this.#end = { kind: 'end', text: '', span: { start: text.length, end: text.length } }
  }

  /** The token here; the end when there was a failure. */
  get here(): Token {
    return this.#problem === undefined ? this.#look(0) : this.#end
  }

  get problem(): SchemaProblem | undefined {
    return this.#problem
  }

  get isAtEnd(): boolean {
    return this.here.kind === 'end'
  }

  /** From `start` to the last token taken. */
  spanFrom(start: number): Span {
    const end = this.#tokens[this.#at - 1]?.span.end ?? start
    return { start, end: Math.max(start, end) }
  }

  takeMark(mark: string): boolean {
    return this.#take(`"${mark}"`, this.here.kind === 'mark' && this.here.text === mark)
  }

  /** Words of the language, one after another; capital letters and small ones are the same. */
  takeWords(phrase: string): boolean {
    const [first = '', ...rest] = phrase.split(' ')
    if (!this.#take(phrase, isWord(this.here, first))) return false
    for (const word of rest) {
      if (!this.#take(word, isWord(this.here, word))) this.failHere()
    }
    return true
  }

  needMark(mark: string): void {
    if (!this.takeMark(mark)) this.failHere()
  }

  needWords(phrase: string): void {
    if (!this.takeWords(phrase)) this.failHere()
  }

  /** The first of `phrases` that is here. */
  needOneOf<Phrase extends string>(phrases: readonly Phrase[]): Phrase | undefined {
    const found = phrases.find((phrase) => this.takeWords(phrase))
    if (found === undefined) this.failHere()
    return found
  }

  /** A name. Words of the language are names when nothing else can be meant; they are refused later. */
  needName(what: string): Name {
    const token = this.here
    const isMissing = isReserved(token.text) && this.#look(1).kind === 'word'
    if (!this.#take(what, token.kind === 'word' && !isMissing)) this.failHere()
    return { text: token.text, span: token.span }
  }

  takeToken(what: string, kind: Token['kind']): Token | undefined {
    const token = this.here
    return this.#take(what, token.kind === kind) ? token : undefined
  }

  needToken(what: string, kind: Token['kind']): Token {
    const token = this.here
    if (this.takeToken(what, kind) === undefined) this.failHere()
    return token
  }

  /** Steps over whatever is here. */
  skip(): void {
    this.#take('', true)
  }

  fail(kind: SchemaProblemKind, span: Span, message: string, hint?: string): void {
    this.#problem ??= { kind, message, at: [], span, ...(hint !== undefined && { hint }) }
  }

  /** The token that is here is none of those that the parser looked for. */
  failHere(): void {
    if (this.#problem !== undefined) return
    const token = this.here
    const message = `expected ${listed(this.#expected)}, found ${foundText(token)}`
    const words = this.#expected.map((phrase) => phrase.split(' ')[0] ?? '')
    const guess = token.kind === 'word' ? nearest(token.text, words) : undefined
    const hint = guess === undefined ? undefined : `did you mean ${guess}?`
    this.fail('syntax', token.span, message, hint)
  }

  /** Goes on at the next `CREATE`; gives the failure. */
  recover(): SchemaProblem | undefined {
    const problem = this.#problem
    this.#problem = undefined
    while (!this.isAtEnd && !isWord(this.here, 'create')) this.skip()
    return problem
  }

  #look(ahead: number): Token {
    return this.#tokens[this.#at + ahead] ?? this.#end
  }

  #take(what: string, isHere: boolean): boolean {
    if (this.#problem !== undefined) return false
    if (!isHere) {
      if (!this.#expected.includes(what)) this.#expected.push(what)
      return false
    }
    this.#at += 1
    this.#expected = []
    return true
  }
}

function isWord({ kind, text }: Token, word: string): boolean {
  return kind === 'word' && text.toLowerCase() === word.toLowerCase()
}

function foundText({ kind, text }: Token): string {
  if (kind === 'end') return 'the end of the text'
  if (kind === 'mark') return `"${text}"`
  if (kind === 'bad') return text
  return text.length > foundCharsMax ? `${text.slice(0, foundCharsMax)}…` : text
}

/** `a, b or c`. */
function listed(words: readonly string[]): string {
  if (words.length < 2) return words.join('')
  return `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`
}
