/**
 * The group of a root row: its name, and what every key inside it leaves out.
 *
 *   tuple('tables', schema, number of the root table), two bytes of a hash if SCATTER, the key's parts
 *   tuple('placed', 'tables', schema, number, place), the same, of a table with PLACEMENT
 */
import { StoreError } from '../base/errors.ts'
import { equalBytes, sha256 } from '../base/bytes.ts'
import { bytesOfGroup, groupOfBytes, type GroupId } from '../base/ids.ts'
import { keyBytesMax } from '../base/limits.ts'
import { encodePlace, isPlaceName } from '../base/placed-group.ts'
import { decodeTuple } from '../base/tuple.ts'
import type { CompiledSchema, CompiledTable } from './compiled.ts'
import { checkKeyParts, keyWords } from './key-check.ts'
import { ByteSink, encodePart, writePart } from './key-codec.ts'
import { KeyReader } from './key-reader.ts'

const scatterBytes = 2

export interface GroupContext {
  readonly schema: CompiledSchema
  readonly root: CompiledTable
  /** The root row's key, part by part. */
  readonly values: readonly unknown[]
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
  const bytes = encodeName(root, values)
  if (bytes.length > keyBytesMax) {
    const message = `table ${root.name}: the name of a group is too large with this key: ${bytes.length} bytes, keyBytesMax is ${keyBytesMax}`
    const detail = { limit: 'keyBytesMax', limitValue: keyBytesMax, actual: bytes.length }
    throw new StoreError('too-large', message, detail)
  }
  return { schema, root, values, group: groupOfBytes(bytes) }
}

function encodeName(root: CompiledTable, values: readonly unknown[]): Uint8Array {
  const name = new ByteSink()
  name.add(root.groupPrefix)
  const place = placeBytes(root, values)
  if (place !== undefined) name.add(place)
  const ownAt = root.scatter ? name.extend(scatterBytes) + scatterBytes : name.length
  for (const [place, part] of root.key.entries()) writePart(name, part, values[place])
  if (root.scatter) {
    const hash = sha256(name.written.subarray(ownAt))
    name.bytes.set(hash.subarray(0, scatterBytes), ownAt - scatterBytes)
  }
  return name.written
}

/** Undefined: the table has no PLACEMENT. Throws `invalid` where the value of the key can be no region. */
function placeBytes(
  { name, key, placement }: CompiledTable,
  values: readonly unknown[],
): Uint8Array | undefined {
  if (placement?.kind !== 'by') return placement?.bytes
  const region = values[placement.keyPlace]
  if (typeof region === 'string' && isPlaceName(region)) {
    return encodePlace({ kind: 'region', name: region })
  }
  const part = key[placement.keyPlace]?.name ?? ''
  const message = `table ${name}: ${part} ${keyWords(region)} is the name of no region, which has 1 to 32 of a-z, 0-9 and -; its groups have PLACEMENT BY ${part}`
  throw new StoreError('invalid', message)
}

/** A text of a tuple ends so; inside it, 00 is followed by ff. */
const endOfText = '\u0000\u0001'
const textMark = ' '

/** The schema whose row the group is of; undefined for other groups. */
export function schemaOfGroup(group: GroupId): string | undefined {
  const [first, ...rest] = leadingTexts(group)
  const [kind, schema] = first === 'placed' ? rest : [first, ...rest]
  return kind === 'tables' ? schema : undefined
}

/** Up to three. The bytes behind them may be no tuple. */
function leadingTexts(group: GroupId): readonly string[] {
  const texts: string[] = []
  for (let from = 0; texts.length < 3 && group[from] === textMark;) {
    const end = group.indexOf(endOfText, from)
    if (end < 0) break
    const bytes = Buffer.from(group.slice(from, end + endOfText.length), 'latin1')
    const [text] = decodeTuple(bytes) ?? []
    if (typeof text !== 'string') break
    texts.push(text)
    from = end + endOfText.length
  }
  return texts
}

/** The root row that a group is named by, its key by part; undefined for groups that are not the schema's. */
export function rootOfGroup(
  schema: CompiledSchema,
  group: GroupId,
): { readonly root: CompiledTable; readonly values: readonly unknown[] } | undefined {
  const bytes = bytesOfGroup(group)
  for (const root of schema.tables.values()) {
    const prefix = root.groupPrefix
    if (root.root !== root.name || !equalBytes(bytes.subarray(0, prefix.length), prefix)) continue
    const values: unknown[] = []
    const placeEnd = prefix.length + placeLength(root, group)
    const reader = new KeyReader(bytes, placeEnd + (root.scatter ? scatterBytes : 0))
    for (const part of root.key) {
      const value = reader.part(part)
      if (value === undefined) return undefined
      values.push(value)
    }
    return reader.isAtEnd ? { root, values } : undefined
  }
  return undefined
}

/** The bytes of the place in the name of a group of this table. */
function placeLength({ groupPrefix, placement }: CompiledTable, group: GroupId): number {
  if (placement === undefined) return 0
  if (placement.kind === 'fixed') return placement.bytes.length
  const end = group.indexOf(endOfText, groupPrefix.length)
  return end < 0 ? 0 : end + endOfText.length - groupPrefix.length
}

/** Is the table one of this group's, and is `value` what the group has at that place of its key? */
export function checkOfGroup(
  context: GroupContext,
  table: CompiledTable,
  place: number,
  value: unknown,
): void {
  const own = context.values[place]
  if (value === own) return
  const part = context.root.key[place]
  if (part === undefined || equalBytes(encodePart(part, value), encodePart(part, own))) return
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
