/**
 * A route and its description: its parameters, bodies and answers, stated once. The server checks requests by
 * it, and the OpenAPI document is made from it.
 */
import type { StoreErrorCode } from '../base/errors.ts'
import type { Handler } from './exchange.ts'
import type { JsonSchema, SchemaName } from './schemas.ts'

export interface Parameter {
  readonly what: string
  readonly schema: JsonSchema
}

export interface RouteAnswer {
  readonly what: string
  readonly schema: SchemaName
  /** The answer is of one shard, and says how far that had come. */
  readonly hasPosition?: boolean
}

export interface Route {
  readonly method: 'GET' | 'PUT' | 'POST' | 'DELETE'
  /** Below `/v1/datastores/:datastore`. */
  readonly path: string
  /** It is of no one datastore: its path is below `/v1/datastores`. */
  readonly isOfAll?: true
  readonly operationId: string
  readonly summary: string
  /** The query parameters that it knows; any other one is refused. */
  readonly query: Readonly<Record<string, Parameter>>
  /** The form of other parameters, where the data says their names. */
  readonly others?: Parameter
  /** Reads may name the state that they are to see at least, by `Trilithon-Position`. */
  readonly takesPosition?: boolean
  readonly body?: { readonly schema: SchemaName; readonly what: string }
  readonly answers: Readonly<Record<number, RouteAnswer>>
  /** Problems that are the route's own; any may answer those that all have. */
  readonly problems: readonly StoreErrorCode[]
  readonly handler: Handler
}

/** With `:name` where a segment is a parameter. */
export function fullPath({ path, isOfAll }: Pick<Route, 'path' | 'isOfAll'>): string {
  return isOfAll === true ? `/v1/datastores${path}` : `/v1/datastores/:datastore${path}`
}
