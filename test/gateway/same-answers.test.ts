/** A node and a gateway in front of it give the same answer to any request. */
import { expect, test } from 'vitest'
import { createGateway } from '../../src/gateway/http.ts'
import { defaultClientLimits } from '../../src/client/client-limits.ts'
import { Relay } from '../../src/client/relay.ts'
import { Slices } from '../../src/ports/slices.ts'
import { noteBug } from '../bugs.ts'
import { rowKey, settled } from '../cells/kit.ts'
import { createCluster } from '../client/cluster.ts'
import { createGatewayBench, parsed, type Answered } from './kit.ts'

interface Asked {
  readonly what: string
  readonly method?: string
  readonly path: string
  readonly json?: unknown
}

type Ask = (asked: Asked) => Promise<Answered>

function askNode(): Ask {
  const { ask } = createGatewayBench()
  return ({ method = 'POST', path, json }) => ask(method, path, json === undefined ? {} : { json })
}

function askGateway(): Ask {
  const cluster = createCluster({ names: ['n1'] })
  const { clock, process } = cluster.clockOf('g1')
  const random = cluster.bench.random.fork('g1')
  const transport = cluster.network.attach(process, ['n1'])
  const cells = new Relay({ transport, clock, random }, defaultClientLimits)
  const app = createGateway({ cells, slices: new Slices(clock), noteBug })
  const headers = { 'content-type': 'application/json' }
  return async ({ method = 'POST', path, json }) => {
    const body = json === undefined ? {} : { headers, body: JSON.stringify(json) }
    const url = `/v1/datastores/trips${path}`
    const sent = Promise.resolve(app.request(url, { method, ...body }))
    return parsed(await settled(cluster.bench.world, sent))
  }
}

const row = rowKey(4)
const cell = { rowKey: row, column: 'BASE', refKey: 0, body: { a: 1 } }
const put = (cells: unknown, more: object = {}): Omit<Asked, 'what'> => {
  return { path: '/cells:batchPut', json: { cells, ...more } }
}
const get = (cells: unknown): Omit<Asked, 'what'> => ({ path: '/cells:batchGet', json: { cells } })
const logs = (shards: unknown, more: object = {}): Omit<Asked, 'what'> => {
  return { path: '/shards:batchGet', json: { shards, ...more } }
}
const many = Array.from({ length: 1_001 }, (_, refKey) => ({ rowKey: row, column: 'A', refKey }))

/** One after another, at the same store. */
const questions: readonly Asked[] = [
  { what: 'cells', ...put([cell, { ...cell, refKey: 1 }]) },
  { what: 'the same again, and another body', ...put([cell, { ...cell, body: 2 }]) },
  {
    what: 'cells of which some are wrong',
    ...put([
      { ...cell, refKey: 2 },
      { ...cell, rowKey: 'x' },
      { ...cell, refKey: 0.5 },
    ]),
  },
  {
    what: 'cells that are all wrong',
    ...put([
      { ...cell, rowKey: 'x' },
      { ...cell, column: '7' },
      { ...cell, refKey: -1 },
    ]),
  },
  { what: 'no cells', ...put([]) },
  { what: 'cells that are no list', ...put({}) },
  { what: 'a member that is not known', ...put([cell], { wait: 1 }) },
  { what: 'a cell with a member that is not known', ...put([{ ...cell, ttl: 1 }]) },
  { what: 'a cell without a body', ...put([{ rowKey: row, column: 'BASE', refKey: 9 }]) },
  { what: 'too many cells', ...put(many.map((one) => ({ ...one, body: 1 }))) },
  { what: 'cells to be read', ...get([cell, { ...cell, refKey: 7 }].map(nameOf)) },
  { what: 'the latest of a column', ...get([{ rowKey: row, column: 'BASE' }]) },
  {
    what: 'cells to be read of which some are wrong',
    ...get([
      nameOf(cell),
      { rowKey: 'x', column: 'BASE' },
      { rowKey: row, column: '7' },
      { rowKey: row, column: 'BASE', refKey: 0.5 },
      { rowKey: row, column: 'BASE', refKey: -1 },
      { rowKey: 'x'.repeat(300), column: 'BASE' },
      { rowKey: row, column: 'BASE' },
    ]),
  },
  { what: 'cells to be read that are all wrong', ...get([{ rowKey: 'x', column: 'BASE' }]) },
  { what: 'nothing to be read', ...get([]) },
  { what: 'too much to be read', ...get(many) },
  { what: 'a ref key that is a text', ...get([{ rowKey: row, column: 'BASE', refKey: '0' }]) },
  { what: 'logs', ...logs([{ shard: 1 }, { shard: 2, after: 0 }]) },
  {
    what: 'logs of which some are of no shard',
    ...logs([
      { shard: 1 },
      { shard: 4096 },
      { shard: 0.5 },
      { shard: -1 },
      { shard: 2, after: -1 },
    ]),
  },
  { what: 'logs behind their ends', ...logs([{ shard: 1 }, { shard: 2, after: 5 }]) },
  { what: 'logs of no shard', ...logs([{ shard: 5_000 }]) },
  { what: 'no logs', ...logs([]) },
  { what: 'both after and since', ...logs([{ shard: 1, after: 1, since: '2026-01-01' }]) },
  { what: 'a limit that is none', ...logs([{ shard: 1 }], { limit: 0 }) },
  { what: 'a wait that is none', ...logs([{ shard: 1 }], { wait: -1 }) },
  { what: 'a wait that is too long', ...logs([{ shard: 1 }], { wait: 1e6 }) },
  { what: 'a log behind its end', method: 'GET', path: '/shards/7/cells?after=5' },
  { what: 'an index of a long name', method: 'GET', path: `/indexes/${'x'.repeat(300)}?k=a` },
  { what: 'an index that is not there', method: 'GET', path: '/indexes/ix?k=a&n.ge=2' },
  { what: 'a parameter twice', method: 'GET', path: '/shards/7/cells?limit=1&limit=1' },
  { what: 'a parameter that is not known', method: 'GET', path: '/shards/7/cells?afer=1' },
  {
    what: 'a purge of another member',
    path: '/shards/7/cells:purge',
    json: { before: '2026-01-01', dry: true },
  },
  { what: 'a purge of no time', path: '/shards/7/cells:purge', json: { before: '1' } },
]

function nameOf({ rowKey, column, refKey }: typeof cell): Omit<typeof cell, 'body'> {
  return { rowKey, column, refKey }
}

/** Clocks are those of two worlds. */
function timeless(body: unknown): string {
  return JSON.stringify(body).replaceAll(/"createdAt":"[^"]*"/g, '"createdAt":"…"')
}

test('batches and everything else are answered alike by a node and by a gateway', async () => {
  const node = askNode()
  const gateway = askGateway()
  for (const asked of questions) {
    const [here, there] = [await node(asked), await gateway(asked)]
    const shown = ({ status, headers, body }: Answered): object => {
      return { status, type: headers.get('content-type'), body: timeless(body) }
    }
    expect(shown(there), asked.what).toEqual(shown(here))
    expect(here.status, asked.what).toBeLessThan(500)
  }
})
