/**
 * `bench returns`: one of three nodes is killed, is away, and comes back again and again while the load
 * goes on; how the load fares second by second, and how fast the node takes up what it missed. In the end
 * it comes back once more with nothing else to be done.
 */
import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { present } from '../../src/base/assert.ts'
import type { Client } from '../../src/client/client.ts'
import { BenchError, machine, openClient, type Machine } from '../common.ts'
import { summarizeLoad } from '../load.ts'
import {
  cpuSeconds,
  pause,
  placeNodes,
  startNode,
  stopProcess,
  waitReady,
  type NodePlace,
  type NodeProcess,
} from '../processes.ts'

export interface ReturnsOptions {
  readonly clients: number
  readonly minutes: number
  /** From one kill to the next. */
  readonly every: number
  /** From the kill to the start. */
  readonly away: number
  /** Committed while it is away for the last time, before the cluster is left idle. */
  readonly entries: number
}

/** The answers within one second of the run. */
export interface Second {
  readonly second: number
  readonly commits: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly maxMs: number
  readonly failures: number
}

/** Seconds since the load began. */
export interface Return {
  readonly killed: number
  readonly started: number
  readonly ready: number
  /** Nothing was lacking any more, as far as the node knew; absent: not before the next kill. */
  readonly caughtUp?: number
}

export interface ReturnsReport {
  readonly bench: 'returns'
  readonly machine: Machine
  readonly options: ReturnsOptions
  readonly seconds: readonly Second[]
  readonly returns: readonly Return[]
  /** Of all answers while all nodes were up and none lacked anything; while one was away; while it caught up. */
  readonly p99Ms: Readonly<Record<'whole' | 'away' | 'catchingUp', number>>
  /** The longest time in which no write was acknowledged. */
  readonly worstGapMs: number
  readonly failures: Readonly<Record<string, number>>
  /** The last return, without a load: entries that were applied once it was ready, until nothing was lacking. */
  readonly idle: IdleReturn
}

export interface IdleReturn {
  readonly entries: number
  readonly seconds: number
  readonly perSecond: number
  /** Processor time for each entry: of the node that returns, and of the others together. */
  readonly ownMicros: number
  readonly othersMicros: number
}

interface Answer {
  readonly atMs: number
  readonly tookMs: number
}

const rowsPerClient = 20
const catchUpWaitMs = 300_000
const pollMs = 50
const digestWaitMs = 3_000
/** Puts of one call, and calls under way, where all that matters is that something was written. */
const filledPuts = 500
const filledCalls = 4

export type ReturnsWatcher = (text: string) => void

export async function benchReturns(
  options: ReturnsOptions,
  signal: AbortSignal,
  say: ReturnsWatcher,
): Promise<ReturnsReport> {
  if (options.away >= options.every) throw new BenchError('--away is shorter than --every')
  const folder = await mkdtemp(join(tmpdir(), 'trilithon-bench-'))
  const cluster = new Cluster(await placeNodes(folder, 3))
  try {
    await cluster.startAll()
    return await new Returns(cluster, options, signal, say).run()
  } finally {
    await cluster.stop()
    await rm(folder, { recursive: true, force: true })
  }
}

class Cluster {
  readonly places: readonly NodePlace[]
  readonly #nodes = new Map<string, NodeProcess>()

  constructor(places: readonly NodePlace[]) {
    this.places = places
  }

  async startAll(): Promise<void> {
    for (const place of this.places) this.start(place)
    for (const node of this.#nodes.values()) await waitReady(node)
  }

  start(place: NodePlace): NodeProcess {
    const node = startNode(place)
    this.#nodes.set(place.id, node)
    return node
  }

  async kill({ id }: NodePlace): Promise<void> {
    const node = this.#nodes.get(id)
    if (node !== undefined) await stopProcess(node.child, 'SIGKILL')
  }

  /** Processor time that each node has taken, in their order. */
  cpuSeconds(): Promise<number[]> {
    const pids = this.places.map(({ id }) => this.#nodes.get(id)?.child.pid ?? 0)
    return Promise.all(pids.map(cpuSeconds))
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#nodes.values()].map(({ child }) => stopProcess(child)))
  }
}

class Returns {
  readonly #cluster: Cluster
  readonly #options: ReturnsOptions
  readonly #signal: AbortSignal
  readonly #say: ReturnsWatcher
  readonly #answers: Answer[] = []
  readonly #failuresAt: number[] = []
  readonly #failures: Record<string, number> = {}
  readonly #returns: Return[] = []
  #startMs = 0
  #isOver = false

  constructor(cluster: Cluster, options: ReturnsOptions, signal: AbortSignal, say: ReturnsWatcher) {
    this.#cluster = cluster
    this.#options = options
    this.#signal = signal
    this.#say = say
  }

  async run(): Promise<ReturnsReport> {
    const client = await openClient(
      this.#cluster.places.map(({ url }) => url),
      this.#signal,
    )
    const cells = client.cells('bench')
    this.#startMs = performance.now()
    const loops = Array.from({ length: this.#options.clients }, () => {
      const rows = Array.from({ length: rowsPerClient }, () => ({ key: randomUUID(), refKey: 0 }))
      return this.#loop(async () => {
        const row = present(rows[Math.floor(Math.random() * rowsPerClient)], 'bench: a row')
        const body = { city: 'Berlin', km: Math.random(), pad: 'abcdefgh'.repeat(10) }
        await cells.put({ rowKey: row.key, column: 'BASE', refKey: row.refKey++, body })
      })
    })
    try {
      await this.#storms()
      const last = present(this.#cluster.places.at(-1), 'bench: there are nodes')
      const underLoad = await this.#endLoad(loops)
      await this.#cluster.kill(last)
      await this.#fill(client)
      const idle = await this.#returnIdle(last)
      return { ...underLoad, idle }
    } finally {
      this.#isOver = true
      await Promise.all(loops)
      await client.close()
    }
  }

  async #loop(put: () => Promise<void>): Promise<void> {
    while (!this.#isOver && !this.#signal.aborted) {
      const began = performance.now()
      try {
        await put()
        const atMs = performance.now()
        this.#answers.push({ atMs, tookMs: atMs - began })
      } catch (error) {
        const code = error instanceof Error && 'code' in error ? String(error.code) : String(error)
        this.#failures[code] = (this.#failures[code] ?? 0) + 1
        this.#failuresAt.push(performance.now())
      }
    }
  }

  get #second(): number {
    return (performance.now() - this.#startMs) / 1_000
  }

  /** The node is killed and started for as long as the run lasts. */
  async #storms(): Promise<void> {
    const { minutes, every, away } = this.#options
    const place = present(this.#cluster.places.at(-1), 'bench: there are nodes')
    if (minutes === 0) return
    // The first part is a whole cluster: what the others are held to.
    await pause(Math.min(every - away, 20) * 1_000)
    while (this.#second + every <= minutes * 60) {
      this.#signal.throwIfAborted()
      const killed = this.#second
      await this.#cluster.kill(place)
      await pause(away * 1_000)
      const started = this.#second
      const node = this.#cluster.start(place)
      await waitReady(node, { signal: this.#signal })
      const ready = this.#second
      const endMs = this.#startMs + (killed + every) * 1_000
      const caughtUpMs = await untilCaughtUp(place, endMs, this.#signal)
      const isCaughtUp = caughtUpMs !== undefined
      const caughtUp = isCaughtUp ? (caughtUpMs - this.#startMs) / 1_000 : this.#second
      this.#returns.push({ killed, started, ready, ...(isCaughtUp && { caughtUp }) })
      const after = `${(caughtUp - started).toFixed(1)} s`
      this.#say(isCaughtUp ? `caught up ${after} after its start` : `still lacks some ${after} on`)
      await pause(Math.max(0, endMs - performance.now()))
    }
  }

  async #endLoad(loops: readonly Promise<void>[]): Promise<Omit<ReturnsReport, 'idle'>> {
    this.#isOver = true
    await Promise.all(loops)
    const endMs = performance.now()
    const answers = this.#answers.map(({ atMs, tookMs }) => ({
      second: (atMs - this.#startMs) / 1_000,
      tookMs,
    }))
    const computeP99 = (phase: Phase): number => {
      const own = answers.filter(({ second }) => this.#phaseAt(second) === phase)
      return summarizeLoad(
        own.map(({ tookMs }) => tookMs),
        0,
        0,
      ).p99Ms
    }
    let worstGapMs = 0
    for (const [at, { atMs }] of this.#answers.entries()) {
      worstGapMs = Math.max(worstGapMs, atMs - (this.#answers[at - 1]?.atMs ?? this.#startMs))
    }
    // A client that never gets another answer is in a gap as well.
    const untilEndMs = endMs - (this.#answers.at(-1)?.atMs ?? this.#startMs)
    worstGapMs = Math.max(worstGapMs, untilEndMs)
    return {
      ...{ bench: 'returns', machine: machine(), options: this.#options },
      ...{ seconds: this.#seconds(), returns: this.#returns, worstGapMs, failures: this.#failures },
      p99Ms: {
        whole: computeP99('whole'),
        away: computeP99('away'),
        catchingUp: computeP99('catchingUp'),
      },
    }
  }

  #phaseAt(second: number): Phase {
    for (const { killed, started, caughtUp } of this.#returns) {
      if (second >= killed && second < started) return 'away'
      if (second >= started && second < (caughtUp ?? killed + this.#options.every)) {
        return 'catchingUp'
      }
    }
    return 'whole'
  }

  #seconds(): readonly Second[] {
    const count = Math.floor(this.#second)
    const took: number[][] = Array.from({ length: count }, () => [])
    for (const { atMs, tookMs } of this.#answers) {
      took[Math.floor((atMs - this.#startMs) / 1_000)]?.push(tookMs)
    }
    return took.map((all, second) => {
      const { operations, p50Ms, p99Ms, maxMs } = summarizeLoad(all, 0, 1_000)
      const isIn = (atMs: number): boolean => Math.floor((atMs - this.#startMs) / 1_000) === second
      const failures = this.#failuresAt.filter(isIn).length
      return { second, commits: operations, p50Ms, p99Ms, maxMs, failures }
    })
  }

  /** Writes to rows all over the shards, until the wanted number of entries is committed. */
  async #fill(client: Client): Promise<void> {
    const cells = client.cells('bench')
    const other = present(this.#cluster.places[0], 'bench: there are nodes')
    const wanted = (await appliedAt(other)) + this.#options.entries
    const putSome = async (): Promise<void> => {
      while ((await appliedAt(other)) < wanted && !this.#signal.aborted) {
        const body = { city: 'Berlin', km: Math.random(), pad: 'abcdefgh'.repeat(10) }
        const some = Array.from({ length: filledPuts }, () => {
          return { rowKey: randomUUID(), column: 'BASE', refKey: 0, body }
        })
        await cells.putMany(some)
      }
    }
    await Promise.all(Array.from({ length: filledCalls }, putSome))
  }

  async #returnIdle(place: NodePlace): Promise<IdleReturn> {
    const node = this.#cluster.start(place)
    await waitReady(node, { signal: this.#signal, pollMs: 10 })
    const readyMs = performance.now()
    const before = await appliedAt(place)
    const cpuBefore = await this.#cluster.cpuSeconds()
    const endMs = await untilCaughtUp(place, readyMs + catchUpWaitMs, this.#signal)
    if (endMs === undefined) throw new BenchError('the node did not catch up with an idle cluster')
    const seconds = (endMs - readyMs) / 1_000
    const entries = (await appliedAt(place)) - before
    const cpu = await this.#cluster.cpuSeconds()
    const micros = cpu.map((used, at) => ((used - (cpuBefore[at] ?? 0)) * 1_000_000) / entries)
    const ownMicros = micros.at(-1) ?? 0
    const othersMicros = micros.slice(0, -1).reduce((sum, one) => sum + one, 0)
    return { entries, seconds, perSecond: entries / seconds, ownMicros, othersMicros }
  }
}

/** Entries that the node has applied since its start. */
async function appliedAt({ url }: NodePlace): Promise<number> {
  const page = await (await fetch(`${url}/metrics`)).text()
  return Number(/trilithon_events_total\{event="apply"[^}]*\} (\d+)/.exec(page)?.[1] ?? 0)
}

type Phase = keyof ReturnsReport['p99Ms']

/** When it was first seen to lack nothing, and then for a while: a digest may name more. Undefined: not in time. */
async function untilCaughtUp(
  place: NodePlace,
  endMs: number,
  signal: AbortSignal,
): Promise<number | undefined> {
  // Before the first digest has come, it lacks nothing as far as it knows.
  const digestedMs = performance.now() + digestWaitMs
  let hasLacked = false
  let sinceMs: number | undefined
  let looks = 0
  let applied = -1
  while (performance.now() < endMs) {
    signal.throwIfAborted()
    await pause(pollMs)
    const answer = await fetch(`${place.url}/status`, { signal: AbortSignal.timeout(5_000) }).catch(
      () => undefined,
    )
    const text = answer === undefined ? '' : await answer.text()
    const lacking = Number(/"lackingGroups":(\d+)/.exec(text)?.[1] ?? Number.NaN)
    const flush = Number(/"durableFlush":(\d+)/.exec(text)?.[1] ?? Number.NaN)
    const isWhole = lacking === 0 && flush >= applied
    hasLacked ||= lacking > 0
    looks = isWhole ? looks + 1 : 0
    sinceMs = isWhole ? (sinceMs ?? performance.now()) : undefined
    applied = flush
    if (looks >= 3 && (hasLacked || performance.now() >= digestedMs)) return sinceMs
  }
  return undefined
}

export function describeReturns({
  options,
  seconds,
  returns,
  p99Ms,
  ...rest
}: ReturnsReport): string {
  const { worstGapMs, failures, idle } = rest
  const commits = seconds.map((one) => one.commits).toSorted((a, b) => a - b)
  const middle = commits[Math.floor(commits.length / 2)] ?? 0
  const failed = Object.entries(failures).map(([code, count]) => `${count} ${code}`)
  const times = returns.map(({ started, caughtUp }) =>
    caughtUp === undefined ? 'not in time' : `${(caughtUp - started).toFixed(1)} s`,
  )
  return [
    `${options.clients} clients for ${options.minutes} min; a node away for ${options.away} s every ${options.every} s`,
    `commits per second: median ${middle}, least ${commits[0] ?? 0}`,
    `p99: whole ${p99Ms.whole.toFixed(1)} ms, one away ${p99Ms.away.toFixed(1)} ms, catching up ${p99Ms.catchingUp.toFixed(1)} ms`,
    `longest time without a commit: ${Math.round(worstGapMs)} ms; failures: ${failed.join(', ') || 'none'}`,
    `caught up after: ${times.join(', ')}`,
    `idle: ${idle.entries} entries in ${idle.seconds.toFixed(1)} s, ${Math.round(idle.perSecond)}/s; of the processor ${Math.round(idle.ownMicros)} µs each, of the others ${Math.round(idle.othersMicros)} µs`,
    '',
  ].join('\n')
}
