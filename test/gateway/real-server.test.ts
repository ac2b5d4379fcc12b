import { createServer, request as httpRequest, type Server } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import { afterEach, expect, test } from 'vitest'
import { systemClock } from '../../src/adapters/system-clock.ts'
import { systemRandom } from '../../src/adapters/system-random.ts'
import { CellStore } from '../../src/cells/cell-store.ts'
import { Slices } from '../../src/ports/slices.ts'
import { createGateway } from '../../src/gateway/http.ts'
import { BodyRoom } from '../../src/gateway/request-body.ts'
import { noteBug } from '../bugs.ts'
import { rowKey } from '../cells/kit.ts'
import { MemoryLog } from '../cells/memory-log.ts'
import { MemoryReplica } from '../cells/memory-replica.ts'

const servers: Server[] = []

afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    await new Promise<void>((resolve) => void server.close(() => resolve()))
  }
})

async function startServer(bodies: BodyRoom = new BodyRoom(64 * 1024 * 1024)): Promise<{
  readonly port: number
  readonly log: MemoryLog
  readonly replica: MemoryReplica
}> {
  const log = new MemoryLog()
  const replica = new MemoryReplica(log, systemClock)
  const cells = new CellStore({ replica, clock: systemClock, random: systemRandom })
  const slices = new Slices(systemClock)
  const listener = getRequestListener(createGateway({ cells, slices, bodies, noteBug }).fetch)
  const server = createServer((incoming, outgoing) => void listener(incoming, outgoing))
  servers.push(server)
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  return { port: typeof address === 'object' ? (address?.port ?? 0) : 0, log, replica }
}

const path = `/v1/datastores/trips/cells/${rowKey(1)}/BASE/1`

/** PUTs a number of mebibytes of blanks, and resolves with the answer, whenever it comes. */
function putBlanks(
  port: number,
  mebibytes: number,
  headers: Readonly<Record<string, string>>,
): Promise<{ readonly status: number | undefined; readonly text: string }> {
  return new Promise((resolve, reject) => {
    const sending = httpRequest({ port, host: '127.0.0.1', path, method: 'PUT', headers })
    sending.on('response', (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () => {
        resolve({ status: response.statusCode, text: Buffer.concat(chunks).toString() })
      })
    })
    sending.on('error', reject)
    for (let i = 0; i < mebibytes; i++) sending.write(Buffer.alloc(1024 * 1024, 0x20))
    sending.end()
  })
}

test.each([
  ['with its length', { 'content-length': String(2 * 1024 * 1024) }],
  ['in chunks', { 'transfer-encoding': 'chunked' }],
])(
  'the sender of a two-mebibyte cell hears 413 and not a broken connection: %s',
  async (_, headers) => {
    const { port, log } = await startServer()
    for (let i = 0; i < 5; i++) {
      const { status, text } = await putBlanks(port, 2, headers)
      expect({ status, text }).toMatchObject({
        status: 413,
        text: expect.stringContaining('too-large'),
      })
    }
    const fine = await fetch(`http://127.0.0.1:${port}${path}`, { method: 'PUT', body: '{"a":1}' })
    expect([fine.status, log.entryCount()]).toStrictEqual([201, 1])
  },
)

test('bodies that wait for their end are bounded together: more are refused as overloaded', async () => {
  const { port } = await startServer(new BodyRoom(3 * 1024 * 1024))
  const waiting = [1, 2].map(() => {
    const headers = { 'content-length': String(1024 * 1024), 'content-type': 'application/json' }
    const sending = httpRequest({ port, host: '127.0.0.1', path, method: 'PUT', headers })
    sending.on('error', () => undefined)
    sending.write(Buffer.alloc(1024 * 1024 - 1, 0x20))
    return sending
  })
  await new Promise((resolve) => setTimeout(resolve, 200))
  const cells = `${path.split('/cells')[0]}/cells:batchPut`
  const { status, text } = await new Promise<{ status?: number | undefined; text: string }>(
    (resolve, reject) => {
      const headers = { 'content-type': 'application/json' }
      const sending = httpRequest({ port, host: '127.0.0.1', path: cells, method: 'POST', headers })
      sending.on('error', reject).on('response', (response) => {
        let said = ''
        response.on('data', (piece: Buffer) => (said += piece.toString()))
        response.on('end', () => resolve({ status: response.statusCode, text: said }))
      })
      sending.end(Buffer.alloc(2 * 1024 * 1024, 0x20))
    },
  )
  expect([status, text]).toEqual([503, expect.stringContaining('overloaded')])
  for (const sending of waiting) sending.destroy()
  await new Promise((resolve) => setTimeout(resolve, 100))
  const put = { method: 'PUT', body: JSON.stringify({ a: 'x'.repeat(900_000) }) }
  expect((await fetch(`http://127.0.0.1:${port}${path}`, put)).status).toBe(201)
})

test('a sender that breaks off in mid-body leaves nothing behind', async () => {
  const { port, log } = await startServer()
  await new Promise<void>((resolve) => {
    const headers = { 'content-length': '100' }
    const sending = httpRequest({ port, host: '127.0.0.1', path, method: 'PUT', headers })
    sending.on('error', () => resolve())
    sending.write('{"a":1', () => sending.destroy(new Error('gone')))
  })
  const answer = await fetch(`http://127.0.0.1:${port}${path}`)
  expect([answer.status, log.entryCount()]).toStrictEqual([404, 0])
})

test('a connection that breaks off ends the wait for new cells', async () => {
  const { port, replica } = await startServer()
  const path = '/v1/datastores/trips/shards/1/cells?wait=60'
  const waiting = httpRequest({ port, host: '127.0.0.1', path })
  waiting.on('error', () => undefined)
  waiting.end()
  const watches = (): number => replica.watches
  await expect.poll(watches).toBe(1)
  waiting.destroy()
  await expect.poll(watches).toBe(0)
})
