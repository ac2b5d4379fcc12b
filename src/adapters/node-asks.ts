/** A request to one node about itself over HTTP, and its answer or the reason why there is none. */
import { causeOfError, causeOfStatus } from './link-causes.ts'

export interface NodeRequest {
  readonly method: 'GET' | 'POST'
  /** Of the node. */
  readonly url: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly timeoutMs: number
  /** Ends the request early. */
  readonly signal?: AbortSignal
}

export interface NodeReply {
  /** A JSON object. Absent: the node gave none. */
  readonly body?: Readonly<Record<string, unknown>>
  /** Why not. */
  readonly why?: string
  /** It answered in words that it will not. */
  readonly isRefused?: boolean
}

/** Never rejects. */
export async function askNode(request: NodeRequest): Promise<NodeReply> {
  const { method, url, path, headers, timeoutMs } = request
  try {
    const late = AbortSignal.timeout(timeoutMs)
    const signal = request.signal === undefined ? late : AbortSignal.any([late, request.signal])
    const response = await fetch(`${url}${path}`, { method, signal, headers })
    const body: unknown = await response.json().catch(() => undefined)
    if (response.ok && isObject(body)) return { body }
    if (isObject(body) && typeof body['detail'] === 'string') {
      return { why: body['detail'], isRefused: response.status < 500 }
    }
    return { why: causeOfStatus(response.status, false, url).reason }
  } catch (error) {
    const isLate = error instanceof DOMException && error.name === 'TimeoutError'
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : undefined
    const why = cause === undefined ? String(error) : causeOfError(cause, url).reason
    return { why: isLate ? 'no answer in time' : why }
  }
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
