/**
 * Reads of bounded staleness at any node, of groups that other sessions write. What a node answers must have all that was
 * acknowledged longer ago than the bound when the read began (STALE-1); a read that began without that bound may not fail for
 * it, so each ends as a current read would.
 */
import { StoreError } from '../../src/base/errors.ts'
import { groupOfBytes, type GroupId } from '../../src/base/ids.ts'
import type { ReadPoint } from '../../src/group/replica-port.ts'
import type { BoundedOptions } from './bounded-draw.ts'
import type { Load } from './load.ts'
import type { NamedReplica } from './append-workload.ts'
import type { Judge } from '../checkers/judge.ts'
import type { Coverage } from '../coverage.ts'
import type { SeededRandom } from '../world/random.ts'
import type { World } from '../world/world.ts'

export interface BoundedWorkloadParts {
  readonly world: World
  readonly coverage: Coverage
  readonly judge: Judge
  readonly options: BoundedOptions
  readonly load: Load
  /** Whether the node holds the group. */
  holds(node: string, group: GroupId): boolean
  /** The replicas of the nodes that are up now. */
  replicas(): readonly NamedReplica[]
  onFailed(error: unknown): void
}

const boundsMs = [100, 100, 150, 400, 1_500]
/** Between two reads of a session: often enough for rounds to follow one another. */
const pausesMicros = [2_000, 20_000, 100_000]
const timeoutMs = 1_000
/** A node that crashed never answers. */
const patienceMicros = 2_000_000

export class BoundedWorkload {
  readonly #parts: BoundedWorkloadParts
  #busy = 0
  #isEnding = false

  constructor(parts: BoundedWorkloadParts) {
    this.#parts = parts
  }

  isDone(): boolean {
    return this.#busy === 0
  }

  start(): void {
    const { options, world, onFailed } = this.#parts
    const { boundedSessionCount: sessionCount = 0 } = options
    for (let i = 1; i <= sessionCount; i++) {
      this.#busy += 1
      this.#session(world.random.fork(`bounded-${i}`)).then(() => (this.#busy -= 1), onFailed)
    }
  }

  /** The read under way is brought to its end; no other is begun. */
  end(): void {
    this.#isEnding = true
  }

  async #session(random: SeededRandom): Promise<void> {
    const { world, load } = this.#parts
    const pauseMicros = random.pick(pausesMicros)
    while (!this.#isEnding) {
      await world.sleep(1 + random.exponential(pauseMicros))
      // A session without a number of operations would read all through the quiet stretch.
      if (load.idleMicros > 0) await load.passIdle()
      else await this.#read(random)
    }
  }

  async #read(random: SeededRandom): Promise<void> {
    const { world, judge, holds } = this.#parts
    const groups = judge.book.groups.map((name) => groupOfBytes(Buffer.from(name, 'latin1')))
    const up = this.#parts.replicas()
    if (groups.length === 0 || up.length === 0) return
    const group = random.pick(groups)
    const { name, replica } = random.pick(up)
    if (!holds(name, group)) return
    const maxStalenessMs = random.pick(boundsMs)
    const beganMicros = world.nowMicros
    const now = random.chance(300_000) && replica.rowsNow(group, { maxStalenessMs }, 0, [])
    const point = now
      ? now.point
      : await this.#ask(replica.read(group, { maxStalenessMs }, timeoutMs))
    if (point === undefined) return
    const read = { group, position: point.position, maxStalenessMs }
    judge.freshness.onAnswered(name, read, beganMicros)
  }

  /** Undefined when the node cannot answer, or never does. */
  #ask(work: Promise<ReadPoint>): Promise<ReadPoint | undefined> {
    const { world, coverage } = this.#parts
    return new Promise((resolve, reject) => {
      const timer = world.schedule(patienceMicros, 'give up', () => resolve(undefined))
      work.then(
        (point) => {
          timer.cancel()
          resolve(point)
        },
        (error: unknown) => {
          timer.cancel()
          if (!(error instanceof StoreError)) return reject(error)
          coverage.count(`bounded read: ${error.code}`)
          resolve(undefined)
        },
      )
    })
  }
}
