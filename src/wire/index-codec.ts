/** Queries of indexes over cells and their answers ⇄ positional arrays. */
import { batchItemsMax, pageItemsMax } from '../base/limits.ts'
import type { Packable } from '../base/pack.ts'
import { indexFieldsMax } from '../cells/index-definition.ts'
import { indexComparisons, type IndexFilter } from '../cells/index-query.ts'
import { indexTypes, type IndexType, type IndexValue } from '../cells/index-values.ts'
import type { IndexAnswer, IndexedCells, QueryIndex, ReadFrom } from '../cells/operation.ts'
import * as part from './client-fields.ts'
import * as field from './peer-fields.ts'

/** A key, in base64. */
const cursorCharsMax = 2_048
/** Filters of one query. */
const filtersMax = 100

export function packQueryIndex(
  { datastore, name, where, columns, order, reverse, cursor, limit, verify }: QueryIndex,
  read: Packable,
): Packable[] {
  const filters = where.map((one) => [
    one.field,
    indexComparisons.indexOf(one.comparison),
    one.value,
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
    ...{ kind: 'index', ...target(datastore, read), name: part.text(name, 'name') },
    where: part.some(where, 'filters', filtersMax).map(readFilter),
    ...(!field.isAbsent(columns) && { columns: readColumns(columns) }),
    ...(!field.isAbsent(order) && { order: part.text(order, 'order') }),
    reverse: part.flag(reverse, 'reverse'),
    ...(!field.isAbsent(cursor) && { cursor: part.text(cursor, 'cursor', cursorCharsMax) }),
    limit: field.count(limit, 'limit'),
    verify: part.flag(verify, 'verify'),
  }
}

function readFilter(value: unknown): IndexFilter {
  const [name, comparison, operand] = field.list(value, 'filter', 3)
  const known = indexComparisons[field.count(comparison, 'comparison')]
  if (known === undefined) throw new field.MalformedError('comparison is of no known kind')
  return { field: part.text(name, 'field'), comparison: known, value: readValue(operand) }
}

function readColumns(value: unknown): readonly string[] | 'all' {
  if (value === true) return 'all'
  return part.some(value, 'columns', batchItemsMax).map((one) => part.text(one, 'column'))
}

export function packIndexAnswer({ fields, types, entries, cursor }: IndexAnswer): Packable[] {
  return [
    fields,
    types.map((type) => indexTypes.indexOf(type)),
    entries.map(({ rowKey, values, cells }) => [rowKey, values, cells?.map(part.packCell)]),
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
    ...(!field.isAbsent(cursor) && { cursor: part.text(cursor, 'cursor', cursorCharsMax) }),
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

function readValue(value: unknown): IndexValue {
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') {
    return value
  }
  throw new field.MalformedError('a value is of no known type')
}
