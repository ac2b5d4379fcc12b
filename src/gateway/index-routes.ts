/**
 * Asking an index over HTTP, and dropping one: `GET …/indexes/:name?FIELD=…&FIELD.gte=…&select=…&columns=…&order=…`. A
 * parameter that is none of those of every query is a field, with a comparison behind its last point.
 */
import { pageItemsMax } from '../base/limits.ts'
import { indexComparisons, type IndexFilter } from '../cells/index-query.ts'
import type { IndexAnswer, IndexedCells } from '../cells/operation.ts'
import { ask, json, jsonText, readFrom, segment, type Exchange } from './exchange.ts'
import { isMicros, formatIso } from '../base/datetime.ts'
import { columnListProblem, nameListProblem } from './name-lists.ts'
import { parseColumn, type Query } from './parameters.ts'
import { refuse } from './problems.ts'
import { cellJson, listText } from './render.ts'

const known = ['select', 'columns', 'order', 'cursor', 'limit', 'read', 'verify'] as const

export async function queryIndex(exchange: Exchange): Promise<Response> {
  const { query } = exchange
  const fields = query.names.filter((name) => !known.some((one) => one === name))
  const { order, cursor, columns } = readTexts(query)
  const select = query.text('select')?.split(',')
  const wrongList = select && nameListProblem('select', select)
  if (wrongList !== undefined) return refuse(wrongList)
  const { answer, headers } = await ask(exchange, {
    kind: 'index',
    datastore: segment(exchange, 'datastore'),
    name: segment(exchange, 'name'),
    read: readFrom(exchange),
    where: fields.map((name) => parseFilter(name, query.text(name) ?? '')),
    limit: query.number('limit') ?? pageItemsMax,
    verify: query.flag('verify'),
    reverse: order?.startsWith('-') === true,
    ...(order !== undefined && order !== '-' && { order: order.replace(/^-/, '') }),
    ...(cursor !== undefined && { cursor }),
    ...(columns !== undefined && { columns: columns === 'all' ? columns : parseColumns(columns) }),
  })
  const wrong = select?.find((field) => !answer.fields.includes(field))
  if (wrong !== undefined) {
    return refuse(`select: there is no field ${wrong}, only ${answer.fields.join(', ')}`)
  }
  const entries = await listText(exchange.pace, answer.entries, {
    sizeInBytes: ({ cells = [] }) => cells.reduce((sum, { body }) => sum + body.length, 0),
    renderText: (entry) => JSON.stringify(entryJson(answer, entry, select)),
  })
  const end = answer.cursor === undefined ? '' : `,"cursor":${JSON.stringify(answer.cursor)}`
  return jsonText(`{"items":${entries}${end}}`, 200, headers)
}

export async function dropIndex(exchange: Exchange): Promise<Response> {
  const grace = exchange.query.number('grace')
  const { answer, headers } = await ask(exchange, {
    kind: 'drop-index',
    datastore: segment(exchange, 'datastore'),
    name: segment(exchange, 'name'),
    ...(grace !== undefined && { graceMs: grace * 1000 }),
  })
  const { phase, done, total } = answer
  return json({ phase, done, total }, phase === 'dropped' ? 200 : 202, headers)
}

function readTexts(query: Query): Record<'order' | 'cursor' | 'columns', string | undefined> {
  return {
    order: query.text('order'),
    cursor: query.text('cursor'),
    columns: query.text('columns'),
  }
}

function parseColumns(text: string): readonly string[] {
  const names = text.split(',')
  const wrong = columnListProblem('columns', names)
  return wrong === undefined ? names.map(parseColumn) : refuse(wrong)
}

function parseFilter(name: string, value: string): IndexFilter {
  const end = name.lastIndexOf('.')
  const comparison = indexComparisons.find((one) => one === name.slice(end + 1))
  if (end > 0 && comparison !== undefined) return { field: name.slice(0, end), comparison, value }
  return { field: name, comparison: 'eq', value }
}

function entryJson(
  { fields, types }: IndexAnswer,
  { rowKey, values, cells }: IndexedCells,
  select: readonly string[] | undefined,
): object {
  const shown = fields.flatMap((field, place) => {
    if (select !== undefined && !select.includes(field)) return []
    const value = values[place] ?? null
    const isTime = types[place] === 'datetime' && isMicros(value)
    return [[field, isTime ? formatIso(value) : value] as const]
  })
  const entry = { rowKey, fields: Object.fromEntries(shown) }
  if (cells === undefined) return entry
  return { ...entry, cells: Object.fromEntries(cells.map((cell) => [cell.column, cellJson(cell)])) }
}
