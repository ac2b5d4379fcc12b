/** Reading cells over HTTP: one, a column's versions, a row, shard logs, batches. */
import { pageItemsMax } from '../base/limits.ts'
import { batchBytesMax } from '../cells/bounds.ts'
import type { LogPlace, StoredLogPage } from '../cells/operation.ts'
import { problem } from '../base/problem.ts'
import { getItemsOf, shardsBodyOf } from './batch-body.ts'
import { ask, json, jsonText, only, readFrom, segment, type Exchange } from './exchange.ts'
import { columnOf, refKeyOf, rowKeyOf, shardNumberOf } from './parameters.ts'
import { HttpProblem, refuse } from './problems.ts'
import { cellJson, itemsText, logPageText, pageText } from './render.ts'
import { readJson, requireJson } from './request-body.ts'

const batchLimit = { name: 'batchBytesMax', bytesMax: batchBytesMax }

export async function getCell(exchange: Exchange): Promise<Response> {
  return oneCell(exchange, {
    rowKey: rowKeyOf(segment(exchange, 'rowKey')),
    column: columnOf(segment(exchange, 'column')),
    refKey: refKeyOf(segment(exchange, 'refKey')),
  })
}

async function oneCell(
  exchange: Exchange,
  item: { readonly rowKey: string; readonly column: string; readonly refKey?: number },
): Promise<Response> {
  const datastore = segment(exchange, 'datastore')
  const read = readFrom(exchange)
  const { answer, headers } = await ask(exchange, { kind: 'get', datastore, read, items: [item] })
  const [found] = answer.items
  if (found?.kind === 'ok' && found.value === undefined) {
    const what = item.refKey === undefined ? 'this column has no cell' : 'there is no such cell'
    throw new HttpProblem(problem('not-found', what), 404, headers)
  }
  const cell = only(answer.items) ?? refuse('there is no such cell')
  return json(cellJson(cell), 200, headers)
}

export async function getColumn(exchange: Exchange): Promise<Response> {
  const { query } = exchange
  const rowKey = rowKeyOf(segment(exchange, 'rowKey'))
  const column = columnOf(segment(exchange, 'column'))
  if (query.flag('all')) return versions(exchange, { rowKey, column })
  const idle = ['from', 'limit', 'reverse'].find((name) => query.has(name))
  if (idle !== undefined) return refuse(`${idle} is for versions: it goes with all=true`)
  return oneCell(exchange, { rowKey, column })
}

async function versions(
  exchange: Exchange,
  name: { readonly rowKey: string; readonly column: string },
): Promise<Response> {
  const { query } = exchange
  const from = query.number('from')
  const { answer, headers } = await ask(exchange, {
    kind: 'versions',
    datastore: segment(exchange, 'datastore'),
    ...name,
    read: readFrom(exchange),
    limit: query.number('limit') ?? pageItemsMax,
    reverse: query.flag('reverse'),
    ...(from !== undefined && { from }),
  })
  return jsonText(await pageText(exchange.pace, answer.page), 200, headers)
}

export async function getRow(exchange: Exchange): Promise<Response> {
  const { query } = exchange
  const from = query.text('from')
  const { answer, headers } = await ask(exchange, {
    kind: 'row',
    datastore: segment(exchange, 'datastore'),
    read: readFrom(exchange),
    rowKey: rowKeyOf(segment(exchange, 'rowKey')),
    limit: query.number('limit') ?? pageItemsMax,
    ...(from !== undefined && { from: columnOf(from) }),
  })
  if (answer.page.cells.length === 0 && from === undefined) {
    throw new HttpProblem(problem('not-found', 'this row has no cell'), 404, headers)
  }
  return jsonText(await pageText(exchange.pace, answer.page), 200, headers)
}

export async function getLog(exchange: Exchange): Promise<Response> {
  const { query } = exchange
  const shard = shardNumberOf(segment(exchange, 'shard'))
  const after = query.number('after')
  const since = query.time('since')
  if (after !== undefined && since !== undefined) return refuse('give either after or since')
  const place: LogPlace =
    since === undefined
      ? { kind: 'after', shard, addedId: after ?? 0 }
      : { kind: 'since', shard, timestamp: since }
  const waitMs = (query.number('wait') ?? 0) * 1000
  const { answer, headers } = await ask(
    exchange,
    {
      kind: 'log',
      datastore: segment(exchange, 'datastore'),
      items: [place],
      waitMs,
      read: readFrom(exchange),
      limit: query.number('limit') ?? pageItemsMax,
    },
    waitMs,
  )
  return jsonText(await logPageText(exchange.pace, only(answer.items)), 200, headers)
}

export async function batchGet(exchange: Exchange): Promise<Response> {
  requireJson(exchange.context.req.raw)
  const items = getItemsOf(await readJson(exchange, batchLimit))
  const datastore = segment(exchange, 'datastore')
  const read = readFrom(exchange)
  const { answer } = await ask(exchange, { kind: 'get', datastore, read, items })
  const body = await itemsText(exchange.pace, answer.items, {
    bytesOf: (cell) => cell?.body.length ?? 0,
    textOf: (cell) => JSON.stringify({ cell: cell === undefined ? null : cellJson(cell) }),
  })
  return jsonText(body, 200, {})
}

export async function batchLog(exchange: Exchange): Promise<Response> {
  requireJson(exchange.context.req.raw)
  const asked = shardsBodyOf(await readJson(exchange, batchLimit))
  const { places, limit = pageItemsMax, waitSeconds = 0 } = asked
  const waitMs = Math.round(waitSeconds * 1000)
  const datastore = segment(exchange, 'datastore')
  const read = readFrom(exchange)
  const operation = { kind: 'log', datastore, read, items: places, limit, waitMs } as const
  const { answer } = await ask(exchange, operation, Math.max(0, waitMs))
  const textOf = (page: StoredLogPage): Promise<string> => logPageText(exchange.pace, page)
  return jsonText(await itemsText(exchange.pace, answer.items, { textOf }), 200, {})
}
