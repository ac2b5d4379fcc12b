/**
 * Workers of a service with one trigger on the column that the other clients write most. Each is a
 * process with a clock and links of its own. Workers crash, lose their memory and return as others,
 * pause, and are cut off. Handlers fail, hang, and fail for good on some cells. Meanwhile an
 * operator pauses, resumes, skips and replays. At the end every cell is handled, also the marked
 * ones.
 */
import { StoreError } from '../../src/base/errors.ts'
import type { GroupId } from '../../src/base/ids.ts'
import { openCellTables, shardOfGroup } from '../../src/cells/cell-table.ts'
import { Client } from '../../src/client/client.ts'
import type { Clock } from '../../src/ports/clock.ts'
import type { Tables } from '../../src/tables/tables.ts'
import { TriggerAdmin } from '../../src/triggers/admin.ts'
import type { TriggerLimits } from '../../src/triggers/limits.ts'
import { defineTriggers, type Service, type TriggerCell } from '../../src/triggers/definition.ts'
import type { TriggerEvent } from '../../src/triggers/event.ts'
import { isOutage } from '../../src/triggers/member.ts'
import { Worker } from '../../src/triggers/worker.ts'
import type { ClientFrame } from '../../src/wire/client/client-message.ts'
import { datastore } from './datastore.ts'
import type { Judge } from '../checkers/judge.ts'
import type { Referee } from '../checkers/referee.ts'
import { TriggerChecker } from '../checkers/trigger-checker.ts'
import { createClock } from '../world/clock.ts'
import type { Coverage } from '../coverage.ts'
import { nameEndpoint } from '../cluster/endpoints.ts'
import { guardedPort } from '../cluster/guarded-port.ts'
import { hotShards } from './hot-rows.ts'
import type { Load } from './load.ts'
import type { Network } from '../world/network.ts'
import type { SeededRandom } from '../world/random.ts'
import { SimProcess } from '../world/sim-process.ts'
import type { WorkloadOptions } from '../swarm.ts'
import type { World } from '../world/world.ts'

export interface TriggerWorkloadParts {
  readonly world: World
  readonly network: Network<ClientFrame>
  readonly coverage: Coverage
  readonly referee: Referee
  readonly judge: Judge
  readonly options: WorkloadOptions
  readonly load: Load
  readonly nodes: readonly string[]
  /** Whether a node may have a damaged data disk now, and say so. */
  mayBeCorrupt(): boolean
  tell(client: string, what: string): void
  onFailed(error: unknown): void
}

const second = 1_000_000
const service = 'simulated'
const trigger = 'watch'
const column = 'BASE'
/** Between two troubles of a worker, and two things that are done by hand. */
const troubleMeanMicros = 2 * second
const handMeanMicros = 4 * second
/** A handler that hangs is given up after this. */
const handlerMs = 1_500

/** A process that has a worker or the hands of an operator. */
interface Connected {
  readonly process: SimProcess
  readonly client: Client
  readonly clock: Clock
  readonly random: SeededRandom
}

interface Living {
  readonly name: string
  readonly life: number
  readonly process: SimProcess
  readonly worker: Worker
}

export class TriggerWorkload {
  readonly #parts: TriggerWorkloadParts
  readonly #random: SeededRandom
  readonly #checker: TriggerChecker
  readonly #limits: Partial<TriggerLimits>
  readonly #service: Service
  readonly #failing: number
  readonly #living = new Map<string, Living>()
  /** Processes that do not reach the service's group, while they reach those of shards. */
  readonly #deaf = new Set<string>()
  #isEnding = false
  #isWell = false
  #isOver = false
  #busy = 0

  constructor(parts: TriggerWorkloadParts) {
    this.#parts = parts
    const { referee, judge, world } = parts
    this.#random = world.random.fork('triggers')
    const { model } = judge
    const names = { datastore, service, trigger, column }
    this.#checker = new TriggerChecker({ referee, model, ...names })
    this.#limits = drawLimits(this.#random.fork('limits'))
    this.#failing = this.#random.pick([0, 50_000, 300_000])
    this.#service = this.#define(this.#random.fork('definition'))
    if (parts.options.triggerWorkerCount === 0) return
    const others = model.onEffect
    model.onEffect = (effect) => {
      others(effect)
      this.#checker.onEffect(effect)
    }
  }

  /** Whether all that was begun at the end has come to its end. */
  isDone(): boolean {
    return this.#busy === 0
  }

  start(): void {
    const { triggerWorkerCount, triggerTroubles } = this.#parts.options
    for (let i = 1; i <= triggerWorkerCount; i++) {
      this.#bringUp(`trigger-${i}`, 1)
      if (triggerTroubles > 0) this.#beside(this.#trouble(`trigger-${i}`))
      this.#beside(this.#rest(`trigger-${i}`))
    }
    if (triggerWorkerCount > 0 && triggerTroubles > 0) this.#beside(this.#handle())
  }

  /** No more troubles, and nothing is done by hand any more. */
  end(): void {
    this.#isEnding = true
  }

  /** Once the world has healed: nothing fails any more, and all that is there is handled. */
  finish(): void {
    const { options, nodes, network } = this.#parts
    if (options.triggerWorkerCount === 0) return
    this.#isWell = true
    this.#deaf.clear()
    for (const { name, process } of this.#living.values()) {
      process.resume()
      for (const node of nodes) this.#mend(network, name, node)
    }
    this.#begin(this.#drain())
  }

  async #drain(): Promise<void> {
    const { world, coverage } = this.#parts
    const admin = this.#operator('trigger-operator-last')
    const isDrained = (): boolean => this.#checker.isDrained && this.#checker.markedCount === 0
    for (let look = 0; look < 40 && !isDrained(); look++) {
      await this.#told(() => admin.resume(trigger))
      if (this.#checker.markedCount > 0) await this.#told(() => admin.retry(trigger))
      for (let wait = 0; wait < 10 && !isDrained(); wait++) await world.sleep(second / 4)
    }
    this.#isOver = true
    this.#checker.onDrained()
    const stops = [...this.#living.values()].map(({ worker }) => this.#told(() => worker.stop()))
    await Promise.all(stops)
    coverage.count('triggers: handlers called', this.#checker.calls)
    coverage.count('triggers: cells marked', this.#checker.marks)
    const { replays, inOrder } = this.#checker
    if (replays > 0) coverage.count('triggers: replay forgets', replays)
    if (inOrder > 0) coverage.count('triggers: a shard was given on in order', inOrder)
  }

  /** During a long idle time no worker runs either: its heartbeat is never idle. */
  async #rest(name: string): Promise<void> {
    const { world, load } = this.#parts
    for (;;) {
      await world.sleep(second)
      if (this.#isEnding) return
      const living = this.#living.get(name)
      if (load.idleMicros > 0 && living !== undefined) {
        await this.#replace(living, 'death', load.idleMicros)
      }
    }
  }

  /** Deaths, pauses and cuts of one worker, one after another. */
  async #trouble(name: string): Promise<void> {
    const { world, coverage, network, nodes } = this.#parts
    const random = this.#random.fork(`trouble ${name}`)
    for (;;) {
      await world.sleep(1 + random.exponential(troubleMeanMicros))
      if (this.#isEnding) return
      const kind = random.pick(['death', 'death', 'pause', 'cut', 'stop', 'deafness'] as const)
      // Shorter and longer than a lease.
      const lengthMicros = 1 + random.exponential(random.pick([second / 2, 4 * second]))
      const living = this.#living.get(name)
      if (living === undefined) continue
      coverage.count(`triggers: ${kind}`)
      this.#parts.tell(name, `meets a ${kind}`)
      if (kind === 'pause') living.process.pause(lengthMicros)
      else if (kind === 'deafness') {
        this.#deaf.add(living.process.name)
        await world.sleep(lengthMicros)
        this.#deaf.delete(living.process.name)
      } else if (kind === 'cut') {
        const { weather } = network.parts
        for (const node of nodes) weather.cut(name, node)
        for (const node of nodes) if (random.chance(500_000)) weather.cut(node, name)
        await world.sleep(lengthMicros)
        for (const node of nodes) this.#mend(network, name, node)
      } else await this.#replace(living, kind, lengthMicros)
    }
  }

  #mend(network: Network<ClientFrame>, name: string, node: string): void {
    network.parts.weather.mend(name, node)
    network.parts.weather.mend(node, name)
  }

  async #replace(living: Living, kind: 'death' | 'stop', downMicros: number): Promise<void> {
    const { world, network } = this.#parts
    const { name, process, worker, life } = living
    if (this.#living.get(name) !== living) return
    this.#living.delete(name)
    if (kind === 'stop') {
      // As with a stop timeout: a worker that has not ended by then is killed.
      const stopped = worker.stop()
      stopped.catch(() => undefined)
      await world.sleep(second)
    }
    if (process.isAlive) {
      network.detach(process.name)
      process.kill()
    }
    await world.sleep(downMicros)
    this.#bringUp(name, life + 1)
  }

  /** An operator at the command line. */
  async #handle(): Promise<void> {
    const { world, coverage, load } = this.#parts
    const random = this.#random.fork('hands')
    const admin = this.#operator('trigger-operator')
    for (;;) {
      await world.sleep(1 + random.exponential(handMeanMicros))
      while (load.idleMicros > 0 && !this.#isEnding) await load.passIdle()
      if (this.#isEnding) return
      const shard = random.pick(this.#shards)
      const after = random.int(0, 10)
      const acts = {
        resume: () => admin.resume(trigger),
        pause: () => admin.pause(trigger),
        skip: () => admin.skip(trigger, shard),
        replay: () => admin.replay(trigger, { shard, after }),
        retry: () => admin.retry(trigger),
      } as const
      const name = random.pick(['resume', 'resume', 'pause', 'skip', 'replay', 'retry'] as const)
      const isDone = await this.#told(acts[name])
      if (isDone) coverage.count(`triggers: ${name} by hand`)
    }
  }

  /** False when it could not be done. */
  async #told(act: () => Promise<unknown>): Promise<boolean> {
    try {
      await act()
      return true
    } catch (error) {
      const isExpected =
        isOutage(error) || (error instanceof StoreError && error.code === 'not-found')
      if (!isExpected && !this.#isExcused(error)) throw error
      return false
    }
  }

  #isExcused(error: unknown): boolean {
    return error instanceof StoreError && error.code === 'corrupt' && this.#parts.mayBeCorrupt()
  }

  get #shards(): readonly number[] {
    return hotShards.slice(0, this.#parts.options.shardCount)
  }

  #define(random: SeededRandom): Service {
    return defineTriggers({
      service,
      datastore,
      triggers: [
        {
          name: trigger,
          column,
          retryMs: random.pick([10, 100]),
          retryMaxMs: 500,
          attemptsMax: random.pick([1, 2, 5]),
          marksMax: random.pick([0, 2, 1_000]),
          timeoutMs: handlerMs,
          // Each worker names its calls itself, with random numbers of its own.
          handle: () => undefined,
        },
      ],
    })
  }

  async #called(
    cell: TriggerCell,
    { process, random }: Connected,
    generation: number,
  ): Promise<void> {
    const { coverage } = this.#parts
    const { shard, addedId } = cell
    const by = {
      ...{ worker: process.name, generation, isOver: false },
      isAlive: () => process.isAlive,
    }
    const call = this.#checker.onCalled(shard, addedId, by)
    // A handler that takes longer has failed; it may still be at work, and the worker cannot stop
    // it.
    process.schedule(handlerMs * 900, 'handler late', call.end)
    const micros = 1 + random.exponential(random.pick([100, 10_000, 200_000]))
    const isHung = !this.#isWell && random.chance(20_000)
    const isFailing = !this.#isWell && (random.chance(this.#failing) || isPoison(addedId))
    if (isHung) {
      coverage.count('triggers: handler hangs')
      await new Promise<never>(() => undefined)
    }
    await new Promise<void>((resolve) => void process.schedule(micros, 'handler', resolve))
    call.end()
    if (isFailing) {
      coverage.count('triggers: handler fails')
      throw new Error('the handler fails')
    }
    call.handled()
  }

  #bringUp(name: string, life: number): void {
    if (this.#isOver) return
    const connected = this.#connect(nameEndpoint(name, life))
    const { client, clock, random, process } = connected
    const [only] = this.#service.triggers
    /** Under which each shard's last call was announced, just before it. */
    const generations = new Map<number, number>()
    const handle = (cell: TriggerCell): Promise<void> =>
      this.#called(cell, connected, generations.get(cell.shard) ?? 0)
    const own = { ...this.#service, triggers: only === undefined ? [] : [{ ...only, handle }] }
    const tables = this.#openTables(connected)
    const ports = { cells: client.cells(datastore), tables, clock, random: random.fork('worker') }
    const { name: worker } = process
    const onEvent = (event: TriggerEvent): void => {
      if (event.kind === 'calls') generations.set(event.cell.shard, event.claim.generation)
      this.#parts.tell(name, describeEvent(event))
    }
    const options = { limits: this.#limits, shards: this.#shards, worker, onEvent }
    const living = { name, life, process, worker: new Worker(own, ports, options) }
    this.#living.set(name, living)
    living.worker.run().catch((error: unknown) => {
      if (!process.isAlive || this.#living.get(name) !== living) return
      if (!this.#isExcused(error)) return this.#parts.onFailed(error)
      this.#beside(this.#replace(living, 'death', second))
    })
  }

  #operator(name: string): TriggerAdmin {
    const connected = this.#connect(name)
    const tables = this.#openTables(connected)
    const cells = (of: string): ReturnType<Client['cells']> => connected.client.cells(of)
    const { groups } = connected.client
    const tablesOf = (): Tables => tables
    return new TriggerAdmin({ cells, groups, tables, tablesOf, timeoutMs: 4_000 }, service)
  }

  #openTables({ client, clock, random, process }: Connected): Tables {
    const { groups } = client
    const isCut = (group: GroupId): boolean =>
      this.#deaf.has(process.name) && !this.#isWell && shardOfGroup(group) === undefined
    const port = guardedPort(groups, isCut)
    return openCellTables(port, { clock, random: random.fork('tables') })
  }

  #connect(name: string): Connected {
    const { world, network, options, nodes } = this.#parts
    const random = this.#random.fork(name)
    const process = new SimProcess(world, name)
    const transport = network.attach(process, nodes)
    const offsetMicros = random.int(-200_000, 200_000)
    const skew = { offsetMicros, driftPpm: random.int(-1_000, 1_000), timerLatenessMicros: 0 }
    const clock = createClock(process, skew, random.fork('clock'))
    const { tryTimeoutMs, timeoutMs } = options
    const limits = { timeoutMs, tryTimeoutMs, avoidMs: tryTimeoutMs }
    const client = new Client({ transport, clock, random: random.fork('chance') }, limits)
    return { process, client, clock, random }
  }

  /** Work that no caller awaits: it ends at its next look. */
  #beside(work: Promise<void>): void {
    work.catch((error: unknown) => this.#parts.onFailed(error))
  }

  #begin(work: Promise<void>): void {
    this.#busy += 1
    work.then(
      () => (this.#busy -= 1),
      (error: unknown) => this.#parts.onFailed(error),
    )
  }
}

function describeEvent(event: TriggerEvent): string {
  switch (event.kind) {
    case 'calls':
    case 'handled':
    case 'failed': {
      const { shard, addedId } = event.cell
      return `${event.kind} ${shard}/${addedId} under ${event.claim.generation}`
    }
    case 'marked':
      return `marks ${event.shard}/${event.cell.addedId}`
    case 'unmarked':
      return `unmarks ${event.shard}/${event.addedId}`
    case 'passed-over':
      return `${event.trigger} passes over ${event.cells} cells of shard ${event.shard}`
    case 'saved':
      return `saves ${event.claim.shard}/${event.after} under ${event.claim.generation}`
    case 'elected':
      return `is elected for term ${event.term}`
    case 'assigned':
      return `has ${event.shards} shards in generation ${event.generation}`
    case 'state':
      return `sees the trigger ${event.state}: ${event.reason}`
    case 'reach':
      return event.isReached ? 'reaches its service' : `does not reach its service: ${event.error}`
  }
}

/** Cells that no handler can do with, until all is well. */
function isPoison(addedId: number): boolean {
  return addedId % 7 === 0
}

function drawLimits(random: SeededRandom): Partial<TriggerLimits> {
  const heartbeatMs = random.pick([100, 300, 600])
  return {
    heartbeatMs,
    leaseMs: heartbeatMs * random.pick([3, 5]),
    handlersMax: random.pick([1, 8]),
    pageCells: random.pick([1, 5, 100]),
    answersMax: random.pick([1, 16]),
    pollsMax: random.pick([1, 4]),
    waitMs: random.pick([300, 2_000]),
    shortWaitMs: random.pick([20, 100]),
    unsavedMax: random.pick([1, 1_000]),
    saveMs: random.pick([0, 0, 300]),
    callMs: random.pick([1_000, 4_000]),
    pauseMs: random.pick([20, 200]),
    opensMax: random.pick([1, 64]),
    tails: random.pick([1, 3]),
  }
}
