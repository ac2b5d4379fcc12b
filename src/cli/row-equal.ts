/** Whether two values of rows are the same, by what is in them: bytes of any class, members in any order. */
import { equalBytes } from '../base/bytes.ts'

export function isEqualValue(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  if (a instanceof Uint8Array || b instanceof Uint8Array) {
    return a instanceof Uint8Array && b instanceof Uint8Array && equalBytes(a, b)
  }
  if (Array.isArray(a) || Array.isArray(b)) return isEqualList(a, b)
  const [left, right] = [readMembers(a), readMembers(b)]
  if (left.size !== right.size) return false
  return [...left].every(([name, value]) => right.has(name) && isEqualValue(value, right.get(name)))
}

function isEqualList(a: unknown, b: unknown): boolean {
  if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false
  return a.every((one, i) => isEqualValue(one, b[i]))
}

/** A member without a value is not there. */
function readMembers(value: object): ReadonlyMap<string, unknown> {
  return new Map(Object.entries(value).filter(([, one]) => one !== undefined))
}
