/**
 * A worker: a member of its service, and a run of each trigger over the shards that it is given. All
 * that a process does for a service goes through one: one heartbeat, one set of tail calls.
 */
import {
  callback,
  checkOptions,
  numberWithin,
  text,
  wholeFrom,
  type Rule,
  type Rules,
} from '../base/arguments.ts'
import { assert } from '../base/assert.ts'
import { StoreError } from '../base/errors.ts'
import { shardCountMax } from '../cells/datastore-form.ts'
import { allShardsOf, isShard, isShardOf, shardWords } from '../cells/shard.ts'
import type { Cells } from '../client/cells.ts'
import type { Clock } from '../ports/clock.ts'
import { randomUuid, type Random } from '../ports/random.ts'
import type { Tables } from '../tables/tables.ts'
import { timeoutRule } from '../txn/intents.ts'
import { signalRule } from '../txn/signalled.ts'
import { decodeHoldings, listShards } from './assignment.ts'
import { untilDone } from './attempt.ts'
import { checkTriggerLimits, defaultTriggerLimits, type TriggerLimits } from './limits.ts'
import type { Service } from './definition.ts'
import type { TriggerEvent } from './event.ts'
import { isOutage, Member } from './member.ts'
import { OffsetStore } from './offset-store.ts'
import { ServiceStore, type ServiceView } from './service-store.ts'
import { TriggerRun } from './trigger-run.ts'

export interface WorkerPorts {
  /** Cells and groups of the cluster. */
  readonly cells: Cells
  readonly tables: Tables
  readonly clock: Clock
  readonly random: Random
}

export interface WorkerOptions {
  readonly limits?: Partial<TriggerLimits>
  /** The shards that the service works on; default: all. In every worker the same. */
  readonly shards?: readonly number[]
  /** A name that no other worker has, nor this one in an earlier life; drawn by default. */
  readonly worker?: string
  readonly onEvent?: (event: TriggerEvent) => void
  /** Stops the worker when it is aborted, as its `stop` does. */
  readonly signal?: AbortSignal
}

const limitRules: Rules<TriggerLimits> = {
  ...{ heartbeatMs: numberFrom(1), leaseMs: numberFrom(1), handlersMax: wholeFrom(1) },
  ...{ pageCells: wholeFrom(1), answersMax: wholeFrom(1), tails: wholeFrom(1) },
  ...{ pollsMax: wholeFrom(1), waitMs: wholeFrom(0), shortWaitMs: wholeFrom(0) },
  ...{ unsavedMax: wholeFrom(1), saveMs: numberFrom(0), callMs: timeoutRule },
  ...{ pauseMs: numberFrom(0), opensMax: wholeFrom(1) },
}
const workerRules: Rules<WorkerOptions> = {
  limits: { accepts: (value) => value !== null, words: 'an object of limits' },
  shards: {
    accepts: (value) => Array.isArray(value) && Array.from(value).every(isShard),
    words: `a list of shards, numbered from 0 to ${shardCountMax - 1}`,
  },
  worker: text,
  onEvent: callback,
  signal: signalRule,
}

function numberFrom(least: number): Rule {
  return numberWithin(least, Number.MAX_SAFE_INTEGER, ' of milliseconds')
}

/** Throws `invalid` for options that a worker does not know, or that contradict one another. */
export function checkWorker({ datastore }: Service, options: WorkerOptions): void {
  checkOptions('runTriggers', options, workerRules)
  checkOptions('runTriggers: limits', options.limits, limitRules)
  const wrong = options.shards?.find((shard) => !isShardOf(datastore, shard))
  if (wrong !== undefined) {
    const message = `runTriggers: datastore ${datastore} has no shard ${wrong}; ${shardWords(datastore)}`
    throw new StoreError('invalid', message)
  }
  const { heartbeatMs, leaseMs } = { ...defaultTriggerLimits, ...options.limits }
  if (heartbeatMs * 3 <= leaseMs) return
  const message = `runTriggers: heartbeatMs is ${heartbeatMs} and leaseMs ${leaseMs}; a lease is three heartbeats at least`
  throw new StoreError('invalid', message)
}

export class Worker {
  readonly name: string
  readonly #service: Service
  readonly #limits: TriggerLimits
  readonly #ports: WorkerPorts
  readonly #store: ServiceStore
  readonly #runs: readonly TriggerRun[]
  readonly #member: Member
  readonly #onEvent: (event: TriggerEvent) => void
  #generation = 0
  #released = 0
  #isReached = true
  #isEnding = false
  #ended: Promise<void> | undefined
  /** The first error that was no outage. */
  #failure: { readonly error: unknown } | undefined
  #onFailure: () => void = () => undefined

  constructor(service: Service, ports: WorkerPorts, options: WorkerOptions = {}) {
    const { shards = allShardsOf(service.datastore), onEvent = () => undefined } = options
    assert(
      shards.every((shard) => isShardOf(service.datastore, shard)),
      'triggers: there is such a shard',
    )
    this.#limits = { ...defaultTriggerLimits, ...options.limits }
    checkTriggerLimits(this.#limits)
    this.name = options.worker ?? randomUuid(ports.random)
    this.#service = service
    this.#ports = ports
    this.#onEvent = onEvent
    this.#store = new ServiceStore(ports.tables, service.service, this.#limits.callMs)
    this.#runs = service.triggers.map((trigger) => this.#makeRun(trigger))
    this.#member = new Member({
      store: this.#store,
      clock: ports.clock,
      random: ports.random,
      limits: this.#limits,
      worker: this.name,
      shards: [...shards].sort((a, b) => a - b),
      released: () => this.#released,
      onView: (view) => this.#onView(view),
      onReach: (isReached, error) => this.#onReach(isReached, error?.message ?? ''),
      onElected: (term) => onEvent({ kind: 'elected', term }),
    })
  }

  /**
   * Until `stop`. Rejects with what is no outage, a bug or a store that refuses, once it has stopped: a
   * heartbeat that went on would keep from the other workers shards on which this one no longer works.
   */
  async run(): Promise<void> {
    const failed = new Promise<void>((resolve) => (this.#onFailure = resolve))
    try {
      await this.#register()
      await new Promise<void>((resolve, reject) => {
        void failed.then(resolve)
        this.#member.run().then(resolve, reject)
      })
    } catch (error) {
      this.#fail(error)
    }
    await (this.#failure === undefined ? this.#ended : this.stop())
  }

  /**
   * Ends handlers and saves what they did, then leaves: another worker gets the shards at once. Rejects
   * with what `run` rejects with.
   */
  stop(): Promise<void> {
    this.#isEnding = true
    this.#ended ??= this.#end()
    return this.#ended
  }

  async #end(): Promise<void> {
    // The heartbeat goes on: no other worker may take the shards while a handler is at work.
    await Promise.all(this.#runs.map((run) => run.end()))
    await this.#member.end()
    try {
      await this.#store.leave(this.name)
    } catch (error) {
      // It is missed after a while.
      if (!isOutage(error)) this.#fail(error)
    }
    if (this.#failure !== undefined) throw this.#failure.error
  }

  #fail(error: unknown): void {
    this.#failure ??= { error }
    this.#onFailure()
  }

  async #register(): Promise<void> {
    const { datastore, triggers } = this.#service
    const { clock } = this.#ports
    const { pauseMs } = this.#limits
    await untilDone({ clock, pauseMs, mayGoOn: () => !this.#isEnding }, () =>
      this.#store.register(datastore, triggers),
    )
  }

  #makeRun(trigger: Service['triggers'][number]): TriggerRun {
    const { service, datastore } = this.#service
    const { cells, tables, clock, random } = this.#ports
    const name = { service, trigger: trigger.name }
    return new TriggerRun({
      trigger,
      worker: this.name,
      cells,
      clock,
      random,
      limits: this.#limits,
      offsets: new OffsetStore(tables, datastore, name, this.#limits.callMs),
      report: (...told) => this.#store.report(...told),
      marks: (of) => this.#store.marks(of),
      onEvent: this.#onEvent,
      onFailed: (error) => this.#fail(error),
    })
  }

  #onView({ service, triggers }: ServiceView): void {
    for (const run of this.#runs) {
      const row = triggers.find(({ trigger }) => trigger === run.name)
      if (row !== undefined) run.onRow(row)
    }
    if (service === undefined || service.generation === this.#generation) return
    assert(service.generation > this.#generation, 'TRIG-5: the assignments of a service went back')
    const { generation, assignment } = service
    this.#generation = generation
    const shards = listShards(decodeHoldings(assignment), this.name)
    for (const run of this.#runs) run.assign(shards)
    this.#onEvent({ kind: 'assigned', generation, shards: shards.size })
    void this.#release(generation)
  }

  /** Says, by the next heartbeat, that nothing is at work in the shards that it has had to give up. */
  async #release(generation: number): Promise<void> {
    await Promise.all(this.#runs.map((run) => run.quiet()))
    if (generation <= this.#released) return
    this.#released = generation
    if (!this.#isEnding) this.#member.hurry()
  }

  #onReach(isReached: boolean, error: string): void {
    if (isReached === this.#isReached) return
    this.#isReached = isReached
    this.#onEvent({ kind: 'reach', isReached, error })
  }
}
