/** A gateway over a cell store and a replica in memory, in virtual time. */
import type { Hono } from 'hono'
import type { CellService } from '../../src/cells/operation.ts'
import { Slices } from '../../src/ports/slices.ts'
import { createGateway, type GatewayOptions } from '../../src/gateway/http.ts'
import { noteBug } from '../bugs.ts'
import { createBench, settled, type Bench } from '../cells/kit.ts'
import type { MemoryReplica } from '../cells/memory-replica.ts'
import { datastoresThrough } from '../../src/client/datastores.ts'
import { GroupService } from '../../src/txn/group-service.ts'

export interface Answered {
  readonly status: number
  readonly headers: Headers
  readonly body: unknown
}

export type Init = RequestInit & { readonly json?: unknown }

export interface GatewayBench {
  readonly bench: Bench
  readonly app: Hono
  readonly service: CellService
  readonly replica: MemoryReplica
  /** Sends a request to `/v1/datastores/trips…` while time stands still. */
  send(method: string, path: string, init?: Init): Promise<Answered>
  /** Sends it and lets time pass until it is answered. */
  ask(method: string, path: string, init?: Init): Promise<Answered>
}

const jsonHeaders = { 'content-type': 'application/json' }

export function createGatewayBench(options: Partial<GatewayOptions> = {}): GatewayBench {
  const bench = createBench()
  const { store, replica } = bench.node('n1')
  const clock = bench.clockOf('gateway')
  const machine = { clock, random: bench.random, timeoutMs: 10_000 }
  const groups = new GroupService({ replica, ...machine })
  const app = createGateway({
    cells: store,
    datastores: datastoresThrough({ cells: store, groups, ...machine }),
    slices: new Slices(clock),
    noteBug,
    ...options,
  })
  const send = async (method: string, path: string, init: Init = {}): Promise<Answered> => {
    const { json, ...rest } = init
    const url =
      path.startsWith('/v1') || ['/', '/openapi.json'].includes(path)
        ? path
        : `/v1/datastores/trips${path}`
    const sent = json === undefined ? {} : { headers: jsonHeaders, body: JSON.stringify(json) }
    return parsed(await app.request(url, { method, ...sent, ...rest }))
  }
  const ask = (method: string, path: string, init?: Init): Promise<Answered> =>
    settled(bench.world, send(method, path, init))
  return { bench, app, service: store, replica, send, ask }
}

export async function parsed(response: Response): Promise<Answered> {
  const text = await response.text()
  const body: unknown = text === '' ? undefined : JSON.parse(text)
  return { status: response.status, headers: response.headers, body }
}
