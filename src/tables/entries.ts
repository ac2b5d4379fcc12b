/**
 * Entries of indexes: a function of one row (IDX-1). One, or of a list one for each distinct element; none
 * where a part is absent, unless the index has absent ones too. The key holds the indexed values and what
 * names the row, the value what the index stores.
 */
import { asBuffer, latin1 } from '../base/bytes.ts'
import { keyBytesMax } from '../base/limits.ts'
import type { Packable } from '../base/pack.ts'
import type { SequenceSlot } from '../group/transaction.ts'
import type { CompiledIndex, CompiledTable, IndexedPart } from './compiled.ts'
import { StoreError } from '../base/errors.ts'
import type { KeyWriter } from './key-writer.ts'
import { entrySpace, writerIn, type DecodedEntryKey } from './row-key.ts'
import type { Values } from './row-check.ts'
import { decodeProperty, encodeProperty, readField, packValue, unpackValue } from './row-value.ts'

export interface Entry {
  readonly key: Uint8Array
  readonly value: Uint8Array
  readonly slots: readonly SequenceSlot[]
  /** The length of the key's first part, up to the row's key: what a unique index has once. */
  readonly uniqueBytes: number
  /** Whether a number that is still to come is among the indexed values. */
  readonly isNumbered: boolean
  /** The indexed values; undefined where the row has none. */
  readonly values: readonly unknown[]
}

export const noEntries: ReadonlyMap<string, Entry> = new Map()

/** The entries of a row in one index, by their keys; those that wait for a number by place too. */
export function buildEntries(
  table: CompiledTable,
  index: CompiledIndex,
  row: Values,
): ReadonlyMap<string, Entry> {
  const entries = new Map<string, Entry>()
  for (const element of listElements(index, row)) {
    const values = index.parts.map((part) => valueAt(part.isInList ? element : row, part.names))
    if (index.parts.some((part, at) => values[at] === undefined && part.mayBeAbsent !== true)) {
      continue
    }
    const entry = buildEntry(table, index, row, values)
    entries.set(latin1(entry.key), entry)
  }
  return entries
}

function listElements({ list }: CompiledIndex, row: Values): readonly unknown[] {
  if (list === undefined) return [undefined]
  const elements = valueAt(row, list)
  return Array.isArray(elements) ? elements : []
}

function valueAt(from: unknown, names: readonly string[]): unknown {
  return names.reduce((value, name) => readField(value, name), from)
}

function buildEntry(
  table: CompiledTable,
  index: CompiledIndex,
  row: Values,
  values: readonly unknown[],
): Entry {
  const writer = entryWriter(index)
  for (const [place, step] of index.steps.entries()) {
    if (step.kind === 'part') writer.part(step.part, values[place])
  }
  const uniqueBytes = writer.length
  const isNumbered = writer.slots.length > 0
  for (const part of index.rowParts) writer.part(part, row[part.name])
  const { bytes, slots } = encodeStored(table, index, row)
  const allSlots = slots.length === 0 ? writer.slots : [...writer.slots, ...slots]
  return { key: writer.bytes, value: bytes, uniqueBytes, isNumbered, slots: allSlots, values }
}

/** A key of the index in the making. */
export function entryWriter({ number }: CompiledIndex): KeyWriter {
  return writerIn(entrySpace).mark(number)
}

const nothingStored = packValue(undefined, [])

/** The stored properties in their order; a sequence is a number in front. */
function encodeStored(
  table: CompiledTable,
  { storing }: CompiledIndex,
  row: Values,
): ReturnType<typeof packValue> {
  if (storing.length === 0) return nothingStored
  const sequence = storing.some(({ property }) => property.kind === 'sequence')
  const fields = storing.map(({ names, property }): Packable => {
    const value = property.kind === 'sequence' ? undefined : valueAt(row, names)
    return value === undefined ? null : encodeProperty(property, value)
  })
  return packValue(sequence ? row[table.sequence?.name ?? ''] : undefined, fields)
}

/** The entry as an application reads it: indexed values, the row's key, what is stored. */
export function decodeEntry(
  table: CompiledTable,
  { index, parts, values }: DecodedEntryKey,
  value: Uint8Array,
): Values {
  const entry: Record<string, unknown> = {}
  for (const [place, { name }] of table.key.entries()) entry[name] = values[place]
  for (const [place, { name }] of index.parts.entries()) {
    if (parts[place] !== undefined) entry[name] = parts[place]
  }
  if (index.storing.length === 0) return entry
  const { sequence, fields } = unpackValue(value)
  for (const [place, { path, property }] of index.storing.entries()) {
    const stored = fields[place]
    const isAbsent = stored === null || stored === undefined
    if (property.kind === 'sequence') entry[path] = sequence
    else if (!isAbsent) entry[path] = decodeProperty(property, stored)
  }
  return entry
}

export function isSameEntry(a: Entry, b: Entry): boolean {
  return a.slots.length === 0 && b.slots.length === 0 && asBuffer(a.value).equals(b.value)
}

export function notUnique(index: CompiledIndex, table: CompiledTable): StoreError {
  const names = index.parts.map((part: IndexedPart) => part.name).join(', ')
  const message = `table ${table.name}: index ${index.name} is unique, and another row has the same ${names}`
  return new StoreError('already-exists', message)
}

/** `limitValue`: what an entry of this kind may have at most. */
export function tooLong(
  { length: actual }: Uint8Array,
  what: string,
  limitValue: number = keyBytesMax,
): StoreError {
  const message = `${what} is too large: ${actual} bytes, keyBytesMax leaves ${limitValue}`
  const detail = { limit: 'keyBytesMax', limitValue, actual }
  return new StoreError('too-large', message, detail)
}
