/**
 * Problems as people read them: place, message, the line, and a caret under what is meant.
 *
 *   photos.ddl:9:12: strng is not a type; did you mean string?
 *     9 |   required strng full_url;
 *       |            ^^^^^
 */
import { checkReport } from './given.ts'
import { problemsMax } from './limits.ts'
import { problemText, type SchemaProblem, type Span } from './problem.ts'

/** Both count from 1; a column is a character. */
export interface Place {
  readonly line: number
  readonly column: number
}

export function locate(text: string, offset: number): Place {
  const before = text.slice(0, offset)
  const lineStart = before.lastIndexOf('\n') + 1
  const line = before.split('\n').length
  return { line, column: Array.from(before.slice(lineStart)).length + 1 }
}

/** The file that a report is about; without `text` (the schema was JSON) there are no lines. */
export interface Source {
  readonly file: string
  readonly text?: string
}

export function reportProblems(problems: readonly SchemaProblem[], source: Source): string {
  checkReport('reportProblems', problems, source)
  const told = problems.slice(0, problemsMax).map((problem) => renderProblem(problem, source))
  const more = problems.length - told.length
  return [...told, ...(more > 0 ? [`… and ${more} more`] : [])].join('\n')
}

function renderProblem(problem: SchemaProblem, { file, text }: Source): string {
  const { span } = problem
  if (text === undefined || span === undefined) return `${file}: ${problemText(problem)}`
  const { line, column } = locate(text, span.start)
  return `${file}:${line}:${column}: ${problemText(problem)}\n${excerpt(text, span, line)}`
}

/** Of a longer line, this much before and after the place. */
const aroundCharsMax = 80

function excerpt(text: string, { start, end }: Span, line: number): string {
  const lineStart = text.lastIndexOf('\n', start - 1) + 1
  const lineBreak = text.indexOf('\n', start)
  const lineEnd = lineBreak < 0 ? text.length : lineBreak
  const from = Math.max(lineStart, start - aroundCharsMax)
  const to = Math.min(lineEnd, Math.max(start, Math.min(end, lineEnd)) + aroundCharsMax)
  const before = `${from > lineStart ? '…' : ''}${text.slice(from, start)}`
  const meant = text.slice(start, Math.min(end, to))
  const after = `${text.slice(start + meant.length, to)}${to < lineEnd ? '…' : ''}`
  const number = String(line)
  // Tabs stay tabs, so that the caret stands under its place whatever their width.
  const indent = before.replaceAll(/[^\t]/gu, ' ')
  const carets = '^'.repeat(Math.max(1, Array.from(meant.trimEnd()).length))
  // One sign for each, so that the caret keeps its place, and none of them shapes a terminal.
  const shown = `${before}${meant}${after}`.replaceAll(/[^\t\P{Cc}]/gu, '\ufffd')
  return `${`  ${number} | ${shown}`.trimEnd()}\n  ${' '.repeat(number.length)} | ${indent}${carets}`
}
