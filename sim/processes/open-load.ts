/**
 * An open loop on real processes: puts come at a fixed rate, whatever becomes of them. The verdict
 * is about the nodes' duties under overload. Calls end in their time, most of them with a known
 * outcome. Refused calls carry a time for the retry. Acknowledged puts are there, and soon after
 * the load all calls succeed again.
 */
import { StoreError } from '../../src/base/errors.ts'
import type { Client } from '../../src/client/client.ts'
import { connect } from '../../src/client/connect.ts'
import { randomUuid } from '../../src/ports/random.ts'
import { SeededRandom } from '../world/random.ts'
import { ProcessCluster } from './cluster.ts'
import type { ProcessOutcome } from './run.ts'
import { pause } from './workload.ts'

export interface OpenLoadOptions {
  readonly seed: number
  /** Puts a second. */
  readonly rate: number
  readonly seconds: number
  /** The built command line. */
  readonly program: string
  readonly onPhase?: (text: string) => void
  /** Ends the run, with all that it started: it rejects with the signal's reason. */
  readonly signal?: AbortSignal
}

/** How puts ended. */
export interface OpenLoadEnds {
  asked: number
  acknowledged: number
  /** With `overloaded`, and with when to come again. */
  refused: number
  /** With `overloaded`, and without. */
  untimed: number
  /** In any way, after their time. */
  late: number
  /** With another error, by its code. */
  readonly codes: Record<string, number>
}

export interface OpenLoadResult extends OpenLoadEnds {
  readonly seed: number
  readonly rate: number
  readonly seconds: number
  readonly outcome: ProcessOutcome
  readonly violations: readonly string[]
  /** A few calls after the load. */
  readonly afterwards: OpenLoadEnds
}

const datastore = 'load'
const clientCount = 12
const timeoutMs = 10_000
const lateMs = 1_000
const tickMs = 5
const restMs = 2_000
const afterRate = 20
const afterSeconds = 1
/** The share of calls that may end unknown. */
const unknownMax = 0.1
/** One of so many that were acknowledged is read. */
const readEvery = 50

export async function runOpenLoad(options: OpenLoadOptions): Promise<OpenLoadResult> {
  const { seed, program, signal } = options
  const cluster = await ProcessCluster.create({ program, clients: [] })
  const clients: Client[] = []
  try {
    options.onPhase?.('starting three nodes')
    await cluster.start()
    const urls = cluster.daemons.map(({ place }) => place.url ?? '')
    for (let i = 0; i < clientCount; i++) {
      clients.push(await connect({ endpoints: urls, timeoutMs }))
    }
    const random = new SeededRandom(`${seed}/open load`)
    return await carryOut(options, cluster, new OpenLoad(clients, random, signal))
  } finally {
    await Promise.all(clients.map((client) => client.close()))
    await cluster.close()
  }
}

async function carryOut(
  options: OpenLoadOptions,
  cluster: ProcessCluster,
  load: OpenLoad,
): Promise<OpenLoadResult> {
  const { seed, rate, seconds, signal } = options
  const say = options.onPhase ?? ((): void => undefined)
  say(`${rate} puts a second for ${seconds} s`)
  const ends = noEnds()
  await load.offer(rate, seconds, ends)
  await pause(restMs, signal)
  const afterwards = noEnds()
  await load.offer(afterRate, afterSeconds, afterwards)
  say('waiting for calls to end')
  await load.ended()
  say('reading what was acknowledged')
  const lost = await load.lost()
  signal?.throwIfAborted()
  const crashes = cluster.daemons.flatMap((daemon) => daemon.failure ?? [])
  const slow = [...findProblems(ends), ...problemsAfter(afterwards)]
  const broken = crashes.length > 0 ? 'crash' : slow.length > 0 ? 'liveness' : 'clean'
  return {
    ...{ seed, rate, seconds, ...ends, afterwards },
    outcome: lost.length > 0 ? 'safety' : broken,
    violations: [...lost, ...crashes, ...slow],
  }
}

function findProblems({
  asked,
  acknowledged,
  late,
  untimed,
  codes,
}: OpenLoadEnds): readonly string[] {
  const unknown = Object.values(codes).reduce((sum, count) => sum + count, 0)
  return [
    ...(acknowledged === 0 ? [`of ${asked} puts none was acknowledged`] : []),
    ...(late > 0 ? [`${late} calls lasted for longer than their time`] : []),
    ...(untimed > 0 ? [`${untimed} calls were refused and not told when to come again`] : []),
    ...(unknown > unknownMax * asked ? [`${unknown} of ${asked} calls ended unknown`] : []),
  ]
}

function problemsAfter({ asked, acknowledged }: OpenLoadEnds): readonly string[] {
  if (asked === 0) return ['after the load nothing was asked']
  if (acknowledged === asked) return []
  return [`${restMs} ms after the load ${asked - acknowledged} of ${asked} puts failed`]
}

class OpenLoad {
  readonly #clients: readonly Client[]
  readonly #random: SeededRandom
  readonly #signal: AbortSignal | undefined
  readonly #underWay = new Set<Promise<void>>()
  readonly #acknowledged: string[] = []
  #nth = 0
  #failure: unknown

  constructor(clients: readonly Client[], random: SeededRandom, signal?: AbortSignal) {
    this.#clients = clients
    this.#random = random
    this.#signal = signal
  }

  /** Resolves when the last put has been sent. */
  async offer(rate: number, seconds: number, ends: OpenLoadEnds): Promise<void> {
    const startedMs = performance.now()
    for (let spentMs = 0; spentMs < seconds * 1_000; spentMs = performance.now() - startedMs) {
      this.#signal?.throwIfAborted()
      const due = Math.floor((spentMs / 1_000) * rate)
      while (ends.asked < due) this.#begin(ends)
      await pause(tickMs, this.#signal)
    }
  }

  async ended(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.all(this.#underWay)
    if (this.#failure !== undefined) throw this.#failure
  }

  /** Acknowledged puts that are missing, in words. */
  async lost(): Promise<readonly string[]> {
    const lost: string[] = []
    for (const [nth, rowKey] of this.#acknowledged.entries()) {
      if (nth % readEvery !== 0) continue
      const client = this.#clients[nth % this.#clients.length]
      const cell = await client?.cells(datastore).get({ rowKey, column: 'BASE' })
      if (cell === undefined) lost.push(`the put of ${rowKey} was acknowledged and is not there`)
    }
    return lost
  }

  #begin(ends: OpenLoadEnds): void {
    ends.asked += 1
    const put = this.#put(ends).catch((error: unknown) => void (this.#failure ??= error))
    const forgotten = put.then(() => void this.#underWay.delete(forgotten))
    this.#underWay.add(forgotten)
  }

  async #put(ends: OpenLoadEnds): Promise<void> {
    const client = this.#clients[this.#nth++ % this.#clients.length]
    const rowKey = randomUuid(this.#random)
    const startedMs = performance.now()
    try {
      const body = { nth: this.#nth }
      await client?.cells(datastore).put({ rowKey, column: 'BASE', refKey: 0, body })
      ends.acknowledged += 1
      this.#acknowledged.push(rowKey)
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
      count(ends, error)
    }
    if (performance.now() - startedMs > timeoutMs + lateMs) ends.late += 1
  }
}

function count(ends: OpenLoadEnds, { code, detail }: StoreError): void {
  if (code !== 'overloaded') ends.codes[code] = (ends.codes[code] ?? 0) + 1
  else if ((detail.retryAfterMs ?? 0) > 0) ends.refused += 1
  else ends.untimed += 1
}

function noEnds(): OpenLoadEnds {
  return { asked: 0, acknowledged: 0, refused: 0, untimed: 0, late: 0, codes: {} }
}
