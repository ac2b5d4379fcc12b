/**
 * Keys inside a group. Rows of the hierarchy stand under their parent's key, so a row and all below
 * it are one range, depth first; tables outside it have a range each; entries of indexes another.
 *
 *   01  rows     number of the table, own parts, number of a table below, own parts, …
 *   02  entries  number of the index, indexed parts, parts that name the row
 *   03  marks    number of an index that this group has been filled with
 *
 * What names the group is in none of them.
 */
import { asBuffer } from '../base/bytes.ts'
import type { CompiledIndex, CompiledTable } from './compiled.ts'
import { checkOfGroup, checkRoot, type GroupContext } from './group-context.ts'
import { checkKeyParts, keyWords } from './key-check.ts'
import { KeyReader } from './key-reader.ts'
import { KeyWriter } from './key-writer.ts'

export const rowSpace = 1
export const entrySpace = 2
const markSpace = 3
const markBytes = 2

/** A key in the making, behind the byte of its space. */
export function writerIn(space: number): KeyWriter {
  return new KeyWriter(space)
}

/** Of the row that says: the entries of rows of before the index are in this group. */
export function filledKey({ number }: CompiledIndex): Uint8Array {
  return writerIn(markSpace).mark(number).bytes
}

/** The bytes that begin the keys of a table's rows that belong to the row of this key. */
export function keysBelow({ number, parent }: CompiledTable, key: Uint8Array): Uint8Array {
  // Outside the hierarchy all rows of the group belong to its root.
  if (parent === undefined) return writerIn(rowSpace).mark(number).bytes
  const marked = Buffer.alloc(key.length + markBytes)
  marked.set(key)
  marked.writeUInt16BE(number, key.length)
  return marked
}

/** The bytes of a key whose parts are checked, in the table's order. */
export function writeRowKey(table: CompiledTable, values: readonly unknown[]): KeyWriter {
  const writer = writerIn(rowSpace)
  let place = 0
  for (const step of table.steps) {
    if (step.kind === 'mark') writer.mark(step.number)
    else {
      if (step.kind === 'part') writer.part(step.part, values[place])
      place += 1
    }
  }
  return writer
}

/** The bytes of a key as an application gave it. Refuses those of other groups. */
export function encodeRowKey(
  context: GroupContext,
  table: CompiledTable,
  key: unknown,
): { readonly bytes: Uint8Array; readonly values: readonly unknown[] } {
  checkRoot(context, table)
  const values = checkKeyParts(table, key)
  for (const [place, value] of values.slice(0, table.groupPartCount).entries()) {
    checkOfGroup(context, table, place, value)
  }
  return { bytes: writeRowKey(table, values).bytes, values }
}

export interface DecodedRowKey {
  readonly table: CompiledTable
  /** All parts of the key, those of the group too. */
  readonly values: readonly unknown[]
}

/** Undefined for what is not a row of a table that this version of the schema has. */
export function decodeRowKey(context: GroupContext, key: Uint8Array): DecodedRowKey | undefined {
  if (key[0] !== rowSpace) return undefined
  const values = [...context.values]
  let table: CompiledTable | undefined
  for (const reader = new KeyReader(key, 1); !reader.isAtEnd;) {
    const next = context.schema.tableByNumber.get(reader.mark() ?? -1)
    // A root's own key is that of the group; the key of a table inside another follows that table's
    // key.
    if (next === undefined || next.parent !== table?.name) return undefined
    if (next.root !== context.root.name) return undefined
    table = next
    for (const part of next.ownParts) {
      const value = reader.part(part)
      if (value === undefined) return undefined
      values.push(value)
    }
  }
  return table === undefined ? undefined : { table, values }
}

export interface DecodedEntryKey {
  readonly index: CompiledIndex
  /** By the index's parts; undefined where the row has none. */
  readonly parts: readonly unknown[]
  /** The key of the row, by part and in bytes. */
  readonly values: readonly unknown[]
  readonly rowKey: Uint8Array
}

export function decodeEntryKey(
  context: GroupContext,
  key: Uint8Array,
): DecodedEntryKey | undefined {
  if (key[0] !== entrySpace) return undefined
  const reader = new KeyReader(key, 1)
  const index = context.schema.indexByNumber.get(reader.mark() ?? -1)
  if (index === undefined) return undefined
  const parts: unknown[] = []
  for (const step of index.steps) {
    if (step.kind === 'group') parts.push(context.values[step.place])
    if (step.kind !== 'part') continue
    const value = reader.part(step.part)
    if (value === undefined) return undefined
    parts.push(value ?? undefined)
  }
  const row = decodeRowParts(context, index, key, reader)
  return row && { index, parts, values: row.values, rowKey: row.rowKey }
}

/**
 * The steps that name the row are written alike in its entries and in its own key, but for the marks there.
 */
function decodeRowParts(
  context: GroupContext,
  { rowSteps, rowMarks }: CompiledIndex,
  key: Uint8Array,
  reader: KeyReader,
): Pick<DecodedEntryKey, 'values' | 'rowKey'> | undefined {
  const values = [...context.values]
  const entry = asBuffer(key)
  // Exactly as long as it gets: an index that is read makes one for each entry.
  const rowKey = Buffer.allocUnsafe(1 + markBytes * rowMarks + key.length - reader.at)
  rowKey[0] = rowSpace
  let written = 1
  for (const step of rowSteps) {
    if (step.kind === 'mark') written = rowKey.writeUInt16BE(step.number, written)
    if (step.kind !== 'part') continue
    const from = reader.at
    const value = reader.part(step.part)
    if (value === undefined) return undefined
    values.push(value)
    written += entry.copy(rowKey, written, from, reader.at)
  }
  return reader.isAtEnd ? { values, rowKey } : undefined
}

/** `Photo (user_id 1, photo_id 2)`, or an entry of an index; for messages. */
export function keyInWords(context: GroupContext, key: Uint8Array): string {
  const row = decodeRowKey(context, key)
  if (row !== undefined) {
    const { table, values } = row
    const parts = table.key.map(({ name }, place) => `${name} ${keyWords(values[place])}`)
    return `${table.name} (${parts.join(', ')})`
  }
  const entry = decodeEntryKey(context, key)
  if (entry === undefined) return `key ${Buffer.from(key).toString('hex')}`
  const { index, parts } = entry
  const words = index.parts.map(({ name }, place) => `${name} ${keyWords(parts[place])}`)
  return `index ${index.name} (${words.join(', ')})`
}
