/**
 * Transactions straight on the replicas. Sessions append to lists and read them, several lists of a
 * group at once. A checker judges their answers as a history by itself.
 *
 * A transaction reads at some replica, and is submitted with its reads. While its outcome is
 * unknown, the session reads and submits it again through another node, under the same intent. It
 * retries until the outcome is known or the time is up. A session whose intent stays unknown
 * continues under another name.
 */
import { assert } from '../../src/base/assert.ts'
import { StoreError } from '../../src/base/errors.ts'
import type { GroupId } from '../../src/base/ids.ts'
import type { LocalReplica, Outcome } from '../../src/group/replica-port.ts'
import {
  groupOfLists,
  listsToRead,
  readLists,
  rowLists,
  shortLists,
  buildSubmission,
  wholeLists,
} from './append-rows.ts'
import type { ListState, ReadRequest } from './append-rows.ts'
import { judgeHistory } from '../checkers/history-checker.ts'
import type { Referee } from '../checkers/referee.ts'
import { epochMicros } from '../world/clock.ts'
import type { Coverage } from '../coverage.ts'
import { HistoryLog, type OpenOperation } from '../history/history-log.ts'
import type { History, MicroOperation } from '../history/operation.ts'
import type { SeededRandom } from '../world/random.ts'
import type {
  ListGroup,
  ListMicro,
  ListName,
  ListOperation,
} from '../scenarios/scenario-operation.ts'
import type { World } from '../world/world.ts'

export interface NamedReplica {
  readonly name: string
  readonly replica: LocalReplica
}

export interface AppendWorkloadParts {
  readonly world: World
  readonly coverage: Coverage
  readonly referee: Referee
  readonly sessionCount: number
  readonly operationsPerSession: number
  readonly thinkMeanMicros: number
  /** Parts per million of reads that ask any replica instead of being current. */
  readonly anyReads: number
  /** The replicas of the nodes that are up now. */
  replicas(): readonly NamedReplica[]
  /** Whether the node is a replica of the group. */
  holds(node: string, group: GroupId): boolean
  /** Whether the node may answer again some time. */
  isInService(node: string): boolean
  /** The only operations of the run; drawn as the sessions go when absent. */
  readonly operations?: readonly ListOperation[] | undefined
  onOperation(operation: ListOperation): void
  onFailed(error: unknown): void
}

const listGroups: readonly ListGroup[] = ['p', 'q']
const readTimeoutMs = 1_000
const submitTimeoutMs = 1_000
/** A crashed node never answers: after this timeout the session asks another node. */
const patienceMicros = 2_000_000
/** A transaction that is not settled after this stays unknown. */
const settleMicros = 15_000_000
/** An hour: longer than any run, so that no intent expires. */
const intentMicros = 3_600_000_000

/** Operations between two looks at the history. */
const endedPerCheck = 16

interface Session {
  readonly client: string
  /** Changes when an intent is left behind. */
  life: number
  sequence: number
  /** How far it has seen each group. */
  readonly seen: Map<ListGroup, number>
  readonly random: SeededRandom
}

/** The end of one try of a transaction. */
type Tried = 'settled' | 'not done' | 'unknown'

export class AppendWorkload {
  readonly #parts: AppendWorkloadParts
  readonly #log: HistoryLog
  /** Most operations are on one group. */
  readonly #isHot: boolean
  #busy = 0
  #ended = 0
  #isEnding = false

  constructor(parts: AppendWorkloadParts) {
    this.#parts = parts
    const { world } = parts
    this.#isHot = world.random.fork('hot lists').chance(500_000)
    this.#log = new HistoryLog(
      () => world.nowMicros,
      () => this.#onEnded(),
    )
  }

  get history(): History {
    return this.#log.history()
  }

  isDone(): boolean {
    return this.#busy === 0
  }

  start(): void {
    const { sessionCount, operations } = this.#parts
    if (operations !== undefined) {
      for (const client of new Set(operations.map((one) => one.client))) {
        const own = operations.filter((one) => one.client === client)
        this.#begin(this.#perform(this.#open(client), own))
      }
      return
    }
    for (let i = 1; i <= sessionCount; i++) this.#begin(this.#run(this.#open(`list-${i}`)))
  }

  /** The operation under way is brought to its end; no other is begun. */
  end(): void {
    this.#isEnding = true
  }

  /** Once the world has healed: all lists are read through each of these nodes. */
  finish(nodes: readonly string[]): void {
    for (const node of nodes) this.#begin(this.#readAll(node))
  }

  /** Now and then during the run, so that a run ends soon after a violation. */
  #onEnded(): void {
    this.#ended += 1
    if (this.#ended % endedPerCheck === 0) judgeHistory(this.history, this.#parts.referee)
  }

  #open(client: string): Session {
    const random = this.#parts.world.random.fork(client)
    return { client, life: 0, sequence: 0, seen: new Map(), random }
  }

  #begin(work: Promise<void>): void {
    this.#busy += 1
    work.then(
      () => (this.#busy -= 1),
      (error: unknown) => {
        this.#parts.onFailed(error)
      },
    )
  }

  async #run(session: Session): Promise<void> {
    const { operationsPerSession, world, thinkMeanMicros } = this.#parts
    for (let i = 1; i <= operationsPerSession && !this.#isEnding; i++) {
      await world.sleep(1 + session.random.exponential(thinkMeanMicros))
      if (!this.#isEnding) await this.#do(session, this.#draw(session, i))
    }
  }

  /** One after another, none before its moment. */
  async #perform(session: Session, operations: readonly ListOperation[]): Promise<void> {
    const { world } = this.#parts
    for (const operation of operations) {
      await world.sleep(Math.max(0, operation.atMicros - world.nowMicros))
      if (this.#isEnding) return
      await this.#do(session, operation)
    }
  }

  #draw(session: Session, number: number): ListOperation {
    const { world, anyReads } = this.#parts
    const { client, random } = session
    const group = this.#isHot && random.chance(850_000) ? 'p' : random.pick(listGroups)
    const isCurrent = !random.chance(anyReads)
    const atMicros = world.nowMicros
    if (random.chance(350_000)) {
      // Only lists of one kind can be read at one position.
      const lists = random.shuffle(random.pick([wholeLists, rowLists, shortLists]))
      const some = random.chance(300_000) ? lists : lists.slice(0, random.int(1, 2))
      const micro = some.map((list) => ({ kind: 'read', list }) as const)
      return { kind: 'lists', client, atMicros, group, isCurrent, micro }
    }
    const lists = [...wholeLists, ...rowLists, ...this.#shortListsAt(number)]
    const count = random.int(1, 4)
    const micro = Array.from({ length: count }, (_, i): ListMicro => {
      const isAppend = i === 0 || random.chance(400_000)
      const list = random.pick(lists)
      const element = `${client}.${number}.${i}`
      return isAppend ? { kind: 'append', list, element } : { kind: 'read', list }
    })
    const scan = random.chance(200_000) ? shortLists : []
    micro.push(...scan.map((list): ListMicro => ({ kind: 'read', list })))
    return { kind: 'lists', client, atMicros, group, isCurrent, micro: random.shuffle(micro) }
  }

  /** One after another they come into being: the sessions are at about the same one at a time. */
  #shortListsAt(number: number): readonly ListName[] {
    const { operationsPerSession } = this.#parts
    const at = Math.floor(((number - 1) * shortLists.length) / Math.max(1, operationsPerSession))
    return shortLists.slice(at, at + 2)
  }

  async #do(session: Session, operation: ListOperation): Promise<void> {
    this.#parts.onOperation(operation)
    const { client, group, micro, isCurrent } = operation
    const isReading = micro.every(({ kind }) => kind === 'read')
    const open = this.#log.begin({
      client,
      group,
      micro: toMicros(group, micro, undefined),
      level: isReading && !isCurrent ? 'snapshot' : 'current',
    })
    if (isReading) await this.#read(session, operation, open)
    else await this.#transact(session, operation, open)
  }

  async #read(session: Session, operation: ListOperation, open: OpenOperation): Promise<void> {
    const { group, micro } = operation
    const from = this.#pick(session)
    const state = from && (await this.#readAt(session, from, operation))
    if (from === undefined || state === undefined) return open.fail()
    this.#see(session, group, state.seenPosition)
    open.ok(toMicros(group, micro, state), { node: from.name })
  }

  async #transact(session: Session, operation: ListOperation, open: OpenOperation): Promise<void> {
    const { world, coverage } = this.#parts
    const deadline = world.nowMicros + settleMicros
    const made = new Map<number, readonly MicroOperation[]>()
    session.sequence += 1
    let isUnknown = false
    for (;;) {
      const tried = await this.#try(session, operation, made, open)
      if (tried === 'settled') return
      if (tried === 'unknown') isUnknown = true
      if (world.nowMicros >= deadline) break
      coverage.count(tried === 'unknown' ? 'transaction unknown' : 'transaction again')
      await world.sleep(1_000 + session.random.exponential(20_000))
    }
    if (!isUnknown) return open.fail()
    // Its floor must not pass an intent that may still be on its way.
    session.life += 1
    session.sequence = 0
    coverage.count('transaction left unknown')
    open.unknown()
  }

  async #try(
    session: Session,
    operation: ListOperation,
    made: Map<number, readonly MicroOperation[]>,
    open: OpenOperation,
  ): Promise<Tried> {
    const { group, micro } = operation
    const { coverage } = this.#parts
    const from = this.#pick(session)
    const state = from && (await this.#readAt(session, from, operation))
    if (from === undefined || state === undefined) return 'not done'
    const attempt = session.random.int(1, Number.MAX_SAFE_INTEGER)
    made.set(attempt, toMicros(group, micro, state))
    const { client, life, sequence } = session
    const intent = {
      session: `${client}/${life}`,
      sequence,
      floor: sequence,
      expiresAt: epochMicros + intentMicros,
    }
    const submission = buildSubmission({ group, intent, attempt }, micro, state)
    const submitted = from.replica.submit(submission, submitTimeoutMs)
    const outcome = (await this.#within(submitted)) ?? { kind: 'unknown' }
    if (outcome.kind === 'committed') {
      this.#onCommitted(session, operation, outcome, made.get(outcome.attempt), open)
      return 'settled'
    }
    assert(outcome.kind !== 'expired', 'append-workload: an intent expired within an hour')
    if (outcome.kind === 'unknown') return 'unknown'
    coverage.count(`transaction ${outcome.kind}`)
    // This verdict must not overtake an earlier one: a node that took the attempt may still work on
    // it.
    made.delete(attempt)
    return 'not done'
  }

  #onCommitted(
    session: Session,
    { group }: ListOperation,
    outcome: Outcome & { readonly kind: 'committed' },
    content: readonly MicroOperation[] | undefined,
    open: OpenOperation,
  ): void {
    this.#see(session, group, outcome.position)
    const isKnown = this.#parts.referee.check(
      content !== undefined,
      'LOG-3',
      'A session was told that an attempt took effect which it never made, or which was refused.',
      () => ({ client: session.client, attempt: outcome.attempt }),
    )
    if (isKnown && content !== undefined) open.ok(content)
  }

  #readAt(
    session: Session,
    { replica }: NamedReplica,
    { group, micro, isCurrent }: ListOperation,
  ): Promise<ListState | undefined> {
    return this.#within(
      readLists(replica, {
        group,
        lists: listsToRead(micro),
        timeoutMs: readTimeoutMs,
        level: isCurrent ? 'current' : 'snapshot',
        atLeast: session.seen.get(group) ?? 0,
      }),
    )
  }

  #pick({ random }: Session): NamedReplica | undefined {
    const up = this.#parts.replicas()
    return up.length === 0 ? undefined : random.pick(up)
  }

  #see(session: Session, group: ListGroup, position: number): void {
    session.seen.set(group, Math.max(session.seen.get(group) ?? 0, position))
  }

  /** Undefined when the node cannot answer, or never does. */
  #within<T>(work: Promise<T>): Promise<T | undefined> {
    return new Promise((resolve, reject) => {
      const timer = this.#parts.world.schedule(patienceMicros, 'give up', () => {
        resolve(undefined)
      })
      work.then(
        (value) => {
          timer.cancel()
          resolve(value)
        },
        (error: unknown) => {
          timer.cancel()
          if (error instanceof StoreError) resolve(undefined)
          else reject(error)
        },
      )
    })
  }

  async #readAll(node: string): Promise<void> {
    const { world } = this.#parts
    const client = `reader-${node}`
    const random = world.random.fork(client)
    for (const group of listGroups) {
      if (!this.#parts.holds(node, groupOfLists(group))) continue
      for (const lists of [wholeLists, rowLists, shortLists]) {
        const micro = lists.map((list): ListMicro => ({ kind: 'read', list }))
        const asked = toMicros(group, micro, undefined)
        for (;;) {
          const open = this.#log.begin({ client, group, micro: asked, level: 'current', node })
          const state = await this.#readOnce(node, { group, lists })
          if (state !== undefined) {
            open.ok(toMicros(group, micro, state))
            break
          }
          open.fail()
          // The node is out of service for the rest of the run: no session asks it again.
          if (!this.#parts.isInService(node)) return
          await world.sleep(10_000 + random.exponential(100_000))
        }
      }
    }
  }

  async #readOnce(
    node: string,
    what: Pick<ReadRequest, 'group' | 'lists'>,
  ): Promise<ListState | undefined> {
    const found = this.#parts.replicas().find(({ name }) => name === node)
    if (found === undefined) return undefined
    const request = { level: 'current', timeoutMs: readTimeoutMs, atLeast: 0, ...what } as const
    return this.#within(readLists(found.replica, request))
  }
}

/** The operation as a history has it: with its reads, once these are known. */
function toMicros(
  group: ListGroup,
  micro: readonly ListMicro[],
  state: ListState | undefined,
): readonly MicroOperation[] {
  const own = new Map<ListName, string[]>()
  return micro.map((one): MicroOperation => {
    const { list } = one
    const key = `${group}/${list}`
    const added = own.get(list) ?? []
    if (one.kind === 'append') {
      own.set(list, [...added, one.element])
      return { kind: 'append', key, element: one.element }
    }
    const elements = state?.elements.get(list)
    const seen = elements && { elements: [...elements, ...added] }
    return { kind: 'read', key, after: 0, isEnd: true, ...seen }
  })
}
