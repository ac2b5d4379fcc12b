/** Names in schemas: their form, and the words that are taken. */
import { nameCharsMax } from './limits.ts'
import type { SchemaProblemKind } from './problem.ts'

const namePattern = /^[A-Za-z][A-Za-z0-9_]*$/

/** They shape the text; a name among them would make its errors point at the wrong place. */
const textWords = new Set(
  'create table required optional repeated primary references storing asc desc scatter on in'.split(
    ' ',
  ),
)

/** Is it a word that the text cannot do without? */
export function isReserved(word: string): boolean {
  return textWords.has(word.toLowerCase())
}

/** Every object has these already, or the language asks objects for them (`await` for `then`). */
const objectWords = new Set([
  ...['constructor', 'hasOwnProperty', 'isPrototypeOf', 'propertyIsEnumerable', 'toLocaleString'],
  ...['toString', 'valueOf', 'then', 'toJSON', 'prototype'],
])

export interface NameProblem {
  readonly kind: SchemaProblemKind
  readonly reason: string
  readonly hint?: string
}

/** Why a name cannot be one; undefined when it can. */
export function nameProblem(name: string): NameProblem | undefined {
  if (!namePattern.test(name)) {
    const hint = 'a name is a letter and then letters, digits and _'
    return { kind: 'bad-name', reason: 'is not a name', hint }
  }
  if (name.length > nameCharsMax) {
    return { kind: 'bad-name', reason: `has ${name.length} characters, at most ${nameCharsMax}` }
  }
  if (isReserved(name)) {
    return { kind: 'reserved-name', reason: 'is a word of the schema language' }
  }
  if (objectWords.has(name)) {
    return {
      kind: 'reserved-name',
      reason: 'is a name that every JavaScript object has or is asked for',
    }
  }
  return undefined
}
