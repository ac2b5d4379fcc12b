/**
 * HTTP as frames of the simulated network: each request and each answer is one frame. The network
 * replaces the socket below; the gateway's real code reads and answers requests.
 */
import type { FrameCodec } from '../world/network.ts'

export interface HttpRequest {
  readonly method: 'GET' | 'PUT' | 'POST'
  /** With its query. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  /** JSON. */
  readonly body?: string
}

export interface HttpAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** `id`: of the request, chosen by its sender. */
export type HttpFrame =
  | { readonly kind: 'request'; readonly id: number; readonly request: HttpRequest }
  | { readonly kind: 'answer'; readonly id: number; readonly answer: HttpAnswer }

export const httpCodec: FrameCodec<HttpFrame> = {
  encode: (frame) => Buffer.from(JSON.stringify(frame)),
  decode(bytes) {
    const frame: HttpFrame = JSON.parse(Buffer.from(bytes).toString())
    return frame
  },
}

export type HttpHandler = (request: Request) => Response | Promise<Response>

/** Has a request answered by an application, as a server would. */
export async function answered(
  serve: HttpHandler,
  host: string,
  { method, path, headers, body }: HttpRequest,
): Promise<HttpAnswer> {
  const init = { method, headers, ...(body !== undefined && { body }) }
  const response = await serve(new Request(`http://${host}${path}`, init))
  const told = Object.fromEntries([...response.headers].toSorted(([a], [b]) => (a < b ? -1 : 1)))
  return { status: response.status, headers: told, body: await response.text() }
}
