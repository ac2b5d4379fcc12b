/**
 * What operators and their tools ask of a node: `/livez`, `/readyz?verbose`, `/metrics`, `/status`.
 * These answer from the first moment on, while the stores are still being opened, and while draining.
 */
import { Hono } from 'hono'
import type { Figure, NodeMetrics } from './metrics.ts'
import { readinessChecks, statusFigures, statusReport, type StatusParts } from './status.ts'

const operationPaths = ['/', '/livez', '/readyz', '/metrics', '/status']

/** Whether a request is answered here, and not by the gateway. */
export function isOperation(request: Request): boolean {
  return operationPaths.includes(new URL(request.url).pathname)
}

export function operationRoutes(
  parts: () => StatusParts,
  metrics: NodeMetrics,
  linkFigures: () => readonly Figure[],
): Hono {
  const app = new Hono()
  app.get('/', (context) => {
    const { node, cluster, version } = parts()
    const text = `trilithon ${version}: node ${node} of cluster ${cluster}\n`
    return context.text(`${text}/v1/datastores/… /livez /readyz?verbose /metrics /status\n`)
  })
  app.get('/livez', (context) => {
    const isAlive = parts().state !== 'failed'
    return context.text(isAlive ? 'ok\n' : 'failed\n', isAlive ? 200 : 503)
  })
  app.get('/readyz', (context) => {
    const checks = readinessChecks(parts())
    const isReady = checks.every(({ ok }) => ok)
    const lines = checks.map(({ name, ok, text }) => `[${ok ? '+' : '-'}] ${name}: ${text}\n`)
    const isVerbose = context.req.query('verbose') !== undefined
    const verdict = isReady ? 'ready\n' : 'not ready\n'
    const text = isVerbose || !isReady ? lines.join('') + verdict : verdict
    return context.text(text, isReady ? 200 : 503)
  })
  app.get('/status', (context) => context.json(statusReport(parts())))
  app.get('/metrics', async (context) => {
    const { text, contentType } = await metrics.page([...statusFigures(parts()), ...linkFigures()])
    return context.body(text, 200, { 'content-type': contentType })
  })
  return app
}
