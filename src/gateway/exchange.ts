/** One request being answered: asking the cells in its time, and saying the answer as JSON. */
import type { Context } from 'hono'
import { missingItem } from '../cells/batch.ts'
import type { Answer, CellOperation, CellService, ReadFrom } from '../cells/operation.ts'
import { toStoreError, unwrapOutcome, type Outcome } from '../base/problem.ts'
import type { Pace } from '../ports/pace.ts'
import type { Datastores } from '../client/datastores.ts'
import { notAnAnswer } from '../client/call.ts'
import type { Query } from './parameters.ts'
import { refuse } from './problems.ts'
import type { BodyShare } from './request-body.ts'
import { positionHeaders, parsePositions } from './session-position.ts'

/** A request being answered: its cells, and the time it has. */
export interface Exchange {
  readonly context: Context
  /** Its parameters, all of which its route knows. */
  readonly query: Query
  /** Room for its body, among those of all requests at work. */
  readonly room: BodyShare
  readonly cells: CellService
  readonly datastores: Datastores | undefined
  readonly timeoutMs: number
  /** How it goes on among others. */
  readonly pace: Pace
  /** Ends it when its connection breaks off. */
  watchConnection(): void
}

export type Handler = (exchange: Exchange) => Promise<Response>

export function segment(exchange: Exchange, name: string): string {
  return exchange.context.req.param(name) ?? refuse(`the URL lacks its ${name}`)
}

export function readFrom(exchange: Exchange): ReadFrom {
  const { query, context } = exchange
  const maxStalenessMs = query.number('max_staleness_ms')
  const level = query.text('read') ?? (maxStalenessMs === undefined ? 'current' : 'snapshot')
  if (level !== 'current' && level !== 'snapshot') return refuse('read must be current or snapshot')
  const atLeast = parsePositions(context.req.raw, segment(exchange, 'datastore'))
  if (maxStalenessMs === undefined) return { level, atLeast }
  if (level === 'snapshot') return { level, atLeast, maxStalenessMs }
  return refuse('max_staleness_ms goes with read=snapshot, not with read=current')
}

/** The answer to an operation of this kind; throws the problem when it is one. */
export async function ask<Kind extends CellOperation['kind']>(
  exchange: Exchange,
  operation: CellOperation & { readonly kind: Kind },
  waitMs = 0,
): Promise<{
  readonly answer: Answer & { readonly kind: Kind }
  readonly headers: Record<string, string>
}> {
  const timeoutMs = exchange.timeoutMs + waitMs
  const { cells, pace } = exchange
  // It costs something to listen to, so not for what is over at once.
  const isLight = 'items' in operation && operation.items.length === 1 && waitMs === 0
  if (!isLight) exchange.watchConnection()
  const { answer, positions } = await cells.execute(operation, { timeoutMs, pace })
  if (answer.kind === 'problem') throw toStoreError(answer.problem)
  if (!isAnswer(answer, operation.kind)) throw toStoreError(notAnAnswer)
  return { answer, headers: positionHeaders(operation.datastore, positions) }
}

function isAnswer<Kind extends string>(
  answer: Answer,
  kind: Kind,
): answer is Answer & { readonly kind: Kind } {
  return answer.kind === kind
}

export function only<Value>([item = missingItem]: readonly Outcome<Value>[]): Value {
  return unwrapOutcome(item)
}

export function json(
  body: object,
  status: number,
  headers: Readonly<Record<string, string>>,
): Response {
  return jsonText(JSON.stringify(body), status, headers)
}

export function jsonText(
  text: string,
  status: number,
  headers: Readonly<Record<string, string>>,
): Response {
  return new Response(`${text}\n`, {
    status,
    headers: { 'content-type': 'application/json', ...headers },
  })
}
