/**
 * The past of groups whose rows are written and deleted all the time. Writers ignore the outcomes
 * of their writes. Readers open a snapshot at some replica, of now or of a past moment. They go on
 * reading it, there and through other replicas, while batches, crashes and collection go on. Their
 * reads must show the chosen log's state at that moment (MVCC-1), or be refused.
 */
import { StoreError } from '../../src/base/errors.ts'
import { compareBytes } from '../../src/base/bytes.ts'
import { groupOfBytes, type GroupId, type Timestamp } from '../../src/base/ids.ts'
import { encodeTuple } from '../../src/base/tuple.ts'
import type { RowRange, Submission } from '../../src/group/replica-port.ts'
import type { Mutation } from '../../src/group/transaction.ts'
import type { NamedReplica } from './append-workload.ts'
import type { Judge } from '../checkers/judge.ts'
import { epochMicros } from '../world/clock.ts'
import type { Coverage } from '../coverage.ts'
import type { SeededRandom } from '../world/random.ts'
import type { World } from '../world/world.ts'

export interface PastWorkloadParts {
  readonly world: World
  readonly coverage: Coverage
  readonly judge: Judge
  /** The number of writers, and of readers. */
  readonly sessionCount: number
  /**
   * The number of snapshots of a reader, each of which it reads several times. Writers write until
   * the reader is done.
   */
  readonly operationsPerSession: number
  /** Between two snapshots of a reader. */
  readonly thinkMeanMicros: number
  /** How long a version is kept at least: readers ask about as far back, and for about as long. */
  readonly historyMs: number
  /** The replicas of the nodes that are up now. */
  replicas(): readonly NamedReplica[]
  onFailed(error: unknown): void
}

const groups: readonly GroupId[] = ['v', 'w'].map((name) =>
  groupOfBytes(encodeTuple(['past', name])),
)
/** Keys that open one another, and a zero, which is escaped where versions lie. */
const keys: readonly Uint8Array[] = ['a', 'a\0', 'a\0b', 'ab', 'b', 'c\xff', 'd'].map((text) =>
  Buffer.from(text, 'latin1'),
)
const timeoutMs = 1_000
/** A node that crashed never answers. */
const patienceMicros = 2_000_000
/** An hour: longer than any run, so that no intent expires. */
const intentMicros = 3_600_000_000
const looksMax = 12
const entriesBackMax = 12
/** Between two looks some writes should get in, and the run should not take longer for them. */
const pauseMeanMicrosMin = 40_000
const pauseMeanMicrosMax = 300_000
const writesPerPause = 3
/** The writes of a writer that may be under way; older ones have a known outcome. */
const underWayMax = 8

interface Snapshot {
  readonly group: GroupId
  readonly at: Timestamp
  from: NamedReplica
}

export class PastWorkload {
  readonly #parts: PastWorkloadParts
  #busy = 0
  #readers = 0
  #isEnding = false

  constructor(parts: PastWorkloadParts) {
    this.#parts = parts
  }

  isDone(): boolean {
    return this.#busy === 0
  }

  start(): void {
    const { sessionCount, world } = this.#parts
    for (let i = 1; i <= sessionCount; i++) {
      this.#begin(this.#read(world.random.fork(`past-reader-${i}`)))
      this.#begin(this.#write(`past-writer-${i}`, world.random.fork(`past-writer-${i}`)))
    }
  }

  /** Sessions end the operations under way, and begin no more. */
  end(): void {
    this.#isEnding = true
  }

  #begin(work: Promise<void>): void {
    this.#busy += 1
    work.then(
      () => (this.#busy -= 1),
      (error: unknown) => this.#parts.onFailed(error),
    )
  }

  async #write(session: string, random: SeededRandom): Promise<void> {
    const { world } = this.#parts
    const pauseMeanMicros = this.#pauseMeanMicros / writesPerPause
    for (let sequence = 1; this.#readers > 0 && !this.#isEnding; sequence++) {
      await world.sleep(1 + random.exponential(pauseMeanMicros))
      const up = this.#parts.replicas()
      if (up.length === 0) continue
      const submission = drawSubmission(session, sequence, random)
      await this.#within(random.pick(up).replica.submit(submission, timeoutMs))
    }
  }

  async #read(random: SeededRandom): Promise<void> {
    const { world, operationsPerSession, thinkMeanMicros } = this.#parts
    this.#readers += 1
    for (let i = 1; i <= operationsPerSession && !this.#isEnding; i++) {
      await world.sleep(1 + random.exponential(thinkMeanMicros))
      const snapshot = await this.#open(random)
      if (snapshot === undefined) continue
      const looks = random.int(1, looksMax)
      for (let look = 1; look <= looks && !this.#isEnding; look++) {
        if (!(await this.#look(snapshot, random))) break
        await world.sleep(1 + random.exponential(this.#pauseMeanMicros))
      }
    }
    this.#readers -= 1
  }

  /** Between two looks; about as long as versions are kept, where that can be waited for. */
  get #pauseMeanMicros(): number {
    const aboutHistory = Math.min(this.#parts.historyMs * 600, pauseMeanMicrosMax)
    return Math.max(aboutHistory, pauseMeanMicrosMin)
  }

  async #open(random: SeededRandom): Promise<Snapshot | undefined> {
    const { judge, coverage } = this.#parts
    const up = this.#parts.replicas()
    if (up.length === 0) return undefined
    const from = random.pick(up)
    const group = random.pick(groups)
    const { timestamp: newest } = judge.model.of(group)
    const at = this.#drawMoment(group, random)
    const point = await this.#within(from.replica.readAt(group, at, timeoutMs))
    if (point === undefined) return undefined
    coverage.count(point.timestamp < newest ? 'snapshot of the past' : 'snapshot of now')
    return { group, at: point.timestamp, from }
  }

  #drawMoment(group: GroupId, random: SeededRandom): Timestamp {
    const { judge, historyMs } = this.#parts
    const { timestamp: newest, timestamps } = judge.model.of(group)
    // The very moment of an entry, and those beside it.
    if (random.chance(600_000)) {
      const entry = timestamps.at(-random.int(1, Math.min(entriesBackMax, timestamps.length))) ?? 0
      return Math.max(0, entry + random.pick([-1, 0, 0, 1]))
    }
    const back = random.exponential(historyMs * 500)
    // Sometimes draws a moment in the future, which reads as of now.
    return random.chance(300_000) ? newest + back : Math.max(0, newest - back)
  }

  /** False when it can be read no more. */
  async #look(snapshot: Snapshot, random: SeededRandom): Promise<boolean> {
    const { group, at } = snapshot
    const up = this.#parts.replicas()
    if (up.length === 0) return true
    if (random.chance(250_000)) {
      const other = random.pick(up)
      const moved = await this.#within(other.replica.readAt(group, at, timeoutMs))
      if (moved?.timestamp === at) snapshot.from = other
    }
    const { from } = snapshot
    const isGet = random.chance(400_000)
    const seen = isGet ? await this.#get(snapshot, random) : await this.#scan(snapshot, random)
    if (seen && at < (this.#parts.judge.model.of(group).horizons.at(-1) ?? 0)) {
      this.#parts.coverage.count('snapshot read behind the horizon')
    }
    return seen || !this.#parts.replicas().some(({ replica }) => replica === from.replica)
  }

  async #get({ group, at, from }: Snapshot, random: SeededRandom): Promise<boolean> {
    const { judge } = this.#parts
    const asked = random.shuffle(keys).slice(0, random.int(1, keys.length))
    const seen = await this.#within(from.replica.getAt(group, asked, at))
    if (seen === undefined) return false
    const rows = judge.model.rowsAt(group, at)
    const expected = asked.map((key) => rows.find((row) => compareBytes(row.key, key) === 0))
    judge.log.onPastSeen(from.name, group, at, expected, seen)
    return true
  }

  async #scan({ group, at, from }: Snapshot, random: SeededRandom): Promise<boolean> {
    const { judge } = this.#parts
    const range = drawRange(random)
    const seen = await this.#within(from.replica.scan(group, range, at))
    if (seen === undefined) return false
    const { gte, gt, lt, reverse, limit } = range
    const rows = judge.model
      .rowsAt(group, at)
      .filter(({ key }) => gte === undefined || compareBytes(key, gte) >= 0)
      .filter(({ key }) => gt === undefined || compareBytes(key, gt) > 0)
      .filter(({ key }) => lt === undefined || compareBytes(key, lt) < 0)
    const expected = (reverse === true ? rows.toReversed() : rows).slice(0, limit)
    judge.log.onPastSeen(from.name, group, at, expected, seen)
    return true
  }

  /** Undefined when the node cannot answer, or never does. */
  #within<T>(work: Promise<T>): Promise<T | undefined> {
    const { world, coverage } = this.#parts
    return new Promise((resolve, reject) => {
      const timer = world.schedule(patienceMicros, 'give up', () => resolve(undefined))
      work.then(
        (value) => {
          timer.cancel()
          resolve(value)
        },
        (error: unknown) => {
          timer.cancel()
          if (!(error instanceof StoreError)) return reject(error)
          coverage.count(`snapshot: ${error.code}`)
          resolve(undefined)
        },
      )
    })
  }
}

function drawSubmission(session: string, sequence: number, random: SeededRandom): Submission {
  const written = random.shuffle(keys).slice(0, random.int(1, 4))
  const mutations = written.map((key): Mutation =>
    random.chance(300_000) ? { key } : { key, value: Buffer.from(`${session}/${sequence}`) },
  )
  return {
    group: random.pick(groups),
    readPosition: 0,
    reads: [],
    ranges: [],
    allocations: [],
    mutations,
    intent: {
      session,
      sequence,
      floor: Math.max(1, sequence - underWayMax),
      expiresAt: epochMicros + intentMicros,
    },
    attempt: random.int(1, Number.MAX_SAFE_INTEGER),
  }
}

function drawRange(random: SeededRandom): RowRange {
  const bound = random.int(0, 5)
  return {
    ...(bound === 0 ? { gte: random.pick(keys) } : {}),
    ...(bound === 1 ? { gt: random.pick(keys) } : {}),
    ...(bound <= 2 ? { lt: random.pick(keys) } : {}),
    ...(random.chance(300_000) ? { reverse: true } : {}),
    ...(random.chance(300_000) ? { limit: random.int(1, 3) } : {}),
  }
}
