/** Every route of cells: its parameters, its answers, and the handler that carries it out. */
import { stalenessMsMin, tailWaitSecondsMax } from '../base/limits.ts'
import { graceMsMax } from '../cells/limits.ts'
import { batchGet, batchLog, getCell, getColumn, getLog, getRow } from './read-routes.ts'
import type { Parameter, Route } from './route.ts'
import { addedIdSchema, columnSchema, limitSchema, refKeySchema, timeSchema } from './schemas.ts'
import { declareDatastore, getDatastore, listDatastores } from './datastore-routes.ts'
import { dropIndex, queryIndex } from './index-routes.ts'
import { batchPut, purgeCell, purgeShard, putCell } from './write-routes.ts'

const read: Parameter = {
  what: 'current: sees all that was acknowledged. snapshot: what the replica that is asked has.',
  schema: { type: 'string', enum: ['current', 'snapshot'], default: 'current' },
}
const reading = {
  read,
  max_staleness_ms: {
    what: 'Instead of read=current: sees all that was acknowledged longer ago than this, in milliseconds.',
    schema: { type: 'integer', minimum: stalenessMsMin, maximum: Number.MAX_SAFE_INTEGER },
  },
}
const limit: Parameter = { what: 'Cells of one page.', schema: limitSchema }
const flag = { type: 'boolean', default: false }
const position = { takesPosition: true }

export const routes: readonly Route[] = [
  {
    method: 'GET',
    path: '',
    isOfAll: true,
    operationId: 'listDatastores',
    summary: 'List the datastores that were declared; others are there by being used',
    query: {},
    answers: { 200: { what: 'By name.', schema: 'DatastoreList' } },
    problems: [],
    handler: listDatastores,
  },
  {
    method: 'PUT',
    path: '',
    operationId: 'declareDatastore',
    summary: 'Declare a datastore with a number of shards, or a place, once and for good',
    query: {},
    body: { schema: 'DatastoreForm', what: 'Absent members: 4,096 shards, on all sets.' },
    answers: {
      200: { what: 'It was declared already, the same.', schema: 'Datastore' },
      201: {
        what: 'It is declared. Its cells are under the name in `datastore`.',
        schema: 'Datastore',
      },
    },
    problems: ['already-exists', 'unknown-outcome', 'too-large'],
    handler: declareDatastore,
  },
  {
    method: 'GET',
    path: '',
    operationId: 'getDatastore',
    summary: 'Find a datastore by the name that it was declared with',
    query: {},
    answers: { 200: { what: 'Its form.', schema: 'Datastore' } },
    problems: ['not-found'],
    handler: getDatastore,
  },
  {
    method: 'PUT',
    path: '/cells/:rowKey/:column/:refKey',
    operationId: 'putCell',
    summary: 'Write a cell, if it is absent; an equal body again changes nothing',
    query: {},
    body: { schema: 'Body', what: 'The body of the cell: any JSON of at most 1 MiB.' },
    answers: {
      200: { what: 'It was there, with an equal body.', schema: 'Written', hasPosition: true },
      201: { what: 'It is written.', schema: 'Written', hasPosition: true },
      202: {
        what: 'Its shard cannot be reached: it is safe elsewhere, and comes there by itself.',
        schema: 'Buffered',
      },
    },
    problems: ['immutable', 'too-large', 'unknown-outcome'],
    handler: putCell,
  },
  {
    method: 'GET',
    path: '/cells/:rowKey/:column/:refKey',
    operationId: 'getCell',
    summary: 'Read a cell',
    ...position,
    query: { ...reading },
    answers: { 200: { what: 'The cell.', schema: 'Cell', hasPosition: true } },
    problems: ['not-found'],
    handler: getCell,
  },
  {
    method: 'GET',
    path: '/cells/:rowKey/:column',
    operationId: 'getColumn',
    summary: 'Read the latest cell of a column, or with all=true its versions',
    ...position,
    query: {
      ...reading,
      all: { what: 'All versions, a page at a time, instead of the latest.', schema: flag },
      cursor: { what: 'With all=true: the ref key to begin with.', schema: refKeySchema },
      limit: { ...limit, what: 'With all=true: cells of one page.' },
      reverse: { what: 'With all=true: falling ref keys.', schema: flag },
    },
    answers: {
      200: { what: 'The cell, or a page.', schema: 'CellOrPage', hasPosition: true },
    },
    problems: ['not-found'],
    handler: getColumn,
  },
  {
    method: 'DELETE',
    path: '/cells/:rowKey/:column/:refKey',
    operationId: 'purgeCell',
    summary: 'Take one cell out for good, whatever its age; it is not written again',
    query: {},
    answers: {
      200: { what: 'How many were there: 1, or 0.', schema: 'Purged', hasPosition: true },
    },
    problems: ['unknown-outcome'],
    handler: purgeCell,
  },
  {
    method: 'GET',
    path: '/cells/:rowKey',
    operationId: 'getRow',
    summary: 'Read the latest cell of each column of a row',
    ...position,
    query: {
      ...reading,
      cursor: { what: 'The column to begin with.', schema: columnSchema },
      limit,
    },
    answers: { 200: { what: 'A page, by column.', schema: 'RowPage', hasPosition: true } },
    problems: ['not-found'],
    handler: getRow,
  },
  {
    method: 'GET',
    path: '/shards/:shard/cells',
    operationId: 'getShardLog',
    summary: 'Read the cells of a shard in the order in which they were added',
    ...position,
    query: {
      ...reading,
      after: { what: 'Cells after this added id.', schema: addedIdSchema },
      since: { what: 'Instead: cells of this time or later.', schema: timeSchema },
      limit,
      wait: {
        what: 'How many seconds to wait for a cell when there is none.',
        schema: { type: 'integer', minimum: 0, maximum: tailWaitSecondsMax, default: 0 },
      },
    },
    answers: { 200: { what: 'A page of the log.', schema: 'LogPage', hasPosition: true } },
    problems: [],
    handler: getLog,
  },
  {
    method: 'GET',
    path: '/indexes/:name',
    operationId: 'queryIndex',
    summary: 'Find rows by the fields of an index over cells',
    ...position,
    query: {
      read,
      select: { what: 'Fields to show, by commas; all when absent.', schema: { type: 'string' } },
      columns: {
        what: 'Of each row found the latest cells of these columns, by commas, or `all`.',
        schema: { type: 'string' },
      },
      order: {
        what: 'The field to order by; falling with a - before it.',
        schema: { type: 'string' },
      },
      cursor: { what: 'Where the page before ended.', schema: { type: 'string' } },
      limit: { ...limit, what: 'Entries of one page.' },
      verify: { what: 'Each entry is compared with the cells of its row.', schema: flag },
    },
    others: {
      what: 'Fields of the index with what they are compared to: `FIELD=…`, `FIELD.gte=…`. The shard field is given.',
      schema: { type: 'object', additionalProperties: { type: 'string' } },
    },
    answers: { 200: { what: 'Entries, and where to go on.', schema: 'IndexPage' } },
    problems: ['not-found', 'too-large'],
    handler: queryIndex,
  },
  {
    method: 'DELETE',
    path: '/indexes/:name',
    operationId: 'dropIndex',
    summary: 'Drop an index over cells, a step at a time: send it again until it answers 200',
    query: {
      grace: {
        what: 'Seconds after which nodes are taken to know; as long as is safe when absent.',
        schema: { type: 'integer', minimum: 0, maximum: graceMsMax / 1000 },
      },
    },
    answers: {
      200: { what: 'It is gone, with its entries.', schema: 'IndexDrop' },
      202: {
        what: 'It is not asked any more. Waiting: seconds of the grace. Clearing: shards.',
        schema: 'IndexDrop',
      },
    },
    problems: ['not-found'],
    handler: dropIndex,
  },
  {
    method: 'POST',
    path: '/cells:batchPut',
    operationId: 'batchPutCells',
    summary: 'Write cells, each of which succeeds or fails on its own',
    query: {},
    body: { schema: 'PutBatch', what: 'The cells; 8 MiB together.' },
    answers: { 200: { what: 'An outcome for each cell, in order.', schema: 'PutOutcomes' } },
    problems: ['too-large'],
    handler: batchPut,
  },
  {
    method: 'POST',
    path: '/cells:batchGet',
    operationId: 'batchGetCells',
    summary: 'Read cells; one without a ref key is the latest of its column',
    query: { ...reading },
    body: { schema: 'GetBatch', what: 'The names of the cells.' },
    answers: { 200: { what: 'An outcome for each name, in order.', schema: 'GetOutcomes' } },
    problems: ['too-large'],
    handler: batchGet,
  },
  {
    method: 'POST',
    path: '/shards:batchGet',
    operationId: 'batchGetShardLogs',
    summary: 'Read the logs of several shards, waiting for the first cell in any of them',
    query: { ...reading },
    body: { schema: 'LogBatch', what: 'A place in the log of each shard.' },
    answers: { 200: { what: 'An outcome for each shard, in order.', schema: 'LogOutcomes' } },
    problems: ['too-large'],
    handler: batchLog,
  },
  {
    method: 'POST',
    path: '/shards/:shard/cells:purge',
    operationId: 'purgeShard',
    summary: 'Take old cells of a shard out for good, a page of its log at a time',
    query: {},
    body: {
      schema: 'Purge',
      what: 'Which cells: those before a time, unless they are the latest.',
    },
    answers: {
      200: { what: 'How many, and where to go on.', schema: 'Purged', hasPosition: true },
    },
    problems: ['unknown-outcome'],
    handler: purgeShard,
  },
]
