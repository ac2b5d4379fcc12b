/**
 * JSON text from outside, read without loss: `JSON.parse` rounds long integers and drops all but
 * the last of equal names without a word (RFC 7493 warns of both). Here they are errors.
 */
import { losesDigits } from '../base/decimal.ts'
import type { Json } from './body.ts'

export type JsonResult =
  { readonly ok: true; readonly value: Json } | { readonly ok: false; readonly reason: string }

/** The value of a JSON text, or why it is none that can be kept as written. */
export function parseJsonText(text: string): JsonResult {
  let value: Json
  try {
    value = JSON.parse(text)
  } catch (error) {
    return {
      ok: false,
      reason: `not JSON: ${error instanceof Error ? error.message : 'unreadable'}`,
    }
  }
  const reason = lossIn(text)
  return reason === undefined ? { ok: true, value } : { ok: false, reason }
}

/** A string, a number, or one of the marks that open and close; JSON.parse has seen to the rest. */
const token = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*|[{}[\],]/gs

/** What of a valid text would not come back: a number that a double cannot hold, a name given twice. */
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
