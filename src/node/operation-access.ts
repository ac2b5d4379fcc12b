/** The right to requests of operators that want a part of the node, and the refusals of others in words. */
import type { Context } from 'hono'
import { StoreError } from '../base/errors.ts'
import type { OperationAnswer } from './operation-answer.ts'
import { problemContentType, problemPage, unauthorized } from './refusals.ts'

/** A part of the node that operators ask something of. */
export interface OperationAccess<Part extends object> {
  /** Whether the request may begin something, and be told names of groups. */
  mayUse(request: Request): boolean
  /** Undefined while the node serves nothing. */
  find(): Part | undefined
}

export const jsonType = 'application/json'

/** The refusals of each request that wants a part of the node. */
export const refusals: OperationAnswer['answers'] = {
  404: { what: 'A gateway has no stores.', type: problemContentType },
  503: { what: 'The stores are being opened, or closed.', type: problemContentType },
}

/** Those of a request that changes something, beside them. */
export const refusalsOfTrust: OperationAnswer['answers'] = {
  400: { what: 'The request has a body.', type: problemContentType },
  401: { what: 'The secret is missing.', type: problemContentType },
}

/** The part, or the answer that refuses the request. */
export function findPart<Part extends object>(
  access: OperationAccess<Part> | undefined,
  context: Context,
): Part | Response {
  if (access === undefined) {
    return problem(context, 404, 'not-found', 'a gateway has no stores: ask a node')
  }
  const text = 'the stores are being opened, or closed: ask again'
  return access.find() ?? problem(context, 503, 'unavailable', text)
}

/** The same of a request that takes the cluster's secret, and no body. */
export function findTrusted<Part extends object>(
  access: OperationAccess<Part> | undefined,
  context: Context,
): Part | Response {
  const request = context.req.raw
  if (access !== undefined && !access.mayUse(request)) return unauthorized()
  const hasBody = (request.headers.get('content-length') ?? '0') !== '0'
  if (hasBody || request.headers.has('transfer-encoding')) {
    return problem(context, 400, 'invalid', 'this request takes no body')
  }
  return findPart(access, context)
}

const statusByRefusal: Readonly<Record<string, 400 | 404 | 503>> = {
  ...{ invalid: 400, 'not-found': 404, unavailable: 503 },
}

/** A refusal of the part as a problem page. Throws any other error. */
export function refusalPage(context: Context, error: unknown): Response {
  if (!(error instanceof StoreError)) throw error
  const status = statusByRefusal[error.code]
  if (status === undefined) throw error
  return problem(context, status, error.code, error.message)
}

/** A text of the request for a message, cut where it is long. */
export function quoted(text: string): string {
  return JSON.stringify(text.slice(0, 80))
}

function problem(
  context: Context,
  status: 400 | 404 | 503,
  code: StoreError['code'],
  text: string,
): Response {
  const type = { 'content-type': problemContentType }
  return context.body(problemPage(status, code, text), status, type)
}
