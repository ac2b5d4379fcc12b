/**
 * Errors over HTTP: RFC 9457 problem details, with the code of `base/errors.ts` and whether the
 * same request may be sent again. The status is a function of the code, but for what HTTP itself
 * has a better word for (405, 415).
 */
import { shardOfGroup } from '../cells/cell-table.ts'
import { retryOverHttp, type StoreErrorCode, type UnreadyIndex } from '../base/errors.ts'
import { bytesOfGroup, type GroupId } from '../base/ids.ts'
import { problem, type Problem } from '../base/problem.ts'

export const statusByCode: Readonly<Record<StoreErrorCode, number>> = {
  contention: 409,
  immutable: 409,
  unavailable: 503,
  'unknown-outcome': 504,
  timeout: 504,
  'not-found': 404,
  'already-exists': 409,
  invalid: 400,
  'schema-mismatch': 422,
  'too-large': 413,
  overloaded: 503,
  'snapshot-too-old': 410,
  expired: 410,
  closed: 503,
  corrupt: 500,
  forbidden: 403,
  internal: 500,
}

const titleByCode: Readonly<Record<StoreErrorCode, string>> = {
  contention: 'Other writers were faster',
  immutable: 'It exists with another content',
  unavailable: 'Too few replicas can be reached',
  'unknown-outcome': 'Whether it was written is not known',
  timeout: 'It took too long',
  'not-found': 'There is nothing here',
  'already-exists': 'It exists already',
  invalid: 'The request is wrong',
  'schema-mismatch': 'The request does not fit the schema',
  'too-large': 'It is too large',
  overloaded: 'There is too much to do',
  'snapshot-too-old': 'The state asked for is gone',
  expired: 'The request is out of date',
  closed: 'This node is stopping',
  corrupt: 'Stored data are damaged',
  forbidden: 'It is not allowed',
  internal: 'The program met an error of its own',
}

/** The members of a problem, as they stand in JSON. */
export interface ProblemDetails {
  readonly type: string
  readonly title: string
  readonly status: number
  readonly detail: string
  readonly instance?: string
  readonly code: StoreErrorCode
  readonly retry: string
  /** `cells/DATASTORE/SHARD`, when one group is concerned. */
  readonly group?: string
  readonly limit?: string
  readonly limitValue?: number
  readonly actual?: number
  readonly attempts?: number
  /** Of `overloaded`: asked sooner it would be refused again, as it seems; `Retry-After` says it in whole seconds. */
  readonly retryAfterMs?: number
  /** The state of the index of the query, which is not ready: a retry helps once an operator has built it. */
  readonly index?: UnreadyIndex
}

export function problemDetails(
  of: Problem,
  status: number = statusByCode[of.code],
  instance?: string,
): ProblemDetails {
  const { group, limit, limitValue, actual, attempts, index, retryAfterMs } = of.detail
  return {
    type: `urn:trilithon:problem:${of.code}`,
    title: titleByCode[of.code],
    status,
    detail: of.message,
    ...(instance !== undefined && { instance }),
    code: of.code,
    retry: retryOverHttp[of.code],
    ...(group !== undefined && { group: groupText(group) }),
    ...(limit !== undefined && { limit }),
    ...(limitValue !== undefined && { limitValue }),
    ...(actual !== undefined && { actual }),
    ...(attempts !== undefined && { attempts }),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
    ...(index !== undefined && { index }),
  }
}

/** An error that the gateway throws inside and answers outside. */
export class HttpProblem extends Error {
  override readonly name = 'HttpProblem'
  readonly problem: Problem
  readonly status: number
  readonly headers: Readonly<Record<string, string>>

  constructor(
    of: Problem,
    status: number = statusByCode[of.code],
    headers: Readonly<Record<string, string>> = {},
  ) {
    super(of.message)
    this.problem = of
    this.status = status
    this.headers = headers
  }
}

export function refuse(message: string): never {
  throw new HttpProblem(problem('invalid', message))
}

export function problemResponse(
  of: Problem,
  instance: string,
  status: number = statusByCode[of.code],
  headers: Readonly<Record<string, string>> = {},
): Response {
  const seconds = Math.max(1, Math.ceil((of.detail.retryAfterMs ?? 0) / 1_000))
  const isToWait = status === 503 || of.code === 'contention'
  const wait: Record<string, string> = isToWait ? { 'retry-after': String(seconds) } : {}
  return new Response(`${JSON.stringify(problemDetails(of, status, instance))}\n`, {
    status,
    headers: { 'content-type': 'application/problem+json', ...wait, ...headers },
  })
}

/** HTTP is about cells: a group is a shard, told by its name. */
function groupText(group: GroupId): string {
  const shard = shardOfGroup(group)
  return shard === undefined
    ? Buffer.from(bytesOfGroup(group)).toString('hex')
    : `cells/${shard.datastore}/${shard.shard}`
}
