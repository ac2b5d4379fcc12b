/** Keys as applications give them: an object with each part by its name, and nothing else. */
import { StoreError } from '../base/errors.ts'
import { microsOfGiven } from '../base/given-time.ts'
import { hiddenIn, isReadable } from '../base/readable.ts'
import { unknownWord } from '../base/suggest.ts'
import { isPlain, wordsFor } from '../base/words.ts'
import type { CompiledTable, KeyPart } from './compiled.ts'
import { checkScalar, unreadable, wrongValue } from './scalar.ts'

/** The values in the order of the key's parts. */
export function checkKeyParts(table: CompiledTable, key: unknown): readonly unknown[] {
  const where = `table ${table.name}`
  const members = checkMembers(key, table.keyNames, () => `${where}: the key`)
  return table.key.map((part) => checkPart(part, readMember(members, part.name), where))
}

export function checkPart({ name, kind }: KeyPart, value: unknown, where: string): unknown {
  const place = `${where}: ${name}`
  if (kind === 'message') throw wrongValue(place, value, 'a value that has an order')
  // A value that looks like seconds or milliseconds may be one that the program read in a row.
  const micros = kind === 'timestamp' ? microsOfGiven(value) : undefined
  if (micros !== undefined) return micros
  return checkScalar(kind, value, place)
}

/** A value that a query of an index names; null asks for rows without one, and gives undefined. */
export function checkIndexed(part: KeyPart, value: unknown, where: string): unknown {
  return value === null && part.mayBeAbsent === true ? undefined : checkPart(part, value, where)
}

/** The object, when all its members are among `known`; `readMember` looks at them. */
export function checkMembers(
  value: unknown,
  known: ReadonlySet<string>,
  where: () => string,
): object {
  try {
    return checkedMembers(value, known, where)
  } catch (error) {
    throw error instanceof StoreError ? error : unreadable(where(), error)
  }
}

/** The same, each member read once. */
export function readMembers(
  value: unknown,
  known: ReadonlySet<string>,
  where: () => string,
): Readonly<Record<string, unknown>> {
  const given = checkMembers(value, known, where)
  try {
    return Object.fromEntries(Object.keys(given).map((name) => [name, readMember(given, name)]))
  } catch (error) {
    throw error instanceof StoreError ? error : unreadable(where(), error)
  }
}

function checkedMembers(value: unknown, known: ReadonlySet<string>, where: () => string): object {
  if (!hasMembers(value)) {
    throw wrongValue(where(), value, `an object of ${[...known].join(', ')}`)
  }
  for (const name of Object.keys(value)) {
    if (known.has(name)) continue
    throw new StoreError('invalid', `${where()}: ${unknownWord('property', name, [...known])}`)
  }
  const hidden = hiddenIn(value)
  if (hidden !== undefined) {
    throw new StoreError('invalid', `${where()}: it has ${hidden}; leave it out`)
  }
  const inherited = isPlain(value) ? undefined : findInherited(value, known)
  if (inherited !== undefined) {
    const message = `${where()}: it inherits ${inherited}, which would be lost; give an object with members of its own`
    throw new StoreError('invalid', message)
  }
  return value
}

/** A member that another object has for this one, or a getter of its class. */
function findInherited(value: object, known: ReadonlySet<string>): string | undefined {
  for (const name of known) {
    if (name in value && !Object.hasOwn(value, name) && !(name in Object.prototype)) return name
  }
  return undefined
}

/** A promise, a date or a Map has none: it would be taken for an object in which nothing is named. */
function hasMembers(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false
  if (!isReadable(value) || Array.isArray(value)) return false
  return isPlain(value) || Object.keys(value).length > 0
}

/** The value of an object's own member; undefined where there is none. */
export function readMember(value: object, name: string): unknown {
  try {
    const member: unknown = Object.hasOwn(value, name) ? Reflect.get(value, name) : undefined
    return member
  } catch (error) {
    throw unreadable(name, error)
  }
}

/** A key's value in a message; numbers as digits. */
export function keyWords(value: unknown): string {
  return typeof value === 'bigint' ? value.toString() : wordsFor(value)
}
