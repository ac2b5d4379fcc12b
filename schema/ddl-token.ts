/**
 * The words and marks of a schema's text. Comments (`--` and `//` to the end of a line, however that is
 * written, and between slash-stars) and blanks only part them. Text that cannot be read becomes a token as
 * well, with the reason; the parser reports it when it gets there.
 */
import { syntaxProblemsMax } from './limits.ts'
import type { Span } from './problem.ts'

export interface Token {
  readonly kind: 'word' | 'number' | 'string' | 'mark' | 'bad' | 'end'
  /** As it stands in the text; of a bad one, what is wrong with it. */
  readonly text: string
  readonly span: Span
}

// Names may hold more here than is allowed, so that a wrong one is refused as a name, in whole.
const tokenPattern =
  /(?<blank>\s+|--[^\n\r]*|\/\/[^\n\r]*|\/\*[^]*?\*\/)|(?<number>[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\p{L}\p{N}_$]))|(?<word>[\p{L}\p{N}_$](?:[\p{L}\p{N}_$]|-(?!-))*)|(?<string>"(?:[^"\\\n]|\\.)*")|(?<mark>[{}(),;.])/uy

/** All tokens of a text; the last one is its end, or where it became hopeless. */
export function tokenize(text: string): readonly Token[] {
  const tokens: Token[] = []
  let badCount = 0
  for (let at = 0; at < text.length && badCount < syntaxProblemsMax;) {
    tokenPattern.lastIndex = at
    const match = tokenPattern.exec(text)
    const token = match === null ? badToken(text, at) : toToken(match.groups ?? {}, at)
    if (token !== undefined) tokens.push(token)
    if (token?.kind === 'bad') badCount += 1
    at = token?.span.end ?? tokenPattern.lastIndex
  }
  const span = { start: text.length, end: text.length }
  return [...tokens, { kind: 'end', text: '', span }]
}

function toToken(groups: Readonly<Record<string, string>>, start: number): Token | undefined {
  for (const kind of ['word', 'mark', 'number', 'string'] as const) {
    const text = groups[kind]
    if (text !== undefined) return { kind, text, span: { start, end: start + text.length } }
  }
  return undefined
}

function badToken(text: string, start: number): Token {
  const token = (reason: string, end: number): Token => {
    return { kind: 'bad', text: reason, span: { start, end } }
  }
  if (text.startsWith('/*', start)) return token('a comment without its end */', start + 2)
  const character = String.fromCodePoint(text.codePointAt(start) ?? 0)
  const end = start + character.length
  if (character === '"') return token('a text without its closing " in the same line', end)
  if (character === "'") return token("' in front of a text; texts stand in double quotes", end)
  return token(`${JSON.stringify(character)}, which means nothing here`, end)
}
