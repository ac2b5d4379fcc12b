/**
 * `bench overload`: puts come at a fixed rate, whatever becomes of them; what is acknowledged of several times
 * what the nodes can do, how long their health takes to answer meanwhile, and how soon all is well after it.
 *
 * The load and the nodes share the machine: compare rates of one run, not of two machines.
 */
import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Client } from '../../src/client/client.ts'
import { connect } from '../../src/client/connect.ts'
import { machine, type Machine } from '../common.ts'
import {
  pause,
  placeNodes,
  startNode,
  stopProcess,
  waitReady,
  type NodeProcess,
} from '../processes.ts'

export interface OverloadOptions {
  /** Links, a third of them to each node. */
  readonly connections: number
  /** Of each step, and of the search for what the nodes can do. */
  readonly seconds: number
}

/** One rate that was offered. */
export interface Step {
  /** Of what the nodes can do. */
  readonly times: number
  /** A second: what was really asked, acknowledged, and refused with `overloaded`. */
  readonly offered: number
  readonly goodput: number
  readonly refused: number
  /** How all else ended, by code. */
  readonly others: Readonly<Record<string, number>>
  readonly p99Ms: number
  /** The slowest answer of `/livez`. */
  readonly healthMs: number
  /** After the end of the load: until half of the best, which comes then, is acknowledged again. */
  readonly recoveryMs: number
}

export interface OverloadReport {
  readonly bench: 'overload'
  readonly machine: Machine
  readonly options: OverloadOptions
  /** Acknowledged a second, with as many under way as ten for each link. */
  readonly best: number
  readonly steps: readonly Step[]
}

const factors = [0.5, 1, 1.5, 2, 4, 10]
const warmUpSeconds = 15
const underWayMax = 512
const tickMs = 5
const sliceMs = 250
const recoveryWaitMs = 10_000

export async function benchOverload(
  options: OverloadOptions,
  signal: AbortSignal,
  say: (text: string) => void,
): Promise<OverloadReport> {
  const folder = await mkdtemp(join(tmpdir(), 'trilithon-bench-'))
  const nodes: NodeProcess[] = []
  const clients: Client[] = []
  try {
    const places = await placeNodes(folder, 3)
    for (const place of places) nodes.push(startNode(place))
    for (const node of nodes) await waitReady(node)
    const urls = places.map(({ url }) => url)
    for (let n = 0; n < options.connections; n++) {
      const own = urls[n % urls.length]
      if (own !== undefined) clients.push(await connect({ nodes: [own], timeoutMs: 10_000 }))
    }
    const load = new Load(clients, urls, signal)
    await load.closed(warmUpSeconds * 1_000)
    const best = await load.closed(options.seconds * 1_000)
    say(`best: ${Math.round(best)}/s`)
    const steps: Step[] = []
    for (const times of factors) {
      const step = { times, ...(await load.open(times * best, best / 2, options.seconds * 1_000)) }
      say(describeStep(step))
      steps.push(step)
    }
    return { bench: 'overload', machine: machine(), options, best, steps }
  } finally {
    await Promise.all(clients.map((client) => client.close()))
    await Promise.all(nodes.map(({ child }) => stopProcess(child)))
    await rm(folder, { recursive: true, force: true })
  }
}

/** What became of the puts of one step. */
interface Ends {
  ok: number
  refused: number
  readonly others: Record<string, number>
  readonly tookMs: number[]
}

function noEnds(): Ends {
  return { ok: 0, refused: 0, others: {}, tookMs: [] }
}

class Load {
  readonly #clients: readonly Client[]
  readonly #urls: readonly string[]
  readonly #signal: AbortSignal
  #sent = 0
  #underWay = 0

  constructor(clients: readonly Client[], urls: readonly string[], signal: AbortSignal) {
    this.#clients = clients
    this.#urls = urls
    this.#signal = signal
  }

  /** A put follows the one before. Gives what was acknowledged a second. */
  async closed(ms: number): Promise<number> {
    const ends = noEnds()
    const endMs = performance.now() + ms
    const loop = async (): Promise<void> => {
      while (performance.now() < endMs && !this.#signal.aborted) await this.#put(ends)
    }
    const count = Math.min(underWayMax, this.#clients.length * 10)
    await Promise.all(Array.from({ length: count }, loop))
    return ends.ok / (ms / 1_000)
  }

  async open(perSecond: number, after: number, ms: number): Promise<Omit<Step, 'times'>> {
    const ends = noEnds()
    const health = this.#watchHealth()
    const sent = await this.#offer(perSecond, ms, ends)
    const { ok, refused, others, tookMs } = { ...ends, others: { ...ends.others } }
    const seconds = ms / 1_000
    const recoveryMs = await this.#recover(after)
    const sorted = tookMs.toSorted((a, b) => a - b)
    const p99Ms = sorted[Math.floor(sorted.length * 0.99)] ?? 0
    const figures = { offered: sent / seconds, goodput: ok / seconds, refused: refused / seconds }
    return { ...figures, others, p99Ms, healthMs: await health(), recoveryMs }
  }

  /** Resolves with how many were sent, when the last one is; some are under way then. */
  async #offer(perSecond: number, ms: number, ends: Ends): Promise<number> {
    const startMs = performance.now()
    let sent = 0
    for (let passedMs = 0; passedMs < ms; passedMs = performance.now() - startMs) {
      this.#signal.throwIfAborted()
      const due = Math.floor((passedMs / 1_000) * perSecond)
      for (; sent < due; sent++) void this.#put(ends)
      await pause(tickMs)
    }
    return sent
  }

  /** Offers what can be done easily until it is, and lets what is left of the load end. */
  async #recover(perSecond: number): Promise<number> {
    const startMs = performance.now()
    let recoveryMs = recoveryWaitMs
    for (let passedMs = 0; passedMs < recoveryWaitMs; passedMs = performance.now() - startMs) {
      const ends = noEnds()
      const sent = await this.#offer(perSecond, sliceMs, ends)
      if (ends.ok < 0.8 * sent) continue
      recoveryMs = performance.now() - startMs
      break
    }
    while (this.#underWay > 0 && !this.#signal.aborted) await pause(tickMs)
    return recoveryMs
  }

  async #put(ends: Ends): Promise<void> {
    const client = this.#clients[this.#sent++ % this.#clients.length]
    const startMs = performance.now()
    const body = { pad: 'x'.repeat(200) }
    this.#underWay += 1
    try {
      await client?.cells('bench').put({ rowKey: randomUUID(), column: 'A', refKey: 0, body })
      ends.ok += 1
      ends.tookMs.push(performance.now() - startMs)
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? String(error.code) : String(error)
      if (code === 'overloaded') ends.refused += 1
      else ends.others[code] = (ends.others[code] ?? 0) + 1
    }
    this.#underWay -= 1
  }

  /** Asks until the function it gives is called, which resolves with the slowest answer, milliseconds. */
  #watchHealth(): () => Promise<number> {
    const life = { longestMs: 0, isOver: false }
    const watch = async (url: string): Promise<void> => {
      while (!life.isOver) {
        const startMs = performance.now()
        await (await fetch(`${url}/livez`)).text()
        life.longestMs = Math.max(life.longestMs, performance.now() - startMs)
        await pause(50)
      }
    }
    const watching = Promise.all(this.#urls.map(watch))
    return async () => {
      life.isOver = true
      await watching
      return life.longestMs
    }
  }
}

function describeStep({ times, offered, goodput, refused, others, ...rest }: Step): string {
  const { p99Ms, healthMs, recoveryMs } = rest
  const odd = Object.entries(others).map(([code, count]) => `, ${count} ${code}`)
  const rates = [goodput, refused].map(Math.round)
  return `${times} x: ${Math.round(offered)}/s offered, ${rates[0]}/s acknowledged, ${rates[1]}/s refused${odd.join('')}; p99 ${Math.round(p99Ms)} ms, health ${Math.round(healthMs)} ms, recovery ${Math.round(recoveryMs)} ms`
}

export function describeOverload({ options, best, steps }: OverloadReport): string {
  const { connections, seconds } = options
  return [
    `${connections} connections, ${seconds} s a step; the nodes can do ${Math.round(best)}/s`,
    ...steps.map(describeStep),
    '',
  ].join('\n')
}
