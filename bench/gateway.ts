/**
 * `bench gateway`: cells over HTTP and through the client library, through a gateway and straight to
 * the nodes, in alternating rounds of one run. All processes are on this machine, the client's too.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { Agent, request } from 'node:http'
import { present } from '../src/base/assert.ts'
import { freePorts } from '../sim/processes/free-ports.ts'
import type { Client } from '../src/client/client.ts'
import { BenchError, machine, openClient, type Machine } from './common.ts'
import { runLoops, type LoadResult } from './load.ts'
import { cliPath, startCluster, stopProcess, waitReady } from './processes.ts'

export interface GatewayOptions {
  readonly clients: number
  readonly seconds: number
  readonly rounds: number
}

/** How the client asks for cells, and at which process. */
const ways = ['HTTP, node', 'HTTP, gateway', 'library, nodes', 'library, gateway'] as const
type Way = (typeof ways)[number]
const kinds = ['put', 'get'] as const
type Kind = (typeof kinds)[number]

export interface GatewayRun {
  readonly way: Way
  readonly kind: Kind
  readonly round: number
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly failures: number
}

export interface GatewayBenchReport {
  readonly bench: 'gateway'
  readonly machine: Machine
  readonly clients: number
  readonly seconds: number
  readonly runs: readonly GatewayRun[]
}

type Operations = Readonly<Record<Kind, () => Promise<unknown>>>

const rowCount = 1_000
const body = { city: 'Berlin', kilometres: 4.2, note: 'x'.repeat(60) }

export async function benchGateway(
  options: GatewayOptions,
  signal: AbortSignal,
): Promise<GatewayBenchReport> {
  /** Of what is running, in the order in which it was started. */
  const ends: (() => Promise<void>)[] = []
  try {
    const cluster = await startCluster()
    ends.push(() => cluster.stop())
    const gateway = await startGateway(cluster.urls, signal)
    ends.push(() => stopProcess(gateway.child))
    const straight = await openClient(cluster.urls, signal)
    ends.push(() => straight.close())
    const through = await openClient([gateway.url], signal)
    ends.push(() => through.close())
    const rows = await putRows(straight)
    const agent = new Agent({ keepAlive: true, maxSockets: options.clients })
    ends.push(() => Promise.resolve(agent.destroy()))
    const http = (url: string): Operations => httpOperations(agent, url, rows)
    const operations: Readonly<Record<Way, Operations>> = {
      'HTTP, node': http(present(cluster.urls[0], 'bench: there is a node')),
      'HTTP, gateway': http(gateway.url),
      'library, nodes': libraryOperations(straight.cells('bench'), rows),
      'library, gateway': libraryOperations(through.cells('bench'), rows),
    }
    const runs = await measure(operations, options, signal)
    const { clients, seconds } = options
    return { bench: 'gateway', machine: machine(), clients, seconds, runs }
  } finally {
    for (const end of ends.toReversed()) await end()
  }
}

/** Puts the rows that the bench reads, and gives their keys. */
async function putRows(client: Client): Promise<readonly string[]> {
  const rows = Array.from({ length: rowCount }, () => randomUUID())
  const cells = rows.map((rowKey) => ({ rowKey, column: 'BASE', refKey: 0, body }))
  await client.cells('bench').putMany(cells)
  return rows
}

async function measure(
  operations: Readonly<Record<Way, Operations>>,
  { clients, seconds, rounds }: GatewayOptions,
  signal: AbortSignal,
): Promise<GatewayRun[]> {
  const runs: GatewayRun[] = []
  // The first round compiles what is hot, and is thrown away.
  for (let round = 0; round <= rounds; round++) {
    for (const kind of kinds) {
      for (const way of ways) {
        const result = await runLoops(clients, seconds, operations[way][kind], signal)
        signal.throwIfAborted()
        if (round > 0) runs.push(toRun(way, kind, round, result))
      }
    }
  }
  return runs
}

function toRun(way: Way, kind: Kind, round: number, result: LoadResult): GatewayRun {
  const { operations, elapsedMs, p50Ms, p99Ms, failures } = result
  return { way, kind, round, perSecond: operations / (elapsedMs / 1000), p50Ms, p99Ms, failures }
}

async function startGateway(
  urls: readonly string[],
  signal: AbortSignal,
): Promise<{ readonly url: string; readonly child: ChildProcess }> {
  const [port = 0] = await freePorts(1)
  const url = `http://127.0.0.1:${port}`
  const flags = ['--nodes', urls.join(','), '--listen', `127.0.0.1:${port}`, '--log-level', 'warn']
  const child = spawn(process.execPath, [cliPath, 'gateway', ...flags], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  try {
    await waitReady({ id: 'gateway', url, child }, { signal })
  } catch (error) {
    await stopProcess(child)
    throw error
  }
  return { url, child }
}

type Cells = ReturnType<Client['cells']>

function libraryOperations(cells: Cells, rows: readonly string[]): Operations {
  let next = 0
  return {
    put: () => cells.put({ rowKey: randomUUID(), column: 'BASE', refKey: 0, body }),
    get: () => cells.get({ rowKey: rows[next++ % rowCount] ?? '', column: 'BASE', refKey: 0 }),
  }
}

function httpOperations(agent: Agent, url: string, rows: readonly string[]): Operations {
  const path = (rowKey: string): string => `${url}/v1/datastores/bench/cells/${rowKey}/BASE/0`
  const text = JSON.stringify(body)
  let next = 0
  return {
    put: () => send(agent, 'PUT', path(randomUUID()), text),
    get: () => send(agent, 'GET', path(rows[next++ % rowCount] ?? '')),
  }
}

/** Rejects unless it is answered well. */
function send(agent: Agent, method: string, url: string, text?: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const sending = request(url, { agent, method }, (response) => {
      response.on('error', reject)
      response.resume()
      response.on('end', () => {
        const status = response.statusCode ?? 0
        if (status < 300) resolve()
        else reject(new BenchError(`status ${status}`))
      })
    })
    sending.on('error', reject)
    sending.end(text)
  })
}

/** The middle round of each way and kind. */
export function describeGateway({ runs, clients, seconds }: GatewayBenchReport): string {
  const lines = [`${clients} requests under way, ${seconds} s a round; the middle round of each`]
  for (const kind of kinds) {
    for (const way of ways) {
      const own = runs.filter((run) => run.kind === kind && run.way === way)
      const middle = own.toSorted((a, b) => a.perSecond - b.perSecond)[Math.floor(own.length / 2)]
      if (middle === undefined) continue
      const { perSecond, p50Ms, p99Ms, failures } = middle
      const rate = `${Math.round(perSecond)}/s`.padStart(9)
      const times = `p50 ${p50Ms.toFixed(1)} ms, p99 ${p99Ms.toFixed(1)} ms`
      lines.push(`${kind}  ${way.padEnd(18)}${rate}  ${times}, ${failures} failures`)
    }
  }
  return `${lines.join('\n')}\n`
}
