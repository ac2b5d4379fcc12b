/** Putting cells over HTTP, one or a batch whose items succeed and fail on their own; and purging. */
import { cellBytesMax } from '../base/limits.ts'
import { shardOf } from '../cells/shard.ts'
import { packBody } from '../cells/body.ts'
import { batchBytesMax, requestBytesMax } from '../cells/limits.ts'
import type { Written } from '../cells/cell.ts'
import { packCells } from '../cells/new-cells.ts'
import { toStoreError, type Outcome } from '../base/problem.ts'
import { readPurgeBody, readPutItems } from './batch-body.ts'
import { ask, json, jsonText, only, segment, type Exchange } from './exchange.ts'
import { parseColumn, parseDatastore, parseRefKey, parseRowKey, parseShard } from './parameters.ts'
import { itemsText, writtenJson } from './render.ts'
import { readJson, requireJson } from './request-body.ts'

const cellLimit = { name: 'cellBytesMax', bytesMax: cellBytesMax }
const smallLimit = { name: 'requestBytesMax', bytesMax: requestBytesMax }
const batchLimit = { name: 'batchBytesMax', bytesMax: batchBytesMax }

export async function putCell(exchange: Exchange): Promise<Response> {
  const name = {
    rowKey: parseRowKey(segment(exchange, 'rowKey')),
    column: parseColumn(segment(exchange, 'column')),
    refKey: parseRefKey(segment(exchange, 'refKey')),
  }
  const packed = packBody(await readJson(exchange, cellLimit))
  if (packed.kind === 'problem') throw toStoreError(packed.problem)
  const datastore = segment(exchange, 'datastore')
  const items = [{ ...name, body: packed.body.bytes }]
  const { answer, headers } = await ask(exchange, { kind: 'put', datastore, items })
  const written = only(answer.items)
  return json(writtenJson(written), pickStatus(written), headers)
}

/** 200 whether or not it was there: sent again, it is the same. */
export async function purgeCell(exchange: Exchange): Promise<Response> {
  const cell = {
    rowKey: parseRowKey(segment(exchange, 'rowKey')),
    column: parseColumn(segment(exchange, 'column')),
    refKey: parseRefKey(segment(exchange, 'refKey')),
  }
  const datastore = parseDatastore(segment(exchange, 'datastore'))
  const shard = shardOf(datastore, cell.rowKey)
  const page = { before: 0, keepLatest: false, after: 0, limit: 1 }
  const asked = { kind: 'purge', datastore, shard, ...page, cell } as const
  const { answer, headers } = await ask(exchange, asked)
  return json({ shard, purged: answer.purged }, 200, headers)
}

function pickStatus({ buffered, created }: Written): 200 | 201 | 202 {
  if (buffered) return 202
  return created ? 201 : 200
}

export async function purgeShard(exchange: Exchange): Promise<Response> {
  requireJson(exchange.context.req.raw)
  const datastore = parseDatastore(segment(exchange, 'datastore'))
  const shard = parseShard(datastore, segment(exchange, 'shard'))
  const asked = readPurgeBody(await readJson(exchange, smallLimit))
  const { answer, headers } = await ask(exchange, { kind: 'purge', datastore, shard, ...asked })
  const { purged, next } = answer
  return json({ shard, purged, ...(next !== undefined && { cursor: next }) }, 200, headers)
}

export async function batchPut(exchange: Exchange): Promise<Response> {
  requireJson(exchange.context.req.raw)
  const cells = readPutItems(await readJson(exchange, batchLimit))
  const packed = packCells(cells)
  const { items } = packed
  let answered: readonly Outcome<Written>[] = []
  // An empty batch is passed on too, for its problem.
  if (items.length > 0 || cells.length === 0) {
    const datastore = segment(exchange, 'datastore')
    const { answer } = await ask(exchange, { kind: 'put', datastore, items })
    answered = answer.items
  }
  const renderText = (written: Written): string => JSON.stringify(writtenJson(written))
  const outcomes = packed.outcomes(answered)
  return jsonText(await itemsText(exchange.pace, outcomes, { renderText }), 200, {})
}
