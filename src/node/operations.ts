/**
 * The requests that operators and their tools send to a process: `/livez`, `/readyz?verbose`, `/metrics`,
 * `/status`, `/erase`, and those of `upkeep-routes.ts`, `members-routes.ts`, `upgrade-routes.ts` and `groups-routes.ts`. These answer from the first moment on, while
 * a node's stores are still being opened, and while draining.
 */
import { Hono, type Context } from 'hono'
import { firstVersion, ownVersions } from '../base/cluster-version.ts'
import type { Clock } from '../ports/clock.ts'
import { addGroupsRoutes, groupsAnswers, type GroupsAccess } from './groups-routes.ts'
import { addMembersRoutes, membersAnswers, type MembersAccess } from './members-routes.ts'
import type { Figure, NodeMetrics } from './metrics.ts'
import { findParameterProblem, type OperationAnswer } from './operation-answer.ts'
import { problemContentType, problemPage } from './refusals.ts'
import type { Check } from './status.ts'
import { addSetsRoutes, setsAnswers } from './sets-routes.ts'
import { addUpgradeRoutes, upgradeAnswers, type UpgradeAccess } from './upgrade-routes.ts'
import { addUpkeepRoutes, upkeepAnswers, type UpkeepAccess } from './upkeep-routes.ts'

const text = 'text/plain'

export const operationAnswers: readonly OperationAnswer[] = [
  {
    path: '/',
    operationId: 'greet',
    summary: 'Who this is, and what can be asked',
    answers: { 200: { what: 'A few words.', type: text } },
  },
  {
    path: '/livez',
    operationId: 'isAlive',
    summary: 'Whether the process is of use',
    answers: { 200: { what: 'It is.', type: text }, 503: { what: 'It has failed.', type: text } },
  },
  {
    path: '/readyz',
    operationId: 'isReady',
    summary: 'Whether requests are taken and can be answered',
    query: { verbose: 'Tells every check.' },
    answers: { 200: { what: 'They are.', type: text }, 503: { what: 'Not now.', type: text } },
  },
  {
    path: '/status',
    operationId: 'getStatus',
    summary: 'State, nodes and figures, and in words what is wrong and what to do',
    answers: { 200: { what: 'The status.', type: 'application/json' } },
  },
  {
    path: '/erase',
    operationId: 'getErase',
    summary: 'Which deletions still stand in files of this node, where, why, and until when',
    answers: {
      200: { what: 'The rounds of deletions.', type: 'application/json' },
      404: { what: 'A gateway has no files.', type: problemContentType },
      503: { what: 'The stores are being opened.', type: problemContentType },
    },
  },
  {
    path: '/metrics',
    operationId: 'getMetrics',
    summary: 'Figures in the Prometheus text format',
    answers: { 200: { what: 'The figures.', type: text } },
  },
  ...upkeepAnswers,
  ...membersAnswers,
  ...groupsAnswers,
  ...setsAnswers,
  ...upgradeAnswers,
]

const operationPaths: ReadonlySet<string> = new Set(operationAnswers.map(({ path }) => path))
/** Those that builds of the first cluster version know. */
const firstPaths: ReadonlySet<string> = new Set(
  operationAnswers.filter(({ since }) => since === undefined).map(({ path }) => path),
)

/** Whether a request is answered here, and not by the gateway. `build`: the last cluster version that the build knows. */
export function isOperation(request: Request, build: number = ownVersions.max): boolean {
  const paths = build > firstVersion ? operationPaths : firstPaths
  return paths.has(new URL(request.url).pathname)
}

/** The answers of a process to questions about itself. */
export interface Self {
  /** A few words that identify it. */
  name(): string
  isAlive(): boolean
  checks(): readonly Check[]
  status(): object
  /** Deletions whose bytes still stand in the files of the node; undefined while its stores are being opened. Absent: it has no files. */
  erase?(): object | undefined
  /** Its comparisons and scrubs. Absent: it has no stores. */
  readonly upkeep?: UpkeepAccess
  /** The voters of its replica set. Absent: it is in none. */
  readonly members?: MembersAccess
  /** The cluster version and the builds of its replica set. Absent: it is in none. */
  readonly upgrade?: UpgradeAccess
  /** The last cluster version that the build knows which it acts as; absent: that of this build. */
  readonly build?: number | undefined
  /** Where groups are. Absent: it has no configuration of nodes. */
  readonly groups?: GroupsAccess
  figures(): readonly Figure[]
}

/**
 * Pages that take a while to make, and that a caller may request at any rate. Each is shown for
 * `agesPerMaking` times as long as it took to make. So making pages takes no more than that part of all time.
 */
const agesPerMaking = 20

export function sharing<Page>(
  clock: Pick<Clock, 'monotonicMs'>,
  make: () => Promise<Page>,
): () => Promise<Page> {
  let page: Promise<Page> | undefined
  let untilMs = 0
  return () => {
    const fromMs = clock.monotonicMs()
    if (page !== undefined && fromMs < untilMs) return page
    untilMs = Number.POSITIVE_INFINITY
    const making = make()
    page = making
    const age = (): number => clock.monotonicMs() + agesPerMaking * (clock.monotonicMs() - fromMs)
    making.then(
      () => (untilMs = age()),
      // A page that failed is shown to those who have waited for it, and made anew for the next one.
      () => (page = undefined),
    )
    return page
  }
}

/** Why the request is none of these: its method, else its parameters. An unknown one is refused here as everywhere. */
function refuse(context: Context, build: number | undefined): Response | undefined {
  const { path, raw } = context.req
  const answers = operationAnswers.filter((one) => one.path === path)
  if (answers.length === 0) return undefined
  const method = raw.method === 'HEAD' ? 'GET' : raw.method
  const asked = answers.find((one) => (one.method ?? 'GET') === method)
  if (asked === undefined) {
    const methods = answers.map((one) => one.method ?? 'GET')
    const words = `${path} is asked with ${methods.join(' or ')}, not ${raw.method}`
    const headers = { 'content-type': problemContentType, allow: methods.join(', ') }
    return context.body(problemPage(405, 'invalid', words), 405, headers)
  }
  const wrong = findParameterProblem(asked, new URL(raw.url).searchParams, build)
  return wrong === undefined ? undefined : context.text(`${wrong}\n`, 400)
}

export function operationRoutes(
  self: Self,
  metrics: NodeMetrics,
  clock: Pick<Clock, 'monotonicMs'>,
): Hono {
  const metricsPage = sharing(clock, () => metrics.page(self.figures()))
  const statusPage = sharing(clock, async () => JSON.stringify(self.status()))
  const app = new Hono()
  app.use(async (context, next) => refuse(context, self.build) ?? next())
  app.get('/', (context) => {
    const paths =
      '/v1/datastores/… /openapi.json /livez /readyz?verbose /metrics /status /erase /compare /scrub /members /groups/where /upgrade'
    return context.text(`${self.name()}\n${paths}\n`)
  })
  app.get('/livez', (context) => {
    const isAlive = self.isAlive()
    return context.text(isAlive ? 'ok\n' : 'failed\n', isAlive ? 200 : 503)
  })
  app.get('/readyz', (context) => {
    const checks = self.checks()
    const isReady = checks.every(({ ok }) => ok)
    const lines = checks.map(({ name, ok, text }) => `[${ok ? '+' : '-'}] ${name}: ${text}\n`)
    const isVerbose = (context.req.query('verbose') ?? 'false') !== 'false'
    const verdict = isReady ? 'ready\n' : 'not ready\n'
    const told = isVerbose || !isReady ? lines.join('') + verdict : verdict
    return context.text(told, isReady ? 200 : 503)
  })
  app.get('/status', async (context) =>
    context.body(await statusPage(), 200, { 'content-type': 'application/json' }),
  )
  app.get('/erase', (context) => {
    const erase = self.erase?.()
    if (erase !== undefined) return context.json(erase)
    const type = { 'content-type': problemContentType }
    return self.erase === undefined
      ? context.body(problemPage(404, 'not-found', 'a gateway has no files: ask a node'), 404, type)
      : context.body(
          problemPage(503, 'unavailable', 'the stores are being opened: ask again'),
          503,
          type,
        )
  })
  app.get('/metrics', async (context) => {
    const page = await metricsPage()
    return context.body(page.text, 200, { 'content-type': page.contentType })
  })
  addUpkeepRoutes(app, self.upkeep)
  addMembersRoutes(app, self.members)
  addGroupsRoutes(app, self.groups)
  addSetsRoutes(app, self.groups)
  addUpgradeRoutes(app, self.upgrade)
  return app
}
