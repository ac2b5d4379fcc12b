/** Reading cells over HTTP: one, a column's versions, a row, shard logs, batches. */
import { pageItemsMax } from '../base/limits.ts'
import { withRefused } from '../cells/batch.ts'
import { batchBytesMax } from '../cells/limits.ts'
import { nameProblem } from '../cells/cell.ts'
import { operationProblem, placeProblem } from '../cells/operation-check.ts'
import type { CellOperation, LogPlace, StoredLogPage } from '../cells/operation.ts'
import { toStoreError, problem, type Outcome, type Problem } from '../base/problem.ts'
import { readGetItems, readShardsBody } from './batch-body.ts'
import { ask, json, jsonText, only, readFrom, segment, type Exchange } from './exchange.ts'
import { parseColumn, parseDatastore, parseRefKey, parseRowKey, parseShard } from './parameters.ts'
import { HttpProblem, refuse } from './problems.ts'
import { cellJson, itemsText, logPageText, pageText } from './render.ts'
import { readJson, requireJson } from './request-body.ts'

const batchLimit = { name: 'batchBytesMax', bytesMax: batchBytesMax }

export async function getCell(exchange: Exchange): Promise<Response> {
  return oneCell(exchange, {
    rowKey: parseRowKey(segment(exchange, 'rowKey')),
    column: parseColumn(segment(exchange, 'column')),
    refKey: parseRefKey(segment(exchange, 'refKey')),
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
  const rowKey = parseRowKey(segment(exchange, 'rowKey'))
  const column = parseColumn(segment(exchange, 'column'))
  if (query.flag('all')) return versions(exchange, { rowKey, column })
  const idle = ['cursor', 'limit', 'reverse'].find((name) => query.has(name))
  if (idle !== undefined) return refuse(`${idle} is for versions: it goes with all=true`)
  return oneCell(exchange, { rowKey, column })
}

async function versions(
  exchange: Exchange,
  name: { readonly rowKey: string; readonly column: string },
): Promise<Response> {
  const { query } = exchange
  const from = query.number('cursor')
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
  const from = query.text('cursor')
  const { answer, headers } = await ask(exchange, {
    kind: 'row',
    datastore: segment(exchange, 'datastore'),
    read: readFrom(exchange),
    rowKey: parseRowKey(segment(exchange, 'rowKey')),
    limit: query.number('limit') ?? pageItemsMax,
    ...(from !== undefined && { from: parseColumn(from) }),
  })
  if (answer.page.cells.length === 0 && from === undefined) {
    throw new HttpProblem(problem('not-found', 'this row has no cell'), 404, headers)
  }
  return jsonText(await pageText(exchange.pace, answer.page), 200, headers)
}

export async function getLog(exchange: Exchange): Promise<Response> {
  const { query } = exchange
  const datastore = parseDatastore(segment(exchange, 'datastore'))
  const shard = parseShard(datastore, segment(exchange, 'shard'))
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
      datastore,
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
  const items = readGetItems(await readJson(exchange, batchLimit))
  const datastore = segment(exchange, 'datastore')
  const read = readFrom(exchange)
  const operation = { kind: 'get', datastore, read, items } as const
  const found = await askFitting(operation, nameProblem, async (good) => {
    return (await ask(exchange, { ...operation, items: good })).answer.items
  })
  const body = await itemsText(exchange.pace, found, {
    sizeInBytes: (cell) => cell?.body.length ?? 0,
    renderText: (cell) => JSON.stringify({ cell: cell === undefined ? null : cellJson(cell) }),
  })
  return jsonText(body, 200, {})
}

/**
 * The outcomes of all items, in order. Those that no node would take are not asked for: between a gateway
 * and its nodes they would spoil the whole request, and a node by itself tells them one by one.
 */
async function askFitting<Item, Value>(
  operation: CellOperation & { readonly items: readonly Item[] },
  findProblem: (item: Item) => Problem | undefined,
  askFor: (good: readonly Item[]) => Promise<readonly Outcome<Value>[]>,
): Promise<readonly Outcome<Value>[]> {
  const wrong = operationProblem(operation)
  if (wrong !== undefined) throw toStoreError(wrong)
  const refused = operation.items.map((item): Outcome<Value> | undefined => {
    const one = findProblem(item)
    return one && { kind: 'problem', problem: one }
  })
  const good = operation.items.filter((_, i) => refused[i] === undefined)
  return withRefused(refused, good.length === 0 ? [] : await askFor(good))
}

export async function batchLog(exchange: Exchange): Promise<Response> {
  requireJson(exchange.context.req.raw)
  const asked = readShardsBody(await readJson(exchange, batchLimit))
  const { places, limit = pageItemsMax, waitSeconds = 0 } = asked
  const waitMs = Math.round(waitSeconds * 1000)
  const datastore = parseDatastore(segment(exchange, 'datastore'))
  const read = readFrom(exchange)
  const findProblem = (place: LogPlace): Problem | undefined => placeProblem(datastore, place)
  const operation = { kind: 'log', datastore, read, items: places, limit, waitMs } as const
  const found = await askFitting(operation, findProblem, async (good) => {
    const { answer } = await ask(exchange, { ...operation, items: good }, Math.max(0, waitMs))
    return answer.items
  })
  const renderText = (page: StoredLogPage): Promise<string> => logPageText(exchange.pace, page)
  return jsonText(await itemsText(exchange.pace, found, { renderText }), 200, {})
}
