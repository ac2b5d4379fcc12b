/** The orderly end of a node's process, whatever its stores do. */
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { StoreError } from '../../src/base/errors.ts'
import { clusterId, nodeId } from '../../src/base/ids.ts'
import { defaultLimits } from '../../src/base/limits.ts'
import { mainSet } from '../../src/config/values.ts'
import { Daemon } from '../../src/node/daemon.ts'

let folder = ''
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'trilithon-daemon-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

/** A node alone; its HTTP requests are answered by `answer`. */
function startDaemon(answer: () => Promise<Response>): Promise<Daemon> {
  const node = nodeId('a')
  return Daemon.start({
    config: {
      ...{ cluster: clusterId('test'), node, data: folder, limits: defaultLimits },
      listen: { host: '127.0.0.1', port: 0 },
      nodes: [{ id: node, url: 'http://127.0.0.1:1', set: mainSet }],
      ...{ secretFile: undefined, tls: undefined, insecure: false, logLevel: 'error' },
      ...{ drainTimeoutMs: 5_000, bufferCopies: 0 },
    },
    files: { secret: undefined, tls: undefined },
    logger: pino({ level: 'silent' }),
    version: '0',
    gateway: () => answer,
    portFlag: '--port',
  })
}

const damaged = new StoreError('corrupt', 'a row is damaged', { store: 'data' })

test('a node whose drain fails while a request is in flight closes its stores all the same', async () => {
  let finish = (): void => undefined
  const answered = new Promise<void>((resolve) => {
    finish = resolve
  })
  let arrive = (): void => undefined
  const arrived = new Promise<void>((resolve) => {
    arrive = resolve
  })
  const daemon = await startDaemon(async () => {
    arrive()
    await answered
    return new Response('done')
  })
  Object.assign(daemon.node, { drain: () => Promise.reject(damaged) })
  const asked = fetch(`${daemon.url}/v1/anything`)
  await arrived
  const stopped = daemon.stop()
  // An unhandled rejection would be noticed by now.
  await new Promise((resolve) => setTimeout(resolve, 50))
  finish()
  expect(await (await asked).text()).toBe('done')
  await stopped
  expect(await readdir(folder)).not.toContain('owner.json')
})

test('a second signal to stop leaves the node draining', async () => {
  const daemon = await startDaemon(() => Promise.resolve(new Response()))
  const order: string[] = []
  let finish = (): void => undefined
  const drained = new Promise<void>((resolve) => {
    finish = resolve
  })
  Object.assign(daemon.node, { drain: () => drained.then(() => void order.push('drained')) })
  const both = [daemon.stop(), daemon.stop()].map((one) => one.then(() => order.push('stopped')))
  await new Promise((resolve) => setTimeout(resolve, 100))
  expect(await readdir(folder)).toContain('owner.json')
  finish()
  await Promise.all(both)
  expect(order).toEqual(['drained', 'stopped', 'stopped'])
})
