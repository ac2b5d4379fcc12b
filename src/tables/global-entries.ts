/**
 * Entries of global indexes: what each group of an index is called, which one an entry is in, and the
 * entry's key as it lies there. `entries.ts` says what the entries of a row are.
 */
import { sha256 } from '../base/bytes.ts'
import { groupOfBytes, type GroupId } from '../base/ids.ts'
import { placedPrefix } from '../base/placed-group.ts'
import { encodeTuple } from '../base/tuple.ts'
import type { CompiledGlobal, CompiledTable } from './compiled.ts'
import type { Entry } from './entries.ts'
import { ByteSink, encodePart, writePart } from './key-codec.ts'
import { KeyReader } from './key-reader.ts'
import type { Values } from './row-check.ts'
import { writeRowKey, type DecodedEntryKey } from './row-key.ts'
import { readField } from './row-value.ts'

/** Where all groups of the table have one place, entries are there too. Else the groups of an index are spread over all sets. */
export function indexGroup({ schema, number, placeBytes }: CompiledGlobal, shard: number): GroupId {
  if (placeBytes === undefined) return groupOfBytes(encodeTuple(['index', schema, number, shard]))
  const parts = [placedPrefix('index', schema, number), placeBytes, encodeTuple([shard])]
  return groupOfBytes(Buffer.concat(parts))
}

/** All groups of an index. */
export function indexGroups(index: CompiledGlobal): readonly GroupId[] {
  return Array.from({ length: index.shards }, (_, shard) => indexGroup(index, shard))
}

/** The groups that entries with this value of the sharding property are in. */
export function groupsOfValue(index: CompiledGlobal, value: unknown): readonly GroupId[] {
  const first = shardOfValue(index, value)
  return Array.from({ length: index.spread }, (_, k) =>
    indexGroup(index, (first + k) % index.shards),
  )
}

/** The group of an entry: by its own value, and where values are spread, by its row. */
export function groupOfEntry(
  table: CompiledTable,
  index: CompiledGlobal,
  row: Values,
  { values }: Entry,
): GroupId {
  const first = shardOfValue(index, values[index.shardPlace])
  const place = index.spread === 1 ? 0 : hashBytes(spreadBytes(table, row)) % index.spread
  return indexGroup(index, (first + place) % index.shards)
}

function shardOfValue({ parts, shards, shardPlace }: CompiledGlobal, value: unknown): number {
  const part = parts[shardPlace]
  return part === undefined || shards === 1
    ? 0
    : hashBytes(encodePart({ ...part, direction: 'asc' }, value)) % shards
}

/** The row's key, but for a number that may be still to come. */
function spreadBytes(table: CompiledTable, row: Values): Uint8Array {
  const sink = new ByteSink()
  for (const part of table.key) {
    if (part.name !== table.sequence?.name) writePart(sink, part, readField(row, part.name))
  }
  return sink.written
}

function hashBytes(bytes: Uint8Array): number {
  return sha256(bytes).readUInt32BE(0)
}

/** The values of an entry and the key of its row; undefined for what is no entry of this index. */
export function decodeGlobalKey(
  table: CompiledTable,
  index: CompiledGlobal,
  key: Uint8Array,
): DecodedEntryKey | undefined {
  const reader = new KeyReader(key, 1)
  if (reader.mark() !== index.number) return undefined
  const read = [...index.parts, ...index.rowParts].map((part) => reader.part(part))
  if (read.includes(undefined) || !reader.isAtEnd) return undefined
  const parts = read.slice(0, index.parts.length).map((value) => value ?? undefined)
  const values = read.slice(index.parts.length)
  return { index, parts, values, rowKey: writeRowKey(table, values).bytes }
}
