/**
 * JSON text from outside, read without loss: `JSON.parse` rounds long integers and drops all but
 * the last of equal names without a word (RFC 7493 warns of both). Here they are errors.
 */
import { losesDigits } from './decimal.ts'
import type { JsonCopy } from './json-copy.ts'

export type JsonText =
  | { readonly ok: true; readonly value: JsonCopy }
  /** `isJson`: it is JSON, but none that can be kept as written. */
  | { readonly ok: false; readonly isJson: boolean; readonly reason: string }

/** Lists and objects inside one another: more than any body, row or schema has, and few enough to call a function for each. */
export const jsonTextDepthMax = 256

/** The value of a JSON text, or why it is none that can be kept as written. */
export function parseJsonText(text: string): JsonText {
  let value: JsonCopy
  try {
    value = JSON.parse(text)
  } catch (error) {
    const said = error instanceof Error ? error.message : 'unreadable'
    return { ok: false, isJson: false, reason: `not JSON: ${said}` }
  }
  const reason = lossIn(text)
  return reason === undefined ? { ok: true, value } : { ok: false, isJson: true, reason }
}

/** A string, a number, or one of the marks that open and close; JSON.parse has seen to the rest. */
const token = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*|[{}[\],]/gs

/** Why a valid text is not taken: a number that a double cannot hold, a name given twice, nesting without end. */
function lossIn(text: string): string | undefined {
  /** One for each open object or array; names of the object's members so far. */
  const open: (Set<string> | undefined)[] = []
  let mayBeName = false
  for (const [word] of text.matchAll(token)) {
    const mark = word[0] ?? ''
    if (mark === '{') open.push(new Set())
    else if (mark === '[') open.push(undefined)
    else if (mark === '}' || mark === ']') open.pop()
    else if (mark === '"') {
      if (mayBeName && isTaken(word, open.at(-1))) {
        return `the name ${word.slice(0, 80)} is given twice in one object`
      }
    } else if (mark !== ',' && losesDigits(word)) {
      return `the number ${word.slice(0, 80)} does not fit a JSON number; write it as a string`
    }
    if (open.length > jsonTextDepthMax) {
      return `lists and objects are nested deeper than ${jsonTextDepthMax} levels`
    }
    mayBeName = '{,'.includes(mark) && open.at(-1) !== undefined
  }
  return undefined
}

/** Whether the object has this name already; it has it from now on. */
function isTaken(word: string, names: Set<string> | undefined): boolean {
  const name = word.includes('\\') ? String(JSON.parse(word)) : word.slice(1, -1)
  if (names === undefined || names.has(name)) return names !== undefined
  names.add(name)
  return false
}
