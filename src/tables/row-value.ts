/**
 * Rows as bytes: what the key does not say, by the numbers of the properties. Numbers that this
 * version does not know are kept when a row is changed; a property that a row is too old to have
 * reads as its default.
 *
 *   01                    number, value, number, value, … (MessagePack)
 *   02  8 bytes           the same, behind the number of a sequence that is not in the key
 */
import { assert } from '../base/assert.ts'
import { StoreError } from '../base/errors.ts'
import { asBuffer, copyBytes, readCount, writeCount } from '../base/bytes.ts'
import { pack, unpack, type Packable } from '../base/pack.ts'
import type { SequenceSlot } from '../group/transaction.ts'
import type { CompiledProperty, CompiledTable } from './compiled.ts'
import { readMember } from './key-check.ts'
import { countBytes } from './key-codec.ts'
import { isComing } from './key-writer.ts'
import type { PatchValues, Values } from './row-check.ts'

const plainFormat = 1
const numberedFormat = 2

export interface StoredValue {
  readonly bytes: Uint8Array
  readonly slots: readonly SequenceSlot[]
}

/** Fields, behind the number of a sequence if there is one. */
export function packValue(sequence: unknown, fields: readonly Packable[]): StoredValue {
  const rest = pack(fields)
  const isNumbered = sequence !== undefined
  const restAt = isNumbered ? 1 + countBytes : 1
  const bytes = Buffer.allocUnsafe(restAt + rest.length)
  bytes[0] = isNumbered ? numberedFormat : plainFormat
  if (isNumbered) writeCount(bytes, isComing(sequence) ? 0 : Number(sequence), 1)
  bytes.set(rest, restAt)
  if (!isComing(sequence)) return { bytes, slots: [] }
  return { bytes, slots: [{ allocation: sequence.allocation, at: 'value', offset: 1 }] }
}

export function unpackValue(bytes: Uint8Array): {
  readonly sequence: number | undefined
  readonly fields: readonly unknown[]
} {
  const sequence = readSequence(bytes)
  if (sequence === undefined && bytes[0] !== plainFormat) throw unreadable('a stored value')
  const fields = unpack(bytes, sequence === undefined ? 1 : 1 + countBytes)
  if (!Array.isArray(fields)) throw unreadable('a stored value')
  return { sequence, fields }
}

/** The number of a sequence that stands before the fields. */
export function readSequence(bytes: Uint8Array): number | undefined {
  const isNumbered = bytes[0] === numberedFormat && bytes.length > countBytes
  return isNumbered ? readCount(asBuffer(bytes), 1) : undefined
}

/** The values of a row beside its key, by the numbers of the properties. */
export interface StoredFields {
  readonly sequence: unknown
  readonly byNumber: ReadonlyMap<number, unknown>
}

export function encodeRow(table: CompiledTable, row: Values): StoredValue {
  const { sequence } = table
  const fields: Packable[] = []
  for (const property of table.stored) {
    const value = row[property.name]
    if (value !== undefined) fields.push(property.number, encodeProperty(property, value))
  }
  const isBeside = sequence !== undefined && !sequence.isInKey
  return packValue(isBeside ? row[sequence.name] : undefined, fields)
}

/** The bytes of the row with the changes in it, and everything else as it was. */
export function encodeChanged(before: Uint8Array, changes: PatchValues): StoredValue {
  const { sequence, fields } = unpackValue(before)
  const byNumber = new Map(listPairs(fields))
  for (const [property, value] of changes) {
    const { number } = property
    const [, field] = encodeField(property, value)
    if (field === undefined) byNumber.delete(number)
    else byNumber.set(number, withUnknownFields(property, byNumber.get(number), field))
  }
  return packValue(sequence, inOrder(byNumber))
}

/** The bytes of a new row, and what the program does not know of the row that it replaces. */
export function encodeReplaced(table: CompiledTable, before: Uint8Array, row: Values): StoredValue {
  const { sequence, fields } = unpackValue(encodeRow(table, row).bytes)
  const old = unpackValue(before).fields
  const kept = withUnknown(table.properties, old, fields)
  const isKept = ([number]: [number, unknown]): boolean =>
    table.properties.some((one) => one.isKnown && one.number === number) ||
    fieldWith(kept, number) !== undefined
  assert(listPairs(old).every(isKept), 'TAB-7: what the program does not know stays')
  return packValue(sequence, kept)
}

/** Was the row written by a program that knows more than this version has? */
export function holdsUnknown(table: CompiledTable, bytes: Uint8Array): boolean {
  return hasUnknown(table.stored, unpackValue(bytes).fields)
}

function hasUnknown(properties: readonly CompiledProperty[], fields: readonly unknown[]): boolean {
  return listPairs(fields).some(([number, value]) => {
    const property = properties.find((one) => one.number === number)
    if (property === undefined) return true
    const isMessage = property.kind === 'message' && property.presence !== 'repeated'
    return isMessage && Array.isArray(value) && hasUnknown(property.fields, value)
  })
}

/** Members that no declaration of this program has stay as they were. */
function withUnknown(
  properties: readonly CompiledProperty[],
  before: readonly unknown[],
  after: readonly unknown[],
): readonly Packable[] {
  const byNumber = new Map(listPairs(after))
  for (const [number, value] of listPairs(before)) {
    const property = properties.find((one) => one.number === number)
    const now = byNumber.get(number)
    const isOthers = property === undefined || (!property.isKnown && now === undefined)
    if (isOthers) byNumber.set(number, value)
    else if (now !== undefined) byNumber.set(number, withUnknownFields(property, value, now))
  }
  return inOrder(byNumber)
}

/**
 * The same inside a message. There is no way to tell which element of a list is which, so these are
 * new ones.
 */
function withUnknownFields(
  { kind, presence, fields }: CompiledProperty,
  before: unknown,
  after: unknown,
): unknown {
  const isMessage = kind === 'message' && presence !== 'repeated'
  if (!isMessage || !Array.isArray(before) || !Array.isArray(after)) return after
  return withUnknown(fields, before, after)
}

function inOrder(byNumber: ReadonlyMap<number, unknown>): readonly Packable[] {
  const kept = [...byNumber].toSorted(([a], [b]) => a - b)
  return kept.flatMap(([number, field]) => [number, repackable(field)])
}

/** The row, its properties in the order of their declaration. */
export function decodeRow(
  table: CompiledTable,
  key: readonly unknown[],
  bytes: Uint8Array,
): Values {
  const { sequence, fields } = unpackValue(bytes)
  const row: Record<string, unknown> = {}
  for (const { property, keyPlace } of table.parts) {
    const { name, kind } = property
    const value =
      keyPlace >= 0
        ? key[keyPlace]
        : kind === 'sequence'
          ? (sequence ?? refuse(property.path))
          : decodeProperty(property, fieldWith(fields, property.number))
    if (value !== undefined) row[name] = value
  }
  return row
}

/** The value behind the property's number: rows have few fields, and a search is quicker than a map. */
export function fieldWith(fields: readonly unknown[], number: number): unknown {
  for (let at = 0; at < fields.length; at += 2) {
    const found = fields[at]
    if (found === number) return fields[at + 1]
    if (typeof found !== 'number') throw unreadable('a stored value')
  }
  return undefined
}

/** Number and value; nothing where there is no value. An empty list is one. */
function encodeField(property: CompiledProperty, value: unknown): readonly Packable[] {
  return value === undefined ? [] : [property.number, encodeProperty(property, value)]
}

export function encodeProperty(property: CompiledProperty, value: unknown): Packable {
  if (property.presence !== 'repeated') return encodeOne(property, value)
  return Array.isArray(value) ? value.map((one: unknown) => encodeOne(property, one)) : []
}

function encodeOne({ kind, fields }: CompiledProperty, value: unknown): Packable {
  if (kind === 'json') return JSON.stringify(value)
  switch (typeof value) {
    case 'bigint': {
      const bytes = Buffer.alloc(countBytes)
      bytes.writeBigInt64BE(value)
      return bytes
    }
    case 'string':
    case 'number':
    case 'boolean':
      return value
    default:
      if (value instanceof Uint8Array) return value
      return fields.flatMap((field) => encodeField(field, readField(value, field.name)))
  }
}

/** Of a message, or of nothing. */
export function readField(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? readMember(value, name) : undefined
}

/** The value of what is stored; of nothing stored, the default, the empty list, or no value. */
export function decodeProperty(property: CompiledProperty, stored: unknown): unknown {
  const { presence, fallback, path } = property
  if (presence === 'repeated') {
    if (stored === undefined || stored === null) return []
    if (!Array.isArray(stored)) throw unreadable(path)
    // Lists with holes were taken once; this reads the elements behind the holes.
    const elements = stored.filter((one) => one !== undefined && one !== null)
    return elements.map((one: unknown) => decodeOne(property, one))
  }
  if (stored !== undefined && stored !== null) return decodeOne(property, stored)
  if (presence === 'required' && fallback === undefined) throw unreadable(path)
  return fallback instanceof Uint8Array ? copyBytes(fallback) : fallback
}

function decodeOne({ kind, fields, path }: CompiledProperty, stored: unknown): unknown {
  switch (kind) {
    case 'message':
      return decodeMessage(fields, stored, path)
    case 'json':
      return typeof stored === 'string' ? parsed(stored, path) : refuse(path)
    case 'int64':
      if (!(stored instanceof Uint8Array) || stored.length !== countBytes) return refuse(path)
      return asBuffer(stored).readBigInt64BE()
    case 'bytes':
      // A copy: the row outlives the page that it came in.
      return stored instanceof Uint8Array ? copyBytes(stored) : refuse(path)
    case 'bool':
      return typeof stored === 'boolean' ? stored : refuse(path)
    case 'string':
    case 'uuid':
      return typeof stored === 'string' ? stored : refuse(path)
    default:
      return typeof stored === 'number' ? stored : refuse(path)
  }
}

function decodeMessage(fields: readonly CompiledProperty[], stored: unknown, path: string): Values {
  const byNumber = new Map(listPairs(Array.isArray(stored) ? stored : refuse(path)))
  const values: [string, unknown][] = []
  for (const field of fields) {
    const value = decodeProperty(field, byNumber.get(field.number))
    if (value !== undefined) values.push([field.name, value])
  }
  return Object.fromEntries(values)
}

function listPairs(fields: readonly unknown[]): [number, unknown][] {
  const pairs: [number, unknown][] = []
  for (let at = 0; at < fields.length; at += 2) {
    const number = fields[at]
    if (typeof number !== 'number') throw unreadable('a stored value')
    pairs.push([number, fields[at + 1]])
  }
  return pairs
}

/** An unpacked value, to be packed again as it is. */
function repackable(value: unknown): Packable {
  if (Array.isArray(value)) return value.map((one: unknown) => repackable(one))
  if (value instanceof Uint8Array) return value
  switch (typeof value) {
    case 'string':
    case 'number':
    case 'boolean':
      return value
    default:
      return value === null || value === undefined ? null : refuse('a stored value')
  }
}

function parsed(text: string, path: string): unknown {
  try {
    const value: unknown = JSON.parse(text)
    return value
  } catch (cause) {
    throw unreadable(path, cause)
  }
}

function refuse(path: string): never {
  throw unreadable(path)
}

function unreadable(what: string, cause?: unknown): StoreError {
  const message = `${what} is not stored as this version of the schema says; check the schema of this program`
  return new StoreError('schema-mismatch', message, {}, cause === undefined ? {} : { cause })
}
