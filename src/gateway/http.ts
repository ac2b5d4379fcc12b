/**
 * Cells over HTTP: plain JSON in and out, problems as in RFC 9457. A function
 * of a `CellService`, so that it runs in a node as well as in front of several.
 *
 * Everything is bounded: bodies are read up to their limit, alone and together, pages end at theirs.
 */
import { Hono, type Context } from 'hono'
import { assert } from '../base/assert.ts'
import { StoreError } from '../base/errors.ts'
import type { Datastores } from '../client/datastores.ts'
import type { CellService } from '../cells/operation.ts'
import type { NoteBug } from '../node/bugs.ts'
import type { Fetch } from '../node/http-server.ts'
import type { Admission, LaneName } from '../node/admission.ts'
import { endOfProblem } from '../node/overloaded.ts'
import type { WorkEnd } from '../node/work-limit.ts'
import { toStoreError, problem, toProblem } from '../base/problem.ts'
import type { Slices } from '../ports/slices.ts'
import { requireWholeWrite } from './conditions.ts'
import { laneOfHttp, refusedEarly } from './early-refusal.ts'
import { openApiDocument } from './openapi.ts'
import { Query } from './parameters.ts'
import { HttpProblem, problemResponse } from './problems.ts'
import { BodyRoom } from './request-body.ts'
import { fullPath } from './route.ts'
import { routes } from './routes.ts'

export interface GatewayOptions {
  readonly cells: CellService
  /** The declared ones. Absent: requests for them are refused. */
  readonly datastores?: Datastores
  /** One request's time, waiting for new cells not counted; default 10 seconds. */
  readonly timeoutMs?: number
  /** Requests at work; above it they are refused. Default 5000. */
  readonly requestsMax?: number
  /** Of the process, which shares them with client links. */
  readonly slices: Slices
  /** Says when a request begins, as for those that come over links; absent: all begin as they come. */
  readonly admission?: Admission
  /** Room for their bodies together; default 256 MiB. */
  readonly bodies?: BodyRoom
  /** Of the program, for its description. */
  readonly version?: string
  /** Of what only a bug can cause: the request is answered with what it returns. */
  readonly noteBug: NoteBug
}

const timeoutMsDefault = 10_000
const requestsMaxDefault = 5_000
const bodiesBytesMaxDefault: number = 256 * 1024 * 1024

const retryAfterMsDefault = 1_000

const openApiPath = '/openapi.json'

/** A request that there is no room for is refused before it is routed. */
export function gatewayFetch(options: GatewayOptions): Fetch {
  const app = createGateway(options)
  return (request) => refusedEarly(options.admission, request) ?? app.fetch(request)
}

export function createGateway(options: GatewayOptions): Hono {
  const { cells, datastores, timeoutMs = timeoutMsDefault } = options
  const served = { cells, datastores }
  const { bodies = new BodyRoom(bodiesBytesMaxDefault), version = '0' } = options
  const app = new Hono()
  limitRequests(app, options)
  for (const route of routes) {
    app.on(route.method, fullPath(route), async (context) => {
      const { url } = context.req
      const known = Object.keys(route.query)
      const others = route.others === undefined ? [] : new URL(url).searchParams.keys()
      const query = new Query(url, [...known, ...others])
      const lane = laneOfHttp(route.method, route.path)
      if (lane === 'writes') requireWholeWrite(context.req.raw)
      return admitted(options, lane, timeoutMs, async (leftMs) => {
        const room = bodies.open()
        const line = options.slices.open()
        const pace = line.task()
        const gone = (): void => line.close()
        let isOver = false
        let unwatch = (): void => undefined
        const watchConnection = (): void => {
          assert(!isOver, 'GATE-3: a request listens to its connection when it is over')
          const { signal } = context.req.raw
          if (signal.aborted) return gone()
          signal.addEventListener('abort', gone, { once: true })
          unwatch = () => signal.removeEventListener('abort', gone)
        }
        const exchange = {
          context,
          ...served,
          timeoutMs: leftMs,
          query,
          room,
          pace,
          watchConnection,
        }
        try {
          return await route.handler(exchange)
        } finally {
          // Node.js holds the signals of requests: one that is listened to keeps its answer for good.
          isOver = true
          unwatch()
          pace.end()
          room.close()
        }
      })
    })
  }
  app.get(openApiPath, (context) => description(context, version))
  for (const path of new Set(routes.map(fullPath))) {
    app.all(path, (context) => wrongMethod(context, path))
  }
  app.notFound((context) => {
    const what = `there is nothing at ${context.req.path.slice(0, 200)}; see the HTTP reference`
    return problemResponse(problem('not-found', what), context.req.path)
  })
  app.onError((error, context) => {
    const instance = context.req.path
    if (error instanceof HttpProblem) {
      return problemResponse(error.problem, instance, error.status, error.headers)
    }
    if (error instanceof StoreError) return problemResponse(toProblem(error), instance)
    return problemResponse(options.noteBug('http', error), instance)
  })
  return app
}

/** Refuses requests while as many as there may be are at work. */
function limitRequests(app: Hono, { requestsMax = requestsMaxDefault }: GatewayOptions): void {
  let requests = 0
  app.use(async (_, next) => {
    if (requests >= requestsMax) {
      const message = 'too many requests are at work here; try again later'
      throw new StoreError('overloaded', message, { retryAfterMs: retryAfterMsDefault })
    }
    requests += 1
    try {
      await next()
    } finally {
      requests -= 1
    }
  })
}

function description(context: Context, version: string): Response {
  // It takes no parameters.
  Query.none(context.req.url)
  return context.json(openApiDocument(version))
}

/** Has it wait for its turn, and tells what became of it; throws `overloaded` when its turn does not come. */
async function admitted(
  { admission }: GatewayOptions,
  lane: LaneName,
  timeoutMs: number,
  handle: (leftMs: number) => Promise<Response>,
): Promise<Response> {
  if (admission === undefined) return handle(timeoutMs)
  const fromMs = admission.nowMs
  const pass = await admission.pass(lane, timeoutMs)
  if ('code' in pass) throw toStoreError(pass)
  let end: WorkEnd = 'failed'
  try {
    const waitedMs = Math.floor(admission.nowMs - fromMs)
    const response = await handle(Math.max(1, timeoutMs - waitedMs))
    if (response.status < 500) end = 'done'
    return response
  } catch (error) {
    if (error instanceof StoreError) end = endOfProblem(toProblem(error))
    throw error
  } finally {
    pass.leave(end)
  }
}

function wrongMethod(context: Context, path: string): Response {
  const methods = routes.filter((route) => fullPath(route) === path).map(({ method }) => method)
  const allow = methods.includes('GET') ? [...methods, 'HEAD'].join(', ') : methods.join(', ')
  const wrong = problem('invalid', `${context.req.method} is not possible here, only ${allow}`)
  return problemResponse(wrong, context.req.path, 405, { allow })
}
