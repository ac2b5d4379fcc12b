/** The answers of a process over HTTP before it looks at anything: problems as in RFC 9457. */
import { retryOverHttp, type StoreErrorCode } from '../base/errors.ts'
import type { NodeState } from './status.ts'

/** The answer while the process serves no requests; `what` names the process. */
export function notServing(state: NodeState, what: string): Response {
  const isStarting = state === 'starting'
  const detail = isStarting
    ? `this ${what} is starting; ask another one, or this one in a moment`
    : `this ${what} is stopping; ask another one`
  const code = isStarting ? 'unavailable' : 'closed'
  return problemResponse(503, code, detail, { 'retry-after': '1' })
}

export function unauthorized(): Response {
  const detail = 'this cluster has a secret; send it as "Authorization: Bearer SECRET"'
  return problemResponse(401, 'forbidden', detail, { 'www-authenticate': 'Bearer' })
}

/** To who has no room here, among others; `text` says why and what to do. */
export function overloaded(text: string): Response {
  return problemResponse(503, 'overloaded', text, { 'retry-after': '1', connection: 'close' })
}

export const problemContentType = 'application/problem+json'

/** RFC 9457, as the gateway answers. */
function problemResponse(
  status: number,
  code: StoreErrorCode,
  detail: string,
  headers: Readonly<Record<string, string>>,
): Response {
  return new Response(problemPage(status, code, detail), {
    status,
    headers: { 'content-type': problemContentType, ...headers },
  })
}

/** The body alone, also of a refusal that is made before there is a request to answer. */
export function problemPage(status: number, code: StoreErrorCode, detail: string): string {
  const type = `urn:trilithon:problem:${code}`
  return JSON.stringify({ type, title: detail, status, detail, code, retry: retryOverHttp[code] })
}
