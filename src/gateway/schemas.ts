/** The forms of what is sent and answered, as JSON Schema: the components of the OpenAPI document. */
import {
  batchItemsMax,
  columnNameCharsMax,
  pageItemsMax,
  tailWaitSecondsMax,
} from '../base/limits.ts'
import { retryByCode, unreadyIndexes } from '../base/errors.ts'
import { purgeItemsMax } from '../cells/limits.ts'
import { dropPhases } from '../cells/index-drop.ts'
import { shardCountMax } from '../cells/datastore-form.ts'

/** JSON Schema, as OpenAPI 3.1 has it. */
export type JsonSchema = { readonly [keyword: string]: unknown }

const wholeNumber = { type: 'integer', minimum: 0, maximum: Number.MAX_SAFE_INTEGER }

export const refKeySchema: JsonSchema = { ...wholeNumber, examples: [0] }
export const addedIdSchema: JsonSchema = { ...wholeNumber, examples: [17] }
export const rowKeySchema: JsonSchema = {
  type: 'string',
  format: 'uuid',
  examples: ['6e9f3a52-0c1b-4a86-9d57-2f1f6c3b8e10'],
}
export const columnSchema: JsonSchema = {
  type: 'string',
  pattern: '^[A-Za-z_][A-Za-z0-9_]*$',
  maxLength: columnNameCharsMax,
  examples: ['BASE'],
}
export const indexNameSchema: JsonSchema = {
  type: 'string',
  examples: ['trips_by_zone'],
}
/** The whole name of a datastore. */
export const datastoreSource = '^[a-z][a-z0-9_]*([.][0-9]+([.](region|set)-[a-z0-9-]+)?)?$'
export const shardSchema: JsonSchema = { type: 'integer', minimum: 0, maximum: shardCountMax - 1 }
export const timeSchema: JsonSchema = {
  type: 'string',
  description: 'A date, or a date and time with its offset.',
  examples: ['2026-01-31T08:30:00.000001Z'],
}
export const limitSchema: JsonSchema = {
  type: 'integer',
  minimum: 1,
  maximum: pageItemsMax,
  default: pageItemsMax,
}
const waitSchema: JsonSchema = { type: 'number', minimum: 0, maximum: tailWaitSecondsMax }

const createdAt: JsonSchema = { type: 'string', format: 'date-time' }
const anyJson: JsonSchema = { description: 'Any JSON.' }

/** An object with these members, of which all are there but the optional ones, and no others. */
function object(
  members: Readonly<Record<string, JsonSchema>>,
  optional: readonly string[] = [],
): JsonSchema {
  const required = Object.keys(members).filter((name) => !optional.includes(name))
  return { type: 'object', required, properties: members, additionalProperties: false }
}

function ref(name: SchemaName): JsonSchema {
  return { $ref: `#/components/schemas/${name}` }
}

function list(items: JsonSchema, maxItems?: number): JsonSchema {
  return { type: 'array', items, ...(maxItems !== undefined && { minItems: 1, maxItems }) }
}

/** Each item as such, or the problem that it met. */
function outcomes(of: JsonSchema): JsonSchema {
  return object({ items: list({ anyOf: [of, object({ problem: ref('Problem') })] }) })
}

export type SchemaName =
  | 'Body'
  | 'Cell'
  | 'Written'
  | 'CellPage'
  | 'CellOrPage'
  | 'RowPage'
  | 'LogPage'
  | 'PutBatch'
  | 'GetBatch'
  | 'LogBatch'
  | 'PutOutcomes'
  | 'GetOutcomes'
  | 'LogOutcomes'
  | 'Purge'
  | 'Purged'
  | 'Problem'
  | 'Status'
  | 'IndexPage'
  | 'IndexDrop'
  | 'Buffered'
  | 'Datastore'
  | 'DatastoreForm'
  | 'DatastoreList'

const cell: JsonSchema = object({
  rowKey: rowKeySchema,
  column: columnSchema,
  refKey: refKeySchema,
  addedId: addedIdSchema,
  createdAt,
  body: anyJson,
})

const getItem: JsonSchema = object(
  { rowKey: rowKeySchema, column: columnSchema, refKey: refKeySchema },
  ['refKey'],
)

const logItem: JsonSchema = {
  anyOf: [
    object({ shard: shardSchema, after: addedIdSchema }, ['after']),
    object({ shard: shardSchema, since: timeSchema }),
  ],
}

const problem: JsonSchema = {
  ...object(
    {
      type: { type: 'string', examples: ['urn:trilithon:problem:immutable'] },
      title: { type: 'string' },
      status: { type: 'integer' },
      detail: { type: 'string' },
      instance: { type: 'string' },
      code: { type: 'string', enum: Object.keys(retryByCode) },
      retry: { type: 'string', enum: ['safe', 'check-first', 'never'] },
      group: { type: 'string', examples: ['cells/trips/17'] },
      limit: { type: 'string', examples: ['cellBytesMax'] },
      limitValue: { type: 'number' },
      actual: { type: 'number' },
      attempts: { type: 'integer' },
      retryAfterMs: { type: 'integer', description: 'Of overloaded: when to try again.' },
      index: { type: 'string', enum: [...unreadyIndexes] },
    },
    ['instance', 'group', 'limit', 'limitValue', 'actual', 'attempts', 'retryAfterMs', 'index'],
  ),
  description: 'Problem details (RFC 9457).',
}

const status: JsonSchema = {
  type: 'object',
  required: ['node', 'cluster', 'version', 'state', 'ready', 'uptimeSeconds', 'nodes', 'messages'],
  properties: {
    node: { type: 'string' },
    cluster: { type: 'string' },
    version: { type: 'string' },
    state: { type: 'string', enum: ['starting', 'running', 'draining', 'failed'] },
    ready: { type: 'boolean' },
    uptimeSeconds: { type: 'number' },
    nodes: list({
      type: 'object',
      required: ['id', 'url'],
      properties: { id: { type: 'string' }, url: { type: 'string' } },
    }),
    messages: list({ type: 'string' }),
  },
}

const placeNameSchema: JsonSchema = { type: 'string', pattern: '^[a-z0-9-]{1,32}$' }
const shardCountSchema: JsonSchema = {
  enum: Array.from({ length: Math.log2(shardCountMax) + 1 }, (_, power) => 2 ** power),
}
const datastoreForm: JsonSchema = object(
  {
    name: { type: 'string', examples: ['trips'] },
    datastore: { type: 'string', pattern: datastoreSource, examples: ['trips.64'] },
    shards: shardCountSchema,
    placement: { type: 'string', examples: ['region eu'] },
    declaredAt: createdAt,
  },
  ['placement'],
)

export const schemas: Readonly<Record<SchemaName, JsonSchema>> = {
  Body: anyJson,
  Cell: cell,
  Written: object({
    shard: shardSchema,
    addedId: addedIdSchema,
    createdAt,
    created: { type: 'boolean' },
  }),
  Buffered: object({ shard: shardSchema, buffered: { const: true } }),
  Datastore: datastoreForm,
  DatastoreForm: object(
    {
      shards: shardCountSchema,
      placement: {
        anyOf: [object({ region: placeNameSchema }), object({ set: placeNameSchema })],
      },
    },
    ['shards', 'placement'],
  ),
  DatastoreList: object({ items: list(ref('Datastore')) }),
  IndexPage: object(
    {
      items: list(
        object(
          {
            rowKey: rowKeySchema,
            fields: { type: 'object', additionalProperties: anyJson },
            cells: { type: 'object', additionalProperties: ref('Cell') },
          },
          ['cells'],
        ),
      ),
      cursor: { type: 'string' },
    },
    ['cursor'],
  ),
  IndexDrop: object({
    phase: { type: 'string', enum: [...dropPhases] },
    done: { type: 'integer', minimum: 0 },
    total: { type: 'integer', minimum: 0 },
  }),
  CellPage: object({ items: list(ref('Cell')), cursor: refKeySchema }, ['cursor']),
  CellOrPage: { anyOf: [ref('Cell'), ref('CellPage')] },
  RowPage: object({ items: list(ref('Cell')), cursor: columnSchema }, ['cursor']),
  LogPage: object({ shard: shardSchema, items: list(ref('Cell')), cursor: addedIdSchema }),
  PutBatch: object({
    cells: list(
      object({ rowKey: rowKeySchema, column: columnSchema, refKey: refKeySchema, body: anyJson }),
      batchItemsMax,
    ),
  }),
  GetBatch: object({ cells: list(getItem, batchItemsMax) }),
  LogBatch: object({ shards: list(logItem, shardCountMax), limit: limitSchema, wait: waitSchema }, [
    'limit',
    'wait',
  ]),
  PutOutcomes: outcomes({ anyOf: [ref('Written'), ref('Buffered')] }),
  GetOutcomes: outcomes(object({ cell: { anyOf: [ref('Cell'), { type: 'null' }] } })),
  LogOutcomes: outcomes(ref('LogPage')),
  Purge: object(
    {
      before: timeSchema,
      column: columnSchema,
      keepLatest: { type: 'boolean', default: true },
      after: addedIdSchema,
      limit: { type: 'integer', minimum: 1, maximum: purgeItemsMax, default: purgeItemsMax },
    },
    ['column', 'keepLatest', 'after', 'limit'],
  ),
  Purged: object(
    { shard: shardSchema, purged: { type: 'integer', minimum: 0 }, cursor: addedIdSchema },
    ['cursor'],
  ),
  Problem: problem,
  Status: status,
}
