/** Keys as applications give them: an object with each part by its name, and nothing else. */
import { StoreError } from '../base/errors.ts'
import { unknownWord } from '../base/suggest.ts'
import type { CompiledTable, KeyPart } from './compile.ts'
import { checkScalar, wordsFor, wrongValue } from './scalar.ts'

/** The values in the order of the key's parts. */
export function checkKeyParts(table: CompiledTable, key: unknown): readonly unknown[] {
  const names = table.key.map(({ name }) => name)
  const members = membersOf(key, `table ${table.name}: the key`, names)
  return table.key.map((part) => checkPart(part, members.get(part.name), `table ${table.name}`))
}

export function checkPart({ name, kind }: KeyPart, value: unknown, where: string): unknown {
  const place = `${where}: ${name}`
  if (kind === 'message') throw wrongValue(place, value, 'a value that has an order')
  return checkScalar(kind, value, place)
}

/** The members of an object that are there; refuses names that are not in `known`. */
export function membersOf(
  value: unknown,
  where: string,
  known: readonly string[],
): ReadonlyMap<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw wrongValue(where, value, `an object of ${known.join(', ')}`)
  }
  const members = new Map<string, unknown>()
  for (const [name, member] of Object.entries(value)) {
    if (!known.includes(name)) {
      throw new StoreError('invalid', `${where}: ${unknownWord('property', name, known)}`)
    }
    if (member !== undefined) members.set(name, member)
  }
  return members
}

/** A key's value in a message; numbers as digits. */
export function keyWords(value: unknown): string {
  return typeof value === 'bigint' ? value.toString() : wordsFor(value)
}
