/** Workers in processes of their own, on a cluster in memory, under virtual time. */
import { StoreError } from '../../src/base/errors.ts'
import type { GroupId } from '../../src/base/ids.ts'
import { openCellTables, shardOfGroup } from '../../src/cells/cell-table.ts'
import { shardOf } from '../../src/client/row-shard.ts'
import { Client } from '../../src/client/client.ts'
import type { Clock } from '../../src/ports/clock.ts'
import { randomUuid } from '../../src/ports/random.ts'
import type { Tables } from '../../src/tables/tables.ts'
import type { TriggerLimits } from '../../src/triggers/limits.ts'
import { defineTriggers, type TriggerOptions } from '../../src/triggers/definition.ts'
import type { TriggerEvent } from '../../src/triggers/event.ts'
import { TriggerAdmin } from '../../src/triggers/admin.ts'
import { ServiceStore } from '../../src/triggers/service-store.ts'
import { OffsetStore } from '../../src/triggers/offset-store.ts'
import { Worker } from '../../src/triggers/worker.ts'
import { createClock } from '../../sim/world/clock.ts'
import { guardedPort } from '../../sim/cluster/guarded-port.ts'
import { SeededRandom } from '../../sim/world/random.ts'
import { SimProcess } from '../../sim/world/sim-process.ts'
import { exactClock, passMs, settled } from '../cells/kit.ts'
import { createCluster, type FakeCluster } from '../client/cluster.ts'

export const datastore = 'trips'
export const service = 'billing'

/** Shards, and a row of each. */
export const shards: readonly number[] = [3, 700, 1200, 4000]

export const quick: Partial<TriggerLimits> = {
  ...{ heartbeatMs: 100, leaseMs: 500, waitMs: 2_000, shortWaitMs: 50, callMs: 1_000 },
  pauseMs: 50,
}

export interface Living {
  readonly worker: Worker
  readonly process: SimProcess
  readonly client: Client
  readonly events: readonly TriggerEvent[]
  /** How `run` ended, if it did. */
  ended(): 'no' | 'well' | Error
  stop(): Promise<void>
  /** As by SIGKILL. */
  kill(): void
}

interface Connected {
  readonly client: Client
  readonly clock: Clock
  readonly process: SimProcess
}

export class TriggerBench {
  readonly cluster: FakeCluster
  readonly #random = new SeededRandom('triggers')
  readonly #rows = new Map<number, string>()
  readonly #refKeys = new Map<number, number>()
  readonly #owner: Connected
  #lives = 0
  #isServiceBroken = false
  readonly #brokenShards = new Set<number>()
  readonly #damagedFor = new Set<string>()
  #handles = 0

  constructor(names: readonly string[] = ['n1', 'n2', 'n3']) {
    this.cluster = createCluster({ names })
    this.#owner = this.#connect('owner')
    while (this.#rows.size < shards.length) {
      const row = randomUuid(this.#random)
      if (shards.includes(shardOf(row))) this.#rows.set(shardOf(row), row)
    }
  }

  get nodes(): readonly string[] {
    return [...this.cluster.nodes.keys()]
  }

  get client(): Client {
    return this.#owner.client
  }

  get tables(): Tables {
    return this.#tablesOf(this.#owner)
  }

  get admin(): TriggerAdmin {
    const cells = (of: string): ReturnType<Client['cells']> => this.client.cells(of)
    const { tables } = this
    const { groups } = this.client
    const tablesOf = (): Tables => tables
    return new TriggerAdmin({ cells, groups, tables, tablesOf, timeoutMs: 2_000 }, service)
  }

  wallMicros(): number {
    return this.#owner.clock.wallMicros()
  }

  /** A worker that asks for the group of the service hears that there is no majority. */
  breakService(): void {
    this.#isServiceBroken = true
  }

  /** The same for the group of a shard, unless the worker asks for the log. */
  breakShard(shard: number): void {
    this.#brokenShards.add(shard)
  }

  mendShard(shard: number): void {
    this.#brokenShards.delete(shard)
  }

  /** A worker that asks for the group of a shard hears from now on that its rows are damaged. */
  damageFor(worker: string): void {
    this.#damagedFor.add(worker)
  }

  mendService(): void {
    this.#isServiceBroken = false
  }

  get serviceStore(): ServiceStore {
    return new ServiceStore(this.tables, service, 1_000)
  }

  offsets(trigger = 'bill'): OffsetStore {
    return new OffsetStore(this.tables, datastore, { service, trigger }, 1_000)
  }

  #tablesOf({ client, clock, process }: Connected): Tables {
    const { groups } = client
    const isCut = (group: GroupId): boolean => {
      const shard = shardOfGroup(group)?.shard
      if (shard === undefined) return this.#isServiceBroken
      if (this.#damagedFor.has(process.name)) throw new StoreError('corrupt', 'rows are damaged')
      return this.#brokenShards.has(shard)
    }
    const port = guardedPort(groups, isCut)
    // Sessions are drawn: each handle has chance of its own.
    this.#handles += 1
    return openCellTables(port, { clock, random: this.#random.fork(`tables ${this.#handles}`) })
  }

  #connect(name: string): Connected {
    const { world } = this.cluster.bench
    const process = new SimProcess(world, name)
    const random = this.#random.fork(name)
    const clock = createClock(process, exactClock, random)
    const transport = this.cluster.network.attach(process, this.nodes)
    const client = new Client({ transport, clock, random }, { tryTimeoutMs: 300, avoidMs: 300 })
    return { client, clock, process }
  }

  /** Starts a worker with these triggers. */
  start(
    triggers: readonly TriggerOptions[],
    limits: Partial<TriggerLimits> = {},
    of: readonly number[] = shards,
  ): Living {
    this.#lives += 1
    const name = `worker-${this.#lives}`
    const connected = this.#connect(name)
    const { client, clock, process } = connected
    const events: TriggerEvent[] = []
    const worker = new Worker(
      defineTriggers({ service, datastore, triggers }),
      {
        ...{ cells: client.cells(datastore), tables: this.#tablesOf(connected), clock },
        random: this.#random.fork(`${name} chance`),
      },
      {
        ...{ limits: { ...quick, ...limits }, shards: of, worker: name },
        onEvent: (event) => events.push(event),
      },
    )
    let ended: 'no' | 'well' | Error = 'no'
    worker.run().then(
      () => (ended = 'well'),
      (error: unknown) => (ended = error instanceof Error ? error : new Error(String(error))),
    )
    return {
      ...{ worker, process, client, events },
      ended: () => ended,
      stop: () => this.settle(worker.stop()),
      kill: () => {
        this.cluster.network.detach(process.name)
        process.kill()
      },
    }
  }

  settle<Value>(promise: Promise<Value>): Promise<Value> {
    return settled(this.cluster.bench.world, promise)
  }

  pass(ms: number): Promise<void> {
    return passMs(this.cluster.bench.world, ms)
  }

  /** Lets time pass until it is so. */
  async until(what: string, isSo: () => boolean, atMostMs = 60_000): Promise<void> {
    for (let passedMs = 0; !isSo(); passedMs += 20) {
      if (passedMs > atMostMs) throw new Error(`not within ${atMostMs} ms: ${what}`)
      await this.pass(20)
    }
  }

  /** Writes the next version of a shard's row. */
  async put(shard: number, column = 'BASE'): Promise<number> {
    const refKey = (this.#refKeys.get(shard) ?? -1) + 1
    this.#refKeys.set(shard, refKey)
    const rowKey = this.#rows.get(shard) ?? ''
    const cell = { rowKey, column, refKey, body: { shard, refKey } }
    const written = await this.settle(this.client.cells(datastore).put(cell))
    return written.addedId ?? 0
  }
}
