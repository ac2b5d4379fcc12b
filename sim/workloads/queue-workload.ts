/**
 * Messages from group to group: sessions that send, and processes that handle, both on the real
 * client library. Handlers come and go. Some messages make them fail, for a while or until the
 * handlers are mended. Then the operator redrives the dead letters.
 */
import { groupOfBytes, type GroupId } from '../../src/base/ids.ts'
import { encodeTuple } from '../../src/base/tuple.ts'
import { Client } from '../../src/client/client.ts'
import type { Clock } from '../../src/ports/clock.ts'
import type { QueueHandler } from '../../src/queues/handler.ts'
import type { Taken } from '../../src/queues/take.ts'
import type { RawTransaction } from '../../src/txn/raw-transaction.ts'
import { StoreError } from '../../src/base/errors.ts'
import type { ClientFrame } from '../../src/wire/client/client-message.ts'
import type { Judge } from '../checkers/judge.ts'
import { handledMark, QueueChecker, totalKey } from '../checkers/queue-checker.ts'
import type { Referee } from '../checkers/referee.ts'
import { createClock } from '../world/clock.ts'
import type { Coverage } from '../coverage.ts'
import { nameEndpoint } from '../cluster/endpoints.ts'
import type { Network } from '../world/network.ts'
import { queueNames, QueueSession } from './queue-session.ts'
import type { SeededRandom } from '../world/random.ts'
import { SimProcess } from '../world/sim-process.ts'
import type { WorkloadOptions } from '../swarm.ts'
import type { World } from '../world/world.ts'

export interface QueueWorkloadParts {
  readonly world: World
  readonly network: Network<ClientFrame>
  readonly coverage: Coverage
  readonly referee: Referee
  readonly judge: Judge
  readonly options: WorkloadOptions
  readonly nodes: readonly string[]
  /** Whether a node may have a damaged data disk now, and say so. */
  mayBeCorrupt(): boolean
  tell(client: string, what: string): void
  onFailed(error: unknown): void
}

/** A handler of the simulator fails by itself only, never because the world is slow. */
const patienceMs = 250_000
/**
 * Codes that the world may be the reason of, beside those that say that a call may be made again.
 */
const excused: readonly string[] = ['closed', 'expired', 'snapshot-too-old']
const looksMicros = 200_000
/**
 * The operator then looks for dead letters once more: the replica that listed them may have been
 * behind.
 */
const againMicros = 10_000_000
const downMeanMicros = 500_000

/** A process that handles all queues. */
interface HandlerProcess {
  readonly process: SimProcess
  readonly client: Client
  readonly handlers: readonly QueueHandler[]
}

export class QueueWorkload {
  readonly #parts: QueueWorkloadParts
  readonly #checker: QueueChecker
  readonly #groups: readonly GroupId[]
  readonly #sessions: QueueSession[] = []
  readonly #living = new Map<string, HandlerProcess>()
  #busy = 0
  /** Handlers were mended: they now succeed with the messages they failed on. */
  #isMended = false
  /** No handler process dies any more. */
  #isEnding = false
  #isDrained = false

  constructor(parts: QueueWorkloadParts) {
    this.#parts = parts
    const { referee, coverage, judge, options } = parts
    this.#checker = new QueueChecker(referee, coverage, options.queues.attemptsMax)
    const { groupCount } = options.queues
    this.#groups = Array.from({ length: groupCount }, (_, i) =>
      groupOfBytes(encodeTuple(['mail', i + 1])),
    )
    if (!this.#isOn) return
    for (const group of this.#groups) this.#checker.onGroup(group)
    const before = judge.model.onEffect
    judge.model.onEffect = (effect) => {
      before(effect)
      this.#checker.onEffect(effect)
    }
  }

  get #isOn(): boolean {
    return this.#parts.options.queues.sessionCount > 0
  }

  /** Whether all sessions have ended their sends. */
  isDone(): boolean {
    return this.#busy === 0
  }

  isDrained(): boolean {
    return this.#isDrained || !this.#isOn
  }

  get leftOvers(): object {
    return this.#checker.leftOvers()
  }

  start(): void {
    if (!this.#isOn) return
    const { options } = this.#parts
    for (let i = 1; i <= options.queues.sessionCount; i++) this.#startSession(`mail-${i}`)
    for (let i = 1; i <= options.queues.handlerCount; i++) this.#startHandler(`hand-${i}`, 1)
    if (options.queues.redriveMeanMicros) void this.#redriveEarly().catch(this.#parts.onFailed)
  }

  /** The operation under way is brought to its end; handlers go on. */
  end(): void {
    this.#isEnding = true
    for (const session of this.#sessions) session.end()
  }

  /**
   * After the world has healed, the workers handle all messages that they can. Then the run mends the
   * handlers and redrives the dead letters, and the workers handle the rest.
   */
  drain(): void {
    if (!this.#isOn) return
    this.#drain().then(
      () => (this.#isDrained = true),
      (error: unknown) => this.#parts.onFailed(error),
    )
  }

  async #drain(): Promise<void> {
    const { judge, world } = this.#parts
    await this.#until(() => this.#checker.open === 0)
    this.#isMended = true
    const isDone = (): boolean => this.#checker.isAllHandled && this.#isAtRest()
    while (!isDone()) {
      await this.#redrive()
      const { nowMicros } = world
      await this.#until(() => isDone() || world.nowMicros - nowMicros > againMicros)
    }
    for (const { handlers } of this.#living.values()) {
      await Promise.all(handlers.map((one) => one.stop()))
    }
    for (const { client } of this.#living.values()) await client.close()
    this.#checker.onDrained(judge.model)
  }

  /** Senders' nodes have removed the acknowledged messages. */
  #isAtRest(): boolean {
    const { model } = this.#parts.judge
    return this.#groups.every((group) =>
      [...model.of(group).rows.keys()].every((key) => !key.startsWith('\u00ff')),
    )
  }

  /** Redrives all dead letters, as an operator does, until there are none. */
  async #redrive(): Promise<void> {
    const { world, coverage } = this.#parts
    const { client } = this.#connect('postmaster', 1, world.random.fork('postmaster'))
    for (const queue of queueNames) {
      for (;;) {
        try {
          if ((await client.queues.deadLetters(queue).redriveAll()) === 0) break
        } catch (error) {
          if (!(error instanceof StoreError)) throw error
          coverage.count(`queues: redrive ${error.code}`)
          // These queues are of no schema: one that is empty is not known.
          if (error.code === 'not-found') break
        }
        await world.sleep(looksMicros)
      }
    }
    await client.close()
  }

  /** The same while handlers still fail, by an operator that redrives too early. */
  async #redriveEarly(): Promise<void> {
    const { world, coverage, options } = this.#parts
    const random = world.random.fork('early postmaster')
    const { client } = this.#connect('early', 1, random)
    while (!this.#isEnding) {
      await world.sleep(1 + random.exponential(options.queues.redriveMeanMicros ?? 0))
      try {
        const count = await client.queues.deadLetters(random.pick(queueNames)).redriveAll()
        if (count > 0) coverage.count('queues: redriven while handlers fail', count)
      } catch (error) {
        if (!(error instanceof StoreError)) throw error
        coverage.count(`queues: redrive ${error.code}`)
      }
    }
    await client.close()
  }

  async #until(isSo: () => boolean): Promise<void> {
    while (!isSo()) await this.#parts.world.sleep(looksMicros)
  }

  #startSession(name: string): void {
    const { world, coverage, options } = this.#parts
    const random = world.random.fork(`${name} life`)
    const { client, clock } = this.#connect(name, 1, random)
    const { thinkMeanMicros, timeoutMs, queues } = options
    const session = new QueueSession({
      name,
      world,
      client,
      clock,
      coverage,
      checker: this.#checker,
      random: random.fork('operations'),
      groups: this.#groups,
      timeoutMs,
      operations: queues.operations,
      hasPoison: queues.hasPoison,
      thinkMeanMicros,
    })
    this.#sessions.push(session)
    this.#busy += 1
    session.run().then(
      () => (this.#busy -= 1),
      (error: unknown) => {
        this.#parts.onFailed(error)
      },
    )
  }

  #startHandler(name: string, life: number): void {
    const { world, options, tell, onFailed } = this.#parts
    const { attemptsMax, batch, concurrency, retryMs, lifeMeanMicros } = options.queues
    const random = world.random.fork(`${name} life ${life}`)
    const { client, clock, process } = this.#connect(name, life, random)
    const common = { batch, concurrency, attemptsMax, retryMs, retryMaxMs: 1_000 }
    const handlers = queueNames.map((queue) =>
      client.queues.consume({
        queue,
        ...common,
        timeoutMs: patienceMs,
        handle: (transaction, messages) => {
          for (const { message } of messages) {
            this.#checker.onCalled(Buffer.from(message.body).toString(), clock.wallMicros())
          }
          return this.#handle(queue, transaction, messages)
        },
        onFailed: (_group, error) => {
          if (!(error instanceof Unhandled) && !this.#isOfTheWorld(error)) onFailed(error)
        },
      }),
    )
    this.#living.set(name, { process, client, handlers })
    if (lifeMeanMicros === 0) return
    world.schedule(1 + random.exponential(lifeMeanMicros), 'handler dies', () => {
      if (this.#isEnding) return
      tell(name, 'dies')
      this.#kill(name)
      world.schedule(1 + random.exponential(downMeanMicros), 'handler again', () => {
        this.#startHandler(name, life + 1)
      })
    })
  }

  #isOfTheWorld(error: unknown): boolean {
    if (!(error instanceof StoreError)) return false
    const { code, retry } = error
    this.#parts.coverage.count(`queues: handler ${code}`)
    if (code === 'corrupt') return this.#parts.mayBeCorrupt()
    return retry !== 'never' || excused.includes(code)
  }

  #kill(name: string): void {
    const living = this.#living.get(name)
    if (living === undefined) return
    const { network, coverage } = this.#parts
    this.#living.delete(name)
    network.detach(living.process.name)
    living.process.kill()
    coverage.count('queues: handler died')
  }

  /** Handles messages: fails on those that must fail, else notes their names and their number. */
  async #handle(
    queue: string,
    transaction: RawTransaction,
    messages: readonly Taken[],
  ): Promise<void> {
    const names = messages.map(({ message }) => Buffer.from(message.body).toString())
    for (const [index, name] of names.entries()) {
      const failures = messages[index]?.message.failures ?? 0
      if (!this.#canDo(name, failures)) {
        this.#checker.onThrown(name)
        throw new Unhandled(name)
      }
    }
    const [first] = messages
    const key = Buffer.from(`${handledMark}${queue}/${first?.id}`)
    transaction.put(key, Buffer.from(names.join(' ')))
    // The other queue's handlers read nothing: their messages are their only reads.
    if (queue !== queueNames[0]) return
    const row = await transaction.get(Buffer.from(totalKey))
    const before = Number(row === undefined ? 0 : Buffer.from(row.value).toString())
    transaction.put(Buffer.from(totalKey), Buffer.from(String(before + names.length)))
  }

  #canDo(name: string, failures: number): boolean {
    if (name.endsWith(':poison')) return this.#isMended
    return !name.endsWith(':shaky') || failures >= 2
  }

  #connect(
    name: string,
    life: number,
    random: SeededRandom,
  ): { readonly client: Client; readonly clock: Clock; readonly process: SimProcess } {
    const { world, network, options, nodes } = this.#parts
    const process = new SimProcess(world, nameEndpoint(name, life))
    const transport = network.attach(process, nodes)
    const skew = {
      offsetMicros: random.int(-200_000, 200_000),
      driftPpm: 0,
      timerLatenessMicros: 0,
    }
    const clock = createClock(process, skew, random.fork('clock'))
    const { tryTimeoutMs, timeoutMs } = options
    const limits = { timeoutMs, tryTimeoutMs, avoidMs: tryTimeoutMs }
    return {
      client: new Client({ transport, clock, random: random.fork('chance') }, limits),
      clock,
      process,
    }
  }
}

class Unhandled extends Error {
  override readonly name = 'Unhandled'
}
