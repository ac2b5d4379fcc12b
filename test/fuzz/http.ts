/** Requests over HTTP, as people and programs get them wrong. */
import { request, type Agent } from 'node:http'
import type { SeededRandom } from '../../sim/world/random.ts'
import { drawValue, texts } from './values.ts'

export interface DrawnHttp {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Buffer | undefined
}

const methods = ['GET', 'PUT', 'POST', 'DELETE', 'HEAD', 'PATCH', 'OPTIONS']
const names = [
  'read',
  'all',
  'from',
  'limit',
  'reverse',
  'after',
  'since',
  'wait',
  'order',
  'cursor',
  'columns',
]
const filters = [
  'k',
  'd',
  'n',
  't',
  'd.gte',
  'd.lt',
  'n.gt',
  't.ne',
  'select',
  'verify',
  'x',
  'd.between',
]

function textOf(random: SeededRandom): string {
  if (random.chance(300_000)) return random.pick(texts)
  return random.pick([
    '1',
    '10',
    'true',
    'snapshot',
    'a',
    '1500-01-01',
    '9999-12-31',
    '2026-01-01T00:00:00Z',
    '-d',
  ])
}

function queryOf(random: SeededRandom, known: readonly string[]): string {
  const pairs = Array.from({ length: random.int(0, 3) }, () => {
    return `${random.pick(known)}=${escaped(random, textOf(random))}`
  })
  return pairs.length === 0 ? '' : `?${pairs.join('&')}`
}

function escaped(random: SeededRandom, text: string): string {
  const whole = encodeURIComponent(text.replaceAll(/\p{Surrogate}/gu, ''))
  return random.chance(20_000) ? `${whole}%` : whole
}

function bodyOf(random: SeededRandom): string | Buffer {
  switch (random.int(0, 5)) {
    case 0:
      return Buffer.from(random.bytes(random.int(0, 40)))
    case 1:
      return `{"k":"a","d":"${random.pick(texts).replaceAll(/[^ -~]|["\\]/g, '')}"}`
    case 2:
      return '{"cells":[{"rowKey":"22222222-2222-4222-8222-222222222221","column":"B","refKey":'
    case 3: {
      const cell = {
        rowKey: '22222222-2222-4222-8222-222222222221',
        column: 'B',
        refKey: random.int(0, 9),
      }
      const body = { k: 'a', d: drawValue(random, 1), n: drawValue(random, 1) }
      return json({ cells: [{ ...cell, body }, drawValue(random)], [random.pick(texts)]: 1 })
    }
    default:
      return json(drawValue(random))
  }
}

function json(value: unknown): string {
  return JSON.stringify(value) ?? ''
}

export function drawHttp(random: SeededRandom): DrawnHttp {
  const row = escaped(
    random,
    random.chance(800_000) ? '22222222-2222-4222-8222-222222222221' : textOf(random),
  )
  const column = escaped(random, random.chance(800_000) ? 'B' : textOf(random))
  const ref = escaped(random, random.chance(700_000) ? String(random.int(0, 99)) : textOf(random))
  const shard = escaped(
    random,
    random.chance(700_000) ? String(random.int(0, 4_095)) : textOf(random),
  )
  const query = queryOf(random, names)
  const cell = `/cells/${row}/${column}/${ref}`
  const routes: readonly (readonly [string, string])[] = [
    ...([
      ['PUT', cell],
      ['PUT', cell],
      ['GET', `${cell}${query}`],
    ] as const),
    ...([
      ['GET', `/cells/${row}/${column}${query}`],
      ['GET', `/cells/${row}${query}`],
    ] as const),
    ['GET', `/shards/${shard}/cells${query.replace('wait=', 'limit=')}`],
    ['GET', `/indexes/ix?k=a&${queryOf(random, [...filters, ...names]).slice(1)}`],
    ['GET', `/indexes/${column}${queryOf(random, filters)}`],
    ...([
      ['POST', '/cells:batchPut'],
      ['POST', '/cells:batchGet'],
      ['POST', '/shards:batchGet'],
    ] as const),
    ['POST', `/shards/${shard}/cells:purge`],
    ['GET', `/${escaped(random, textOf(random))}`],
  ]
  const [usual, path] = random.pick(routes)
  const method = random.chance(900_000) ? usual : random.pick(methods)
  const datastore = random.chance(950_000) ? 'fuzz' : escaped(random, textOf(random))
  const isBody = method !== 'GET' && method !== 'HEAD'
  const type = random.pick([
    'application/json',
    'text/plain',
    'application/json; charset=utf-16',
    '',
  ])
  return {
    method,
    path: `/v1/datastores/${datastore}${path}`,
    headers: {
      ...(type !== '' && { 'content-type': random.chance(800_000) ? 'application/json' : type }),
      ...(random.chance(50_000) && {
        'x-trilithon-position': textOf(random).replaceAll(/[^ -~]/g, ''),
      }),
    },
    body: isBody ? bodyOf(random) : undefined,
  }
}

export interface HttpAnswer {
  readonly status: number
  readonly text: string
}

/**
 * Node.js sends the body of a GET, HEAD, DELETE or OPTIONS without its length: bytes behind a whole request, which
 * end the connection (`test/node/malformed.test.ts`).
 */
function framed({ headers, body }: DrawnHttp): DrawnHttp['headers'] {
  const names = Object.keys(headers).map((name) => name.toLowerCase())
  const isFramed = names.includes('content-length') || names.includes('transfer-encoding')
  if (body === undefined || isFramed) return headers
  return { ...headers, 'content-length': String(Buffer.byteLength(body)) }
}

/** Rejects when there is no whole answer in time. */
export function send(
  agent: Agent,
  url: string,
  drawn: DrawnHttp,
  timeoutMs: number,
): Promise<HttpAnswer> {
  const { method, path, body } = drawn
  const headers = framed(drawn)
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    const sent = request(
      { agent, hostname, port, method, path, headers, timeout: timeoutMs },
      (response) => {
        const pieces: Buffer[] = []
        response.on('data', (piece: Buffer) => pieces.push(piece))
        response.on('error', reject)
        response.on('end', () => {
          resolve({ status: response.statusCode ?? 0, text: Buffer.concat(pieces).toString() })
        })
      },
    )
    sent.on('timeout', () => sent.destroy(new Error(`no answer in ${timeoutMs} ms`)))
    sent.on('error', reject)
    sent.end(body)
  })
}
