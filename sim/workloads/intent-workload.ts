/**
 * Programs on the real client library that choose their intents themselves, some of which expire
 * within milliseconds. After each `unknown-outcome` a program asks the group for the outcome of the
 * intent; of other intents it asks at random. `../checkers/intent-checker.ts` compares the answers
 * with the log.
 */
import { StoreError } from '../../src/base/errors.ts'
import { groupOfBytes, type GroupId } from '../../src/base/ids.ts'
import { encodeTuple } from '../../src/base/tuple.ts'
import { Client } from '../../src/client/client.ts'
import type { Clock } from '../../src/ports/clock.ts'
import type { Intent } from '../../src/group/replica-port.ts'
import { runTransaction } from '../../src/txn/run.ts'
import type { ClientFrame } from '../../src/wire/client/client-message.ts'
import type { NamedReplica } from './append-workload.ts'
import { IntentChecker, type SentIntent } from '../checkers/intent-checker.ts'
import type { Judge } from '../checkers/judge.ts'
import type { Referee } from '../checkers/referee.ts'
import { createClock } from '../world/clock.ts'
import type { Coverage } from '../coverage.ts'
import type { Network } from '../world/network.ts'
import type { SeededRandom } from '../world/random.ts'
import { SimProcess } from '../world/sim-process.ts'
import type { WorkloadOptions } from '../swarm.ts'
import type { World } from '../world/world.ts'

export interface IntentWorkloadParts {
  readonly world: World
  readonly network: Network<ClientFrame>
  readonly coverage: Coverage
  readonly referee: Referee
  readonly judge: Judge
  readonly options: WorkloadOptions
  readonly nodes: readonly string[]
  /** The replicas of the nodes that are up now. */
  replicas(): readonly NamedReplica[]
  /** Whether a node holds a group. */
  holds(node: string, group: GroupId): boolean
  mayBeCorrupt(): boolean
  onFailed(error: unknown): void
}

const sessionCount = 2
const operationsPerSession = 24
const lifetimesMs = [50, 500, 3_000, 3_000, 600_000] as const
/** In the healed world. */
const answerTimeoutMs = 10_000
/** For requests straight to a replica: a crashed one never answers. */
const replicaTimeoutMs = 1_000
const patienceMicros = 2_000_000
/** Of intents that were sent: the sessions of the earlier of them have been quiet for a while. */
const recentMax = 6

interface Session {
  readonly name: string
  readonly client: Client
  readonly clock: Clock
  readonly random: SeededRandom
  readonly lifetimeMs: number
  /** Changes when intents of unknown outcome are left behind. */
  life: number
  sequence: number
  /** Sequences of this life whose outcome is not known. */
  readonly open: Set<number>
  readonly sent: SentIntent[]
}

export class IntentWorkload {
  readonly #parts: IntentWorkloadParts
  readonly #checker: IntentChecker
  #busy = 0
  #isEnding = false

  constructor(parts: IntentWorkloadParts) {
    this.#parts = parts
    this.#checker = new IntentChecker(parts.judge.model, parts.referee)
  }

  isDone(): boolean {
    return this.#busy === 0
  }

  /** Where there are programs on tables. */
  start(): void {
    const { options, onFailed } = this.#parts
    if (options.tableSessionCount === 0) return
    for (let i = 1; i <= sessionCount; i++) {
      this.#busy += 1
      this.#run(this.#open(`intent-${i}`)).then(() => (this.#busy -= 1), onFailed)
    }
  }

  end(): void {
    this.#isEnding = true
  }

  async #run(session: Session): Promise<void> {
    const { world, options } = this.#parts
    const { random } = session
    for (let i = 1; i <= operationsPerSession && !this.#isEnding; i++) {
      await world.sleep(1 + random.exponential(2 * options.thinkMeanMicros))
      await this.#transact(session)
      if (random.chance(300_000)) await this.#ask(session, random.pick(session.sent), 1_000)
      if (random.chance(400_000)) await this.#askReplica(session)
    }
    await this.#settle(session)
    this.#checker.atEnd()
  }

  /** Any replica, which need not have heard of it yet, about one of the last. */
  async #askReplica({ random, sent }: Session): Promise<void> {
    const { coverage } = this.#parts
    const asked = random.pick(sent.slice(-recentMax))
    const { session, sequence, expiresAt } = asked
    const group = pickGroup(asked.group)
    const up = this.#parts.replicas().filter(({ name }) => this.#parts.holds(name, group))
    if (up.length === 0) return
    const floorPosition = this.#checker.toldPosition(asked.group)
    const intent = { session, sequence, expiresAt }
    const { replica } = random.pick(up)
    try {
      const outcome = await this.#within(replica.outcome(group, intent, replicaTimeoutMs))
      if (outcome === undefined) return
      coverage.count(`intents: a replica tells ${outcome.kind}`)
      this.#checker.onOutcome({ ...asked, isTimed: true, floorPosition }, outcome)
    } catch (error) {
      coverage.count(`intents: question ${this.#readCode(error)}`)
    }
  }

  /** The session asks for each unknown outcome until it gets an answer. */
  async #settle(session: Session): Promise<void> {
    const { world } = this.#parts
    const open = session.sent.filter(
      (sent) => sent.session === formatName(session) && session.open.has(sent.sequence),
    )
    for (const sent of open) {
      while (!(await this.#ask(session, sent, answerTimeoutMs))) await world.sleep(200_000)
    }
  }

  async #transact(session: Session): Promise<void> {
    const { coverage } = this.#parts
    const { client, clock, random } = session
    const { timeoutMs } = this.#parts.options
    const intent = this.#draw(session)
    const sent = { group: random.pick(groups), ...intent }
    session.sent.push(sent)
    this.#checker.onSent(sent, intent.floor)
    // It is not in effect yet, and may be.
    if (random.chance(150_000)) await this.#ask(session, sent, 1_000)
    const isKnown = (): boolean => session.open.delete(intent.sequence)
    const intents = { open: () => ({ intent, settle: () => undefined }) }
    try {
      const options = { clock, random, intents, timeoutMs }
      const { position } = await runTransaction(client.groups, sent.group, options, (tx) => {
        tx.put(rowKey, Buffer.from(`${intent.session}/${intent.sequence}`))
        return Promise.resolve()
      })
      isKnown()
      coverage.count('intents: committed')
      this.#checker.onCommitted(sent, position)
    } catch (error) {
      const code = this.#readCode(error)
      coverage.count(`intents: ${code}`)
      if (code === 'unknown-outcome') await this.#ask(session, sent, timeoutMs)
      else if (isKnown()) this.#checker.onRefused(sent, code)
    }
  }

  #draw(session: Session): Intent {
    const { clock, lifetimeMs, open, random } = session
    // A session asks for the outcomes of its intents even when it sends no more.
    if (open.size > 3 || (open.size === 0 && random.chance(200_000))) {
      session.life += 1
      session.sequence = 0
      open.clear()
    }
    const sequence = (session.sequence += 1)
    open.add(sequence)
    const [floor = sequence] = open
    const expiresAt = clock.wallMicros() + lifetimeMs * 1_000
    return { session: formatName(session), sequence, floor, expiresAt }
  }

  /** True when there is an answer. */
  async #ask(session: Session, sent: SentIntent, timeoutMs: number): Promise<boolean> {
    const { coverage } = this.#parts
    const { client, random } = session
    const { session: name, sequence, expiresAt } = sent
    const isTimed = random.chance(700_000)
    const intent = { session: name, sequence, ...(isTimed && { expiresAt }) }
    const floorPosition = this.#checker.toldPosition(sent.group)
    try {
      const outcome = await client.groups.outcome(pickGroup(sent.group), intent, timeoutMs)
      coverage.count(`intents: told ${outcome.kind}`)
      this.#checker.onOutcome({ isTimed, floorPosition, ...sent }, outcome)
      const isFinal = outcome.kind === 'committed' || outcome.kind === 'expired'
      if (isFinal && name === formatName(session)) session.open.delete(sequence)
      return true
    } catch (error) {
      coverage.count(`intents: question ${this.#readCode(error)}`)
      return false
    }
  }

  /** Undefined when there is no answer. */
  #within<T>(work: Promise<T>): Promise<T | undefined> {
    return new Promise((resolve, reject) => {
      const patience = this.#parts.world.schedule(patienceMicros, 'give up', () => {
        resolve(undefined)
      })
      work.then(resolve, reject).finally(() => patience.cancel())
    })
  }

  /** The code of an error that the world may cause; anything else ends the run. */
  #readCode(error: unknown): StoreError['code'] {
    if (!(error instanceof StoreError)) throw error
    const { code, retry } = error
    const isExcused = ['closed', 'expired', 'snapshot-too-old'].includes(code)
    const isDamage = code === 'corrupt' && this.#parts.mayBeCorrupt()
    if (retry === 'never' && !isExcused && !isDamage) throw error
    return code
  }

  #open(name: string): Session {
    const { world, network, nodes, options } = this.#parts
    const random = world.random.fork(name)
    const process = new SimProcess(world, name)
    const transport = network.attach(process, nodes)
    const offsetMicros = random.int(-200_000, 200_000)
    const skew = { offsetMicros, driftPpm: 0, timerLatenessMicros: 0 }
    const clock = createClock(process, skew, random.fork('clock'))
    const { tryTimeoutMs, timeoutMs } = options
    const limits = { timeoutMs, tryTimeoutMs, avoidMs: tryTimeoutMs }
    const client = new Client({ transport, clock, random: random.fork('chance') }, limits)
    const lifetimeMs = random.pick(lifetimesMs)
    const own = { life: 0, sequence: 0, open: new Set<number>(), sent: [] }
    return { name, client, clock, random, lifetimeMs, ...own }
  }
}

const rowKey = Buffer.from('row')
const groups: readonly [GroupId, GroupId] = [groupNamed('a'), groupNamed('b')]

function pickGroup(name: string): GroupId {
  return groups.find((one) => one === name) ?? groups[0]
}

function groupNamed(name: string): GroupId {
  return groupOfBytes(encodeTuple(['intents', name]))
}

function formatName({ name, life }: Session): string {
  return `${name}-${life}`
}
