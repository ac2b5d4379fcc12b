/**
 * The OpenAPI 3.1 document of the HTTP interface, made from the descriptions of its routes: there is
 * nothing in it that is not told there.
 */
import type { StoreErrorCode } from '../base/errors.ts'
import type { OperationAnswer } from '../node/operation-answer.ts'
import { operationAnswers } from '../node/operations.ts'
import { statusByCode } from './problems.ts'
import { fullPath, type Parameter, type Route, type RouteAnswer } from './route.ts'
import { routes } from './routes.ts'
import {
  columnSchema,
  indexNameSchema,
  refKeySchema,
  rowKeySchema,
  schemas,
  datastoreSource,
  shardSchema,
  type JsonSchema,
  type SchemaName,
} from './schemas.ts'
import { datastoreNameCharsMax } from '../base/limits.ts'

/** The parameters of paths, by their names there. */
const pathParameters: Readonly<Record<string, Parameter>> = {
  datastore: {
    what: 'The datastore; it is there by being used. A name such as trips.64 or trips.64.region-eu says how many shards it has, and where; trips alone has 4,096, on all sets.',
    schema: {
      type: 'string',
      pattern: datastoreSource,
      maxLength: datastoreNameCharsMax,
      examples: ['trips', 'trips.64'],
    },
  },
  rowKey: { what: 'A UUID.', schema: rowKeySchema },
  column: { what: 'The name of a column.', schema: columnSchema },
  refKey: { what: 'The higher, the later the version.', schema: refKeySchema },
  shard: { what: 'The number of a shard.', schema: shardSchema },
  name: { what: 'The name of an index.', schema: indexNameSchema },
}

const position: JsonSchema = {
  type: 'string',
  pattern: '^[a-z][a-z0-9_.-]*/[0-9]+/[0-9]+$',
}

/** Any request may meet these. */
const commonProblems: readonly StoreErrorCode[] = [
  ...([
    'invalid',
    'forbidden',
    'unavailable',
    'overloaded',
    'closed',
    'timeout',
    'corrupt',
    'internal',
  ] as const),
]

export function openApiDocument(version: string): JsonSchema {
  return {
    openapi: '3.1.0',
    info: {
      title: 'Trilithon',
      version,
      summary: 'Cells of a replicated database, through any node or gateway.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/', description: 'The node or gateway that gave this document.' }],
    security: [{}, { secret: [] }],
    tags: [
      { name: 'cells', description: 'Immutable JSON, by row key, column and ref key.' },
      { name: 'operations', description: 'Health and figures.' },
    ],
    paths: buildPaths(),
    components: {
      schemas,
      securitySchemes: {
        secret: {
          type: 'http',
          scheme: 'bearer',
          description: "The cluster's secret, if it has one.",
        },
      },
    },
  }
}

function buildPaths(): JsonSchema {
  const paths = new Map<string, Record<string, JsonSchema>>()
  const add = (path: string, method: string, operation: JsonSchema): void => {
    paths.set(path, { ...paths.get(path), [method.toLowerCase()]: operation })
  }
  for (const route of routes) add(formatPath(route), route.method, cellOperation(route))
  for (const one of operationAnswers) add(one.path, one.method ?? 'GET', operation(one))
  return Object.fromEntries(paths)
}

function formatPath(route: Route): string {
  return fullPath(route).replaceAll(/\/:(\w+)/g, '/{$1}')
}

function cellOperation(route: Route): JsonSchema {
  const { operationId, summary, query, body } = route
  const names = [...formatPath(route).matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name)
  return {
    operationId,
    summary,
    tags: ['cells'],
    parameters: [
      ...names.map((name) => parameter('path', name, pathParameters[name])),
      ...Object.entries(query).map(([name, one]) => parameter('query', name, one)),
      ...(route.others === undefined ? [] : [otherParameters(route.others)]),
      ...(route.takesPosition === true ? [positionParameter] : []),
    ],
    ...(body !== undefined && {
      requestBody: {
        required: true,
        description: body.what,
        content: { 'application/json': { schema: ref(body.schema) } },
      },
    }),
    responses: buildResponses(route),
  }
}

const positionParameter: JsonSchema = {
  name: 'Trilithon-Position',
  in: 'header',
  required: false,
  schema: position,
  description: 'As an answer gave it: this one is of a state that is not older.',
}

function parameter(place: 'path' | 'query', name: string, of: Parameter | undefined): JsonSchema {
  return {
    name,
    in: place,
    required: place === 'path',
    description: of?.what ?? '',
    schema: of?.schema ?? {},
  }
}

/** Parameters whose names are not known beforehand, as members of an object. */
function otherParameters({ what, schema }: Parameter): JsonSchema {
  return {
    name: 'others',
    in: 'query',
    required: false,
    style: 'form',
    explode: true,
    description: what,
    schema,
  }
}

function ref(name: SchemaName): JsonSchema {
  return { $ref: `#/components/schemas/${name}` }
}

function buildResponses({ answers, problems, body }: Route): JsonSchema {
  const codes = [...new Set([...problems, ...commonProblems])]
  const statuses = [...new Set(codes.map((code) => statusByCode[code]))].sort((a, b) => a - b)
  const refusals = statuses.map((status): [string, JsonSchema] => {
    const named = codes.filter((code) => statusByCode[code] === status)
    const content = { 'application/problem+json': { schema: ref('Problem') } }
    return [String(status), { description: `The problem ${named.join(', ')}.`, content }]
  })
  if (body !== undefined) {
    const description =
      'The body is packed, not in UTF-8, or not said to be JSON: the problem invalid.'
    const content = { 'application/problem+json': { schema: ref('Problem') } }
    refusals.push(['415', { description, content }])
  }
  const unlisted = { 'application/problem+json': { schema: ref('Problem') } }
  return {
    ...Object.fromEntries(Object.entries(answers).map(([status, one]) => [status, answer(one)])),
    ...Object.fromEntries(refusals),
    default: { description: 'Another problem.', content: unlisted },
  }
}

function answer({ what, schema, hasPosition = false }: RouteAnswer): JsonSchema {
  return {
    description: what,
    content: { 'application/json': { schema: ref(schema) } },
    ...(hasPosition && {
      headers: {
        'Trilithon-Position': { description: 'How far the shard had come.', schema: position },
      },
    }),
  }
}

function operation({ operationId, summary, answers, ...one }: OperationAnswer): JsonSchema {
  const { method, query = {}, texts = {}, optional = {} } = one
  const more = Object.entries(optional).map(([name, { what }]) => [name, what] as const)
  const named = [...Object.entries(query), ...Object.entries(texts), ...more]
  return {
    operationId,
    summary,
    tags: ['operations'],
    // Those that begin something take the secret, as all that stands above this list.
    ...(method === undefined && { security: [{}] }),
    ...(named.length > 0 && {
      parameters: named.map(([name, what]) => ({
        ...parameter('query', name, { what, schema: { type: 'string' } }),
        required: name in texts,
      })),
    }),
    responses: Object.fromEntries(
      Object.entries(answers).map(([status, { what, type }]) => [
        status,
        { description: what, content: { [type]: { schema: pickSchema(operationId, type) } } },
      ]),
    ),
  }
}

function pickSchema(operationId: string, type: string): JsonSchema {
  if (type === 'application/problem+json') return ref('Problem')
  if (type !== 'application/json') return { type: 'string' }
  return operationId === 'getStatus' ? ref('Status') : { type: 'object' }
}
