/**
 * `bench queues`: messages from group to group through three daemons on loopback, from the call that
 * sends them to the commit that handles them; senders and handlers are this process.
 *
 * - `fan-out`: one group, whose transactions each send to a thousand groups, some transactions at once.
 * - `pairs`: as many groups as clients, each sending one message a transaction to another one.
 * - `single`: one message at a time, every 20 ms: the time of one message when nothing else is going
 *   on.
 */
import { groupOfBytes, type GroupId } from '../../src/base/ids.ts'
import { encodeTuple } from '../../src/base/tuple.ts'
import { systemClock } from '../../src/adapters/system-clock.ts'
import { systemRandom } from '../../src/adapters/system-random.ts'
import type { Client } from '../../src/client/client.ts'
import { Sender } from '../../src/queues/send.ts'
import type { Taken } from '../../src/queues/take.ts'
import { runTransaction } from '../../src/txn/run.ts'
import { Sessions } from '../../src/txn/session.ts'
import { machine, openClient, type Machine } from '../common.ts'
import { countingSeconds } from '../commits.ts'
import { summarizeLoad, type LoadResult } from '../load.ts'
import { cpuSeconds, pause, startCluster, type BenchCluster } from '../processes.ts'

export interface QueuesOptions {
  readonly clients: number
  /** Of each workload. */
  readonly seconds: number
  readonly bodyBytes: number
}

export type QueueWorkName = 'fan-out' | 'pairs' | 'single'

export interface QueueFigures extends Omit<LoadResult, 'elapsedMs'> {
  readonly work: QueueWorkName
  /** Until the last one was handled. */
  readonly perSecond: number
  /** CPU seconds per 1,000 messages: of all nodes, and of senders and handlers. */
  readonly cpuPer1000: { readonly nodes: number; readonly client: number }
}

export interface QueuesReport {
  readonly bench: 'queues'
  readonly date: string
  readonly machine: Machine
  readonly options: QueuesOptions
  readonly isQuick: boolean
  readonly works: readonly QueueFigures[]
}

const queue = 'bench'
const fanOut = 1_000
const singlePauseMs = 20
const drainMsMax = 120_000

export async function benchQueues(
  options: QueuesOptions,
  signal: AbortSignal,
  onWork: (figures: QueueFigures) => void,
): Promise<QueuesReport> {
  const cluster = await startCluster()
  try {
    const client = await openClient(cluster.urls, signal)
    const works: QueueFigures[] = []
    for (const work of ['single', 'pairs', 'fan-out'] as const) {
      const figures = await new Measurement(cluster, client, work, options, signal).run()
      works.push(figures)
      onWork(figures)
    }
    await client.close()
    const isQuick = options.seconds < countingSeconds
    const date = new Date().toISOString()
    return { bench: 'queues', date, machine: machine(), options, isQuick, works }
  } finally {
    await cluster.stop()
  }
}

class Measurement {
  readonly #cluster: BenchCluster
  readonly #client: Client
  readonly #work: QueueWorkName
  readonly #options: QueuesOptions
  readonly #signal: AbortSignal
  readonly #intents = new Sessions(systemClock, systemRandom)
  readonly #latenciesMs: number[] = []
  #sent = 0
  #failures = 0

  constructor(
    cluster: BenchCluster,
    client: Client,
    work: QueueWorkName,
    options: QueuesOptions,
    signal: AbortSignal,
  ) {
    this.#cluster = cluster
    this.#client = client
    this.#work = work
    this.#options = options
    this.#signal = signal
  }

  async run(): Promise<QueueFigures> {
    const handling = this.#client.queues.consume({
      queue,
      handle: async (transaction, messages) => {
        transaction.put(Buffer.from(`seen/${messages[0]?.id}`), Buffer.from('x'))
      },
      onHandled: (_group, messages) => this.#onHandled(messages),
      onFailed: () => (this.#failures += 1),
    })
    const before = performance.now()
    const used = await this.#cpu()
    const end = before + this.#options.seconds * 1000
    const loops = { 'fan-out': 4, pairs: this.#options.clients, single: 1 }[this.#work]
    await Promise.all(Array.from({ length: loops }, (_, i) => this.#sendUntil(end, i)))
    const latest = performance.now() + drainMsMax
    while (this.#latenciesMs.length < this.#sent && performance.now() < latest) await pause(5)
    const elapsedMs = performance.now() - before
    await handling.stop()
    const lost = this.#sent - this.#latenciesMs.length
    const { elapsedMs: _, ...result } = summarizeLoad(
      this.#latenciesMs,
      this.#failures + lost,
      elapsedMs,
    )
    const now = await this.#cpu()
    const per1000 = (seconds: number): number => (seconds / result.operations) * 1000
    const cpuPer1000 = {
      nodes: per1000(now.nodes - used.nodes),
      client: per1000(now.client - used.client),
    }
    const perSecond = result.operations / (elapsedMs / 1000)
    return { work: this.#work, ...result, perSecond, cpuPer1000 }
  }

  async #cpu(): Promise<{ readonly nodes: number; readonly client: number }> {
    const { nodes } = this.#cluster
    const used = await Promise.all(nodes.map(({ child }) => cpuSeconds(child.pid ?? 0)))
    const { user, system } = process.cpuUsage()
    return { nodes: used.reduce((sum, one) => sum + one, 0), client: (user + system) / 1e6 }
  }

  #onHandled(messages: readonly Taken[]): void {
    const now = performance.now()
    for (const { message } of messages) {
      this.#latenciesMs.push(now - Buffer.from(message.body).readDoubleBE())
    }
  }

  async #sendUntil(end: number, loop: number): Promise<void> {
    for (let i = 0; performance.now() < end && !this.#signal.aborted; i++) {
      await this.#send(loop, i)
      if (this.#work === 'single') await pause(singlePauseMs)
      // No more on the way than a few transactions' messages: this measures no queue that grows.
      const most = 4 * fanOut * 4
      while (this.#sent - this.#latenciesMs.length > most && performance.now() < end) await pause(1)
    }
  }

  async #send(loop: number, number: number): Promise<void> {
    const isFanOut = this.#work === 'fan-out'
    const from = buildGroup(this.#work, 'from', isFanOut ? 0 : loop)
    const receivers = isFanOut
      ? Array.from({ length: fanOut }, (_, i) => buildGroup(this.#work, 'to', i))
      : [buildGroup(this.#work, 'to', this.#work === 'single' ? number % 100 : loop)]
    const body = Buffer.alloc(this.#options.bodyBytes, 'x')
    const options = { clock: systemClock, random: systemRandom, intents: this.#intents }
    await runTransaction(this.#client.groups, from, options, async (transaction) => {
      const sender = new Sender(transaction)
      body.writeDoubleBE(performance.now())
      for (const receiver of receivers) sender.send(queue, receiver, body)
    })
    this.#sent += receivers.length
  }
}

function buildGroup(work: QueueWorkName, side: string, number: number): GroupId {
  return groupOfBytes(encodeTuple(['bench', work, side, number]))
}
