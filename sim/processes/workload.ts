/**
 * Applications on the real client, over real connections. Each is a session of its own, makes one
 * call after another, and writes down every call and answer.
 */
import { StoreError } from '../../src/base/errors.ts'
import type { ReplicaReadLevel } from '../../src/group/replica-port.ts'
import { shardOf } from '../../src/client/row-shard.ts'
import type { Client } from '../../src/client/client.ts'
import { connect } from '../../src/client/connect.ts'
import { randomUuid } from '../../src/ports/random.ts'
import { Frontier } from '../workloads/cell-client.ts'
import type { HistoryLog } from '../history/history-log.ts'
import { recordClient, type CellCalls } from '../history/record-client.ts'
import { SeededRandom } from '../world/random.ts'

export const datastore = 'processes'

const rowCount = 40
const columns = ['BASE', 'STATUS'] as const
const timeoutMsChoices = [1_000, 4_000, 10_000] as const
/** Parts per million of calls. */
const writes = 600_000
const contended = 250_000
const anyReads = 400_000
const wholeLogs = 300_000

export interface WorkloadParts {
  readonly seed: number
  readonly log: HistoryLog
  readonly thinkMeanMs: number
  nodes(): readonly string[]
  urlsFor(client: string, nodes: readonly string[]): readonly string[]
}

interface Session {
  readonly name: string
  readonly client: Client
  readonly cells: CellCalls
  readonly random: SeededRandom
  isDead: boolean
}

export class ProcessWorkload {
  readonly rows: readonly string[]
  readonly #parts: WorkloadParts
  readonly #frontier = new Frontier()
  readonly #highestAddedId = new Map<number, number>()
  readonly #codes = new Map<string, number>()
  readonly #sessions = new Map<string, Session>()
  readonly #work: Promise<void>[] = []
  readonly #random: SeededRandom
  #failure: unknown
  #stormUntilMs = 0
  #lives = 0
  #isEnding = false

  constructor(parts: WorkloadParts) {
    this.#parts = parts
    this.#random = new SeededRandom(`${parts.seed}/processes/workload`)
    const random = this.#random.fork('rows')
    this.rows = Array.from({ length: rowCount }, () => randomUuid(random))
  }

  get shards(): readonly number[] {
    return [...new Set(this.rows.map((row) => shardOf(row)))]
  }

  /** How often calls ended with each code of an error. */
  get codes(): Readonly<Record<string, number>> {
    return Object.fromEntries([...this.#codes].toSorted(([a], [b]) => (a < b ? -1 : 1)))
  }

  async start(clients: readonly string[]): Promise<void> {
    for (const client of clients) await this.#bringUp(client)
  }

  storm(lengthMs: number): void {
    this.#stormUntilMs = performance.now() + lengthMs
  }

  /**
   * It dies with whatever it was doing; another one comes up in its place, and has seen nothing.
   */
  killClient(name: string, downMs: number): void {
    const session = this.#sessions.get(name)
    if (session === undefined || session.isDead) return
    session.isDead = true
    this.#begin(
      session.client
        .close()
        .then(() => pause(downMs))
        .then(() => (this.#isEnding ? undefined : this.#bringUp(name))),
    )
  }

  /** Begins nothing more, and waits for no answer any more. */
  async abandon(): Promise<void> {
    this.#isEnding = true
    await Promise.all([...this.#sessions.values()].map(({ client }) => client.close()))
  }

  /** The first unexpected rejection of a call. */
  get failure(): unknown {
    return this.#failure
  }

  /** Every call under way comes to its end. */
  async end(): Promise<void> {
    this.#isEnding = true
    // Dead clients may bring up others until all have noticed.
    for (let done = 0; done < this.#work.length;) {
      const all = this.#work.slice()
      await Promise.all(all)
      done = all.length
    }
    await Promise.all([...this.#sessions.values()].map(({ client }) => client.close()))
  }

  #begin(work: Promise<void>): void {
    this.#work.push(
      work.catch((error: unknown) => {
        this.#failure ??= error
      }),
    )
  }

  async #bringUp(name: string): Promise<void> {
    const { log, nodes, urlsFor } = this.#parts
    this.#lives += 1
    const random = this.#random.fork(`${name} life ${this.#lives}`)
    const all = nodes()
    const known = random.shuffle(all).slice(0, random.int(1, all.length))
    const timeoutMs = random.pick(timeoutMsChoices)
    const client = await connect({ endpoints: urlsFor(name, known), timeoutMs })
    if (this.#isEnding) return client.close()
    // A name of its own: what the one before has seen is no promise to this one.
    const recorded = recordClient(client, { client: `${name}.${this.#lives}`, log })
    const cells = recorded.cells(datastore)
    const session: Session = { name, client, cells, random, isDead: false }
    this.#sessions.set(name, session)
    this.#begin(this.#run(session))
  }

  async #run(session: Session): Promise<void> {
    const { thinkMeanMs } = this.#parts
    while (!this.#isEnding && !session.isDead) {
      const isStorm = performance.now() < this.#stormUntilMs
      await pause(isStorm ? 0 : session.random.exponential(thinkMeanMs))
      try {
        await this.#call(session, isStorm)
      } catch (error) {
        if (!(error instanceof StoreError)) throw error
        this.#codes.set(error.code, (this.#codes.get(error.code) ?? 0) + 1)
      }
    }
  }

  async #call({ cells, random }: Session, isStorm: boolean): Promise<void> {
    const rowKey = random.pick(isStorm ? this.rows.slice(0, 1) : this.rows)
    const column = random.pick(columns)
    const highest = this.#frontier.highest(rowKey, column)
    if (random.chance(writes)) {
      const isContended = highest >= 0 && random.chance(contended)
      const refKey = isContended
        ? random.int(Math.max(0, highest - 2), highest)
        : this.#frontier.advance(rowKey, column)
      // Now and then what others would write as well.
      const body = random.chance(300_000) ? { agreed: refKey } : { drawn: random.int(0, 1e9) }
      const { shard, addedId } = await cells.put({ rowKey, column, refKey, body })
      if (addedId !== undefined) this.#see(shard, addedId)
      return
    }
    const read: ReplicaReadLevel = random.chance(anyReads) ? 'snapshot' : 'current'
    switch (random.int(0, 2)) {
      case 0: {
        const refKey = random.int(Math.max(0, highest - 3), Math.max(0, highest) + 1)
        await cells.get({ rowKey, column, refKey }, { read })
        return
      }
      case 1:
        await cells.get({ rowKey, column }, { read })
        return
      default: {
        const shard = shardOf(rowKey)
        const end = this.#highestAddedId.get(shard) ?? 0
        const after = random.chance(wholeLogs) ? 0 : Math.max(0, end - random.int(0, 5))
        await cells.shardLog(shard, { after, read })
      }
    }
  }

  #see(shard: number, addedId: number): void {
    this.#highestAddedId.set(shard, Math.max(this.#highestAddedId.get(shard) ?? 0, addedId))
  }
}

/** Resolves after this time, or once the signal aborts. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, ms)
    signal?.addEventListener('abort', end)
  })
}
