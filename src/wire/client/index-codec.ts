/** Queries of indexes over cells, dropping one, and the answers ⇄ positional arrays. */
import { batchItemsMax, pageItemsMax } from '../../base/limits.ts'
import type { Packable } from '../../base/pack.ts'
import { queryCursorCharsMax, queryFiltersMax } from '../../cells/limits.ts'
import { indexFieldsMax } from '../../cells/index-definition.ts'
import { indexComparisons, type IndexFilter } from '../../cells/index-query.ts'
import {
  askedOfBytes,
  indexTypes,
  microsOfBytes,
  packable,
  type IndexType,
  type IndexValue,
} from '../../cells/index-values.ts'
import { dropPhases, type DropProgress } from '../../cells/index-drop.ts'
import type {
  DropIndex,
  IndexAnswer,
  IndexedCells,
  QueryIndex,
  ReadFrom,
  SpreadIndexes,
} from '../../cells/operation.ts'
import * as part from './client-fields.ts'
import * as field from '../fields.ts'

export function packQueryIndex(
  { datastore, name, where, columns, order, reverse, cursor, limit, verify }: QueryIndex,
  read: Packable,
): Packable[] {
  const filters = where.map((one) => [
    one.field,
    indexComparisons.indexOf(one.comparison),
    packable(one.value),
  ])
  const asked = columns === 'all' ? true : columns
  return [datastore, read, name, filters, asked, order, reverse, cursor, limit, verify]
}

export function readQueryIndex(
  fields: readonly unknown[],
  target: (datastore: unknown, read: unknown) => { datastore: string; read: ReadFrom },
): QueryIndex {
  const [datastore, read, name, where, columns, order, reverse, cursor, limit, verify] = field.list(
    fields,
    'index',
    10,
  )
  return {
    kind: 'index',
    ...target(datastore, read),
    name: part.text(name, 'name'),
    where: part.some(where, 'filters', queryFiltersMax).map(readFilter),
    ...(!field.isAbsent(columns) && { columns: readColumns(columns) }),
    ...(!field.isAbsent(order) && { order: part.text(order, 'order') }),
    reverse: field.flag(reverse, 'reverse'),
    ...(!field.isAbsent(cursor) && { cursor: part.text(cursor, 'cursor', queryCursorCharsMax) }),
    limit: field.count(limit, 'limit'),
    verify: field.flag(verify, 'verify'),
  }
}

function readFilter(value: unknown): IndexFilter {
  const [name, comparison, operand] = field.list(value, 'filter', 3)
  const known = indexComparisons[field.count(comparison, 'comparison')]
  if (known === undefined) throw new field.MalformedError('comparison is of no known kind')
  return {
    field: part.text(name, 'field'),
    comparison: known,
    value: readValue(operand, askedOfBytes),
  }
}

function readColumns(value: unknown): readonly string[] | 'all' {
  if (value === true) return 'all'
  return part.some(value, 'columns', batchItemsMax).map((one) => part.text(one, 'column'))
}

export function packIndexAnswer({ fields, types, entries, cursor }: IndexAnswer): Packable[] {
  return [
    fields,
    types.map((type) => indexTypes.indexOf(type)),
    entries.map(({ rowKey, values, cells }) => [
      rowKey,
      values.map(packable),
      cells?.map(part.packCell),
    ]),
    cursor,
  ]
}

export function readIndexAnswer(rest: readonly unknown[]): IndexAnswer {
  const [fields, types, entries, cursor] = field.list(rest, 'index', 4)
  return {
    kind: 'index',
    fields: part.some(fields, 'fields', indexFieldsMax).map((one) => part.text(one, 'field')),
    types: part.some(types, 'types', indexFieldsMax).map(readType),
    entries: part.some(entries, 'entries', pageItemsMax).map(readEntry),
    ...(!field.isAbsent(cursor) && { cursor: part.text(cursor, 'cursor', queryCursorCharsMax) }),
  }
}

function readType(value: unknown): IndexType {
  const type = indexTypes[field.count(value, 'type')]
  if (type === undefined) throw new field.MalformedError('a type is of no known kind')
  return type
}

function readEntry(value: unknown): IndexedCells {
  const [rowKey, values, cells] = field.list(value, 'entry', 3)
  return {
    rowKey: part.text(rowKey, 'row key'),
    values: part
      .some(values, 'values', indexFieldsMax)
      .map((one) => (field.isAbsent(one) ? null : readValue(one))),
    ...(!field.isAbsent(cells) && {
      cells: part.some(cells, 'cells', pageItemsMax).map(part.cell),
    }),
  }
}

function readValue(
  value: unknown,
  readMicros: (bytes: Uint8Array) => IndexValue | undefined = microsOfBytes,
): IndexValue {
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') {
    return value
  }
  const micros = value instanceof Uint8Array ? readMicros(value) : undefined
  if (micros !== undefined) return micros
  throw new field.MalformedError('a value is of no known type')
}

/** Numbers on the wire: never reused, never renumbered. */
export const indexChangeKinds = { 'spread-indexes': 90, 'drop-index': 91 } as const

export function packIndexChange(operation: SpreadIndexes | DropIndex): Packable[] {
  const { kind, datastore } = operation
  return kind === 'spread-indexes' ? [datastore] : packDropIndex(operation)
}

/** Undefined when it is of another kind. */
export function readIndexChange(
  kind: unknown,
  rest: readonly unknown[],
): SpreadIndexes | DropIndex | undefined {
  if (kind === indexChangeKinds['drop-index']) return readDropIndex(rest)
  if (kind !== indexChangeKinds['spread-indexes']) return undefined
  const [datastore] = field.list(rest, 'spread indexes', 1)
  return { kind: 'spread-indexes', datastore: part.text(datastore, 'datastore') }
}

function packDropIndex({ datastore, name, number, graceMs }: DropIndex): Packable[] {
  return [datastore, name, number, graceMs]
}

function readDropIndex(fields: readonly unknown[]): DropIndex {
  const [datastore, name, number, graceMs] = field.list(fields, 'drop index', 4)
  return {
    kind: 'drop-index',
    datastore: part.text(datastore, 'datastore'),
    name: part.text(name, 'name'),
    ...(!field.isAbsent(number) && { number: field.count(number, 'number') }),
    ...(!field.isAbsent(graceMs) && { graceMs: field.count(graceMs, 'grace') }),
  }
}

export function packDropped({ phase, done, total, number }: DropProgress): Packable[] {
  return [dropPhases.indexOf(phase), done, total, number]
}

export function readDropped(
  fields: readonly unknown[],
): { readonly kind: 'drop-index' } & DropProgress {
  const [phase, done, total, number] = field.list(fields, 'dropped', 4)
  const known = dropPhases[field.count(phase, 'phase')]
  if (known === undefined) throw new field.MalformedError('phase is of no known kind')
  return {
    kind: 'drop-index',
    phase: known,
    done: field.count(done, 'done'),
    total: field.count(total, 'total'),
    number: field.count(number, 'number'),
  }
}
