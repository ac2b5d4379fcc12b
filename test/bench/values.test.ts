/** The values of rows that benches put: no two have anything in common. */
import { once } from 'node:events'
import { dirname, join } from 'node:path'
import { deflateRawSync } from 'node:zlib'
import { unpack } from 'msgpackr'
import { expect, test } from 'vitest'
import { WebSocketServer } from 'ws'
import { readReason } from '../../bench/common.ts'
import { LoadProcess } from '../../bench/load-process.ts'
import { bytesValues, textValues } from '../../bench/values.ts'
import { benchPath } from './program.ts'

/**
 * The share of each byte that is left when they are packed together; a quarter of each byte of base64 says
 * nothing.
 */
function packedShare(values: readonly (Uint8Array | string)[]): number {
  const bytes = Buffer.concat(values.map((value) => Buffer.from(value)))
  return deflateRawSync(bytes).length / bytes.length
}

test('values have their size, and cannot be packed together', () => {
  const nextBytes = bytesValues(100)
  const nextText = textValues(100)
  // More than one time round.
  const bytes = Array.from({ length: 100_000 }, nextBytes)
  const texts = Array.from({ length: 100_000 }, nextText)
  expect(new Set([...bytes, ...texts].map(({ length }) => length))).toEqual(new Set([100]))
  expect(packedShare(bytes.slice(0, 500))).toBeGreaterThan(0.99)
  expect(packedShare(texts.slice(0, 500))).toBeGreaterThan(0.74)
  expect(new Set(texts).size).toBeGreaterThan(90_000)
})

test('values may be larger than what they are taken from', () => {
  const next = bytesValues(8 * 1024 * 1024)
  expect([next(), next(), next()].map(({ length }) => length)).toEqual(
    Array.from({ length: 3 }, () => 8 * 1024 * 1024),
  )
})

/** The values of puts that come in one frame. */
function valuesOf(bytes: Buffer): Uint8Array[] {
  const puts: unknown = unpack(bytes)
  if (!Array.isArray(puts)) throw new Error('a frame is of puts')
  return puts.map((put: readonly unknown[]) => {
    const value = put[2]
    if (value instanceof Uint8Array) return value
    throw new Error('a put has a value')
  })
}

test('the client of the ceiling puts another value each time', async () => {
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0 })
  await once(server, 'listening')
  const frame = new Promise<Buffer>((resolve) => {
    server.on('connection', (link) => link.on('message', (bytes: Buffer) => resolve(bytes)))
  })
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : 0
  const path = join(dirname(benchPath), 'compare', 'ceiling-client.js')
  const stopping = new AbortController()
  const client = await LoadProcess.start(path, [`${port}`, '100'], stopping.signal)
  const load = { clients: 50, seconds: 1, warmUpSeconds: 60, operation: 'commits' } as const
  const over = client.run(load, { onWarm: () => Promise.resolve() }).catch(readReason)
  const values = valuesOf(await frame)
  expect(values).toHaveLength(50)
  expect(packedShare(values)).toBeGreaterThan(0.95)
  stopping.abort()
  expect(await over).toContain('ended before it was warm')
  await client.stop()
  server.close()
})
