/**
 * The group of a root row: its name, and what every key inside it leaves out.
 *
 *   tuple('tables', schema, number of the root table), two bytes of a hash if SCATTER, the key's parts
 */
import { StoreError } from '../base/errors.ts'
import { equalBytes, sha256 } from '../base/bytes.ts'
import { groupOfBytes, type GroupId } from '../base/ids.ts'
import { keyBytesMax } from '../base/limits.ts'
import { encodeTuple } from '../base/tuple.ts'
import type { CompiledSchema, CompiledTable } from './compile.ts'
import { checkKeyParts, keyWords } from './key-check.ts'
import { encodePart } from './key-codec.ts'

const scatterBytes = 2

export interface GroupContext {
  readonly schema: CompiledSchema
  readonly root: CompiledTable
  /** The root row's key, part by part, and in bytes. */
  readonly values: readonly unknown[]
  readonly encoded: readonly Uint8Array[]
  readonly group: GroupId
}

/** The group whose root row has this key. Refuses tables that are no roots. */
export function groupContext(
  schema: CompiledSchema,
  root: CompiledTable,
  key: unknown,
): GroupContext {
  if (root.root !== root.name) {
    const message = `table ${root.name} is not a root; name the group by the key of its ${root.root}`
    throw new StoreError('invalid', message)
  }
  const values = checkKeyParts(root, key)
  const encoded = root.key.map((part, place) => encodePart(part, values[place]))
  const own = Buffer.concat(encoded)
  const hash = root.scatter ? sha256(own).subarray(0, scatterBytes) : new Uint8Array()
  const bytes = Buffer.concat([encodeTuple(['tables', schema.name, root.number]), hash, own])
  if (bytes.length > keyBytesMax) {
    const message = `table ${root.name}: the name of a group is too large with this key: ${bytes.length} bytes, keyBytesMax is ${keyBytesMax}`
    const detail = { limit: 'keyBytesMax', limitValue: keyBytesMax, actual: bytes.length }
    throw new StoreError('too-large', message, detail)
  }
  return { schema, root, values, encoded, group: groupOfBytes(bytes) }
}

/** Is the table one of this group's, and is `value` what the group has at that place of its key? */
export function checkOfGroup(
  context: GroupContext,
  table: CompiledTable,
  place: number,
  value: unknown,
): void {
  const part = context.root.key[place]
  const known = context.encoded[place]
  if (part === undefined || known === undefined) return
  if (equalBytes(encodePart(part, value), known)) return
  const name = table.key[place]?.name ?? part.name
  const message = `table ${table.name}: ${name} ${keyWords(value)} is of another group than this one, which is ${groupWords(context)}; use the handle of that group`
  throw new StoreError('invalid', message)
}

export function checkRoot(context: GroupContext, table: CompiledTable): void {
  if (table.root === context.root.name) return
  const message = `table ${table.name} is of groups of ${table.root}, and this one is ${groupWords(context)}`
  throw new StoreError('invalid', message)
}

/** `User (user_id 1)`. */
export function groupWords({ root, values }: GroupContext): string {
  const parts = root.key.map(({ name }, place) => `${name} ${keyWords(values[place])}`)
  return `${root.name} (${parts.join(', ')})`
}
