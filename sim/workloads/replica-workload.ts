/**
 * Blind writes straight to the replicas, without reads that would catch a repetition: one intent is
 * sent again and again, through whichever node is up, until it has an outcome (LOG-3), and the
 * numbers it draws are its own.
 */
import { StoreError } from '../../src/base/errors.ts'
import { assert } from '../../src/base/assert.ts'
import { groupOfBytes, type GroupId } from '../../src/base/ids.ts'
import { encodeTuple } from '../../src/base/tuple.ts'
import type { LocalReplica, Outcome, Submission } from '../../src/group/replica-port.ts'
import type { Referee } from '../checkers/referee.ts'
import { epochMicros } from '../world/clock.ts'
import type { Coverage } from '../coverage.ts'
import type { SeededRandom } from '../world/random.ts'
import type { BlindGroup, BlindOperation } from '../scenarios/scenario-operation.ts'
import type { World } from '../world/world.ts'

export interface ReplicaWorkloadParts {
  readonly world: World
  readonly coverage: Coverage
  readonly referee: Referee
  readonly sessionCount: number
  readonly writesPerSession: number
  readonly thinkMeanMicros: number
  /** The replicas of the nodes that are up now. */
  replicas(): readonly LocalReplica[]
  /** The only writes of the run; drawn as the sessions go when absent. */
  readonly operations?: readonly BlindOperation[] | undefined
  onOperation(operation: BlindOperation): void
  onFailed(error: unknown): void
}

const groupNames: readonly BlindGroup[] = ['x', 'y']
const groupByName: Readonly<Record<BlindGroup, GroupId>> = {
  x: groupNamed('x'),
  y: groupNamed('y'),
}
const counter = 3
const submitTimeoutMs = 1_000
/** A crashed node never answers: after this timeout the client asks another node. */
const patienceMicros = 2_000_000
/** An hour: longer than any run, so that no intent expires. */
const intentMicros = 3_600_000_000

export class ReplicaWorkload {
  readonly #parts: ReplicaWorkloadParts
  readonly #intentByNumber = new Map<string, string>()
  #busy = 0
  #isEnding = false

  constructor(parts: ReplicaWorkloadParts) {
    this.#parts = parts
  }

  isDone(): boolean {
    return this.#busy === 0
  }

  start(): void {
    const { sessionCount, world, operations } = this.#parts
    if (operations !== undefined) {
      const sessions = new Set(operations.map((one) => one.client))
      for (const session of sessions) {
        this.#begin(this.#perform(operations.filter((one) => one.client === session)))
      }
      return
    }
    for (let i = 1; i <= sessionCount; i++) {
      const session = `blind-${i}`
      this.#begin(this.#session(session, world.random.fork(session)))
    }
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

  /** The write under way is brought to its end; no other is begun. */
  end(): void {
    this.#isEnding = true
  }

  async #session(session: string, random: SeededRandom): Promise<void> {
    const { writesPerSession, world, thinkMeanMicros } = this.#parts
    for (let sequence = 1; sequence <= writesPerSession && !this.#isEnding; sequence++) {
      await world.sleep(1 + random.exponential(thinkMeanMicros))
      const operation = { client: session, group: random.pick(groupNames), sequence }
      await this.#write({ kind: 'blind', ...operation, atMicros: world.nowMicros })
    }
  }

  /** One after another, none before its moment: a session forgets what lies before its newest. */
  async #perform(operations: readonly BlindOperation[]): Promise<void> {
    const { world } = this.#parts
    for (const operation of operations) {
      await world.sleep(Math.max(0, operation.atMicros - world.nowMicros))
      if (this.#isEnding) return
      await this.#write(operation)
    }
  }

  /** The same intent, in a new attempt each time, until it is settled. */
  async #write(operation: BlindOperation): Promise<void> {
    const { client: session, sequence } = operation
    const group = groupByName[operation.group]
    this.#parts.onOperation(operation)
    // A stream of its own: what becomes of one write does not move what another draws.
    const random = this.#parts.world.random.fork(`${session}/${sequence}`)
    for (let tries = 1; ; tries++) {
      const attempt = random.int(1, Number.MAX_SAFE_INTEGER)
      const submission = buildSubmission(group, session, sequence, attempt)
      const outcome = await this.#submit(submission, random)
      if (outcome.kind === 'committed') {
        if (tries > 1) this.#parts.coverage.count('intent sent again')
        this.#checkNumber(group, `${session}/${sequence}`, outcome)
        return
      }
      assert(outcome.kind !== 'expired', 'replica-workload: an intent expired within an hour')
      await this.#parts.world.sleep(1_000 + random.exponential(20_000))
    }
  }

  #submit(submission: Submission, random: SeededRandom): Promise<Outcome> {
    const { world, replicas } = this.#parts
    const up = replicas()
    if (up.length === 0) return Promise.resolve({ kind: 'unknown' })
    return new Promise((resolve, reject) => {
      world.schedule(patienceMicros, 'give up', () => {
        resolve({ kind: 'unknown' })
      })
      random
        .pick(up)
        .submit(submission, submitTimeoutMs)
        .then(resolve, (error: unknown) => {
          // The replica's rows are damaged, and nothing has happened: the next try asks any replica.
          const isRefused = error instanceof StoreError && error.code === 'unavailable'
          if (isRefused) resolve({ kind: 'unknown' })
          else reject(error)
        })
    })
  }

  #checkNumber(
    group: GroupId,
    intent: string,
    outcome: Outcome & { readonly kind: 'committed' },
  ): void {
    const [number] = outcome.sequences
    const key = `${group}/${number}`
    const other = this.#intentByNumber.get(key)
    this.#parts.referee.check(
      other === undefined,
      'LOG-3',
      'Two intents were told that one number is theirs.',
      () => ({ number, intents: [other, intent] }),
    )
    this.#intentByNumber.set(key, intent)
  }
}

function groupNamed(name: BlindGroup): GroupId {
  return groupOfBytes(encodeTuple(['blind', name]))
}

function buildSubmission(
  group: GroupId,
  session: string,
  sequence: number,
  attempt: number,
): Submission {
  const expiresAt = epochMicros + intentMicros
  const value = Buffer.concat([Buffer.alloc(8), Buffer.from(String(attempt))])
  return {
    group,
    attempt,
    readPosition: 0,
    reads: [],
    ranges: [],
    allocations: [counter],
    // Outcomes below this sequence are known here, and may be forgotten.
    intent: { session, sequence, floor: sequence, expiresAt },
    mutations: [
      {
        key: Buffer.from(`${session}/${sequence}`),
        value,
        slots: [{ allocation: 0, at: 'value', offset: 0 }],
      },
    ],
  }
}
