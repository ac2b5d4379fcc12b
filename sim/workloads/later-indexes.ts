/**
 * The two indexes that come when there are rows: a session builds them while the others write, and asks
 * them as soon as they are ready.
 *
 * IDX-6   When the global one is ready, it has all rows, and none that are gone.
 * IDX-14  The checker of tables compares each answer of the local one with the rows.
 */
import type { Timestamp } from '../../src/base/ids.ts'
import type { Client } from '../../src/client/client.ts'
import type { Tables } from '../../src/tables/tables.ts'
import { judgeBuild } from '../checkers/built-index.ts'
import { laterIndex } from '../checkers/global-model.ts'
import type { IndexChecker } from '../checkers/index-checker.ts'
import { laterLocal, describeValue } from '../checkers/table-model.ts'
import { checkNoneGone } from '../checkers/whole-answer.ts'
import { epochMicros } from '../world/clock.ts'
import type { SeededRandom } from '../world/random.ts'
import type { World } from '../world/world.ts'
import { checkStanding, queryEntries, newestOf, type Standing } from './table-globals.ts'
import type { TableRead } from './table-step.ts'

export interface LaterIndexesParts extends Standing {
  readonly random: SeededRandom
  readonly client: Client
  readonly indexes: IndexChecker
  readonly timeoutMs: number
  readonly world: World
  /** The builders of all sessions, and from when on the others write while each builds. */
  readonly builders: Map<LaterIndexes, number>
  /** An index is ready. Its builder waited this long for programs that did not know the index. */
  onBuilt(graceMs: number): void
}

export interface LaterBuild {
  readonly graceMs: number
  /** The local index is ready. At `before`, by a clock without offset, it was not filled yet. */
  onLocalReady(before: Timestamp): Promise<void>
}

const schemaName = 'Shop'
const labels = ['left', 'middle', 'right', 'top'] as const
/** The others write from this time before an index is filled, or from when it is ready. */
const nearMicros = 100_000
/** Most of the builds, in parts per million: the others write while the index is filled. */
const busyRate = 800_000
/** A session that waits looks this often whether it is to write. */
const lookMicros = 10_000
/** The others write for this long when an index is ready: it lacks what a program writes that ignores it. */
const readyMicros = 300_000
const whole = { reverse: false, limit: 100, isPaged: true, isWithRows: false } as const

export class LaterIndexes {
  readonly #parts: LaterIndexesParts

  constructor(parts: LaterIndexesParts) {
    this.#parts = parts
  }

  /** Whether a session builds an index: the others go on writing until it is ready. */
  get isBuilding(): boolean {
    return this.#parts.builders.size > 0
  }

  /** Waits until a builder has the others write, or none builds any more. */
  async untilBusy(isEnding: () => boolean): Promise<void> {
    const { builders, world } = this.#parts
    while (builders.size > 0 && !isEnding()) {
      if (Math.min(...builders.values()) <= world.nowMicros) return
      await world.sleep(lookMicros)
    }
  }

  /** Builds those that are not ready. */
  async build(db: Tables, { graceMs, onLocalReady }: LaterBuild): Promise<void> {
    const { client } = this.#parts
    const known = await client.indexes(schemaName).list()
    const isLeft = (name: string): boolean =>
      known.some((one) => one.name === name && one.state !== 'ready')
    if (isLeft(laterLocal)) await this.#buildOne(laterLocal, graceMs, onLocalReady)
    if (!isLeft(laterIndex.name)) return
    const began = newestOf(this.#parts)
    await this.#buildOne(laterIndex.name, graceMs)
    await this.#lookWhenReady(db, began)
  }

  /**
   * A builder that begins too early has the others write too early: those that ignore its index leave
   * faults in it. Its comparison finds what they write before that, so in some of the builds they write
   * only afterwards.
   */
  async #buildOne(
    name: string,
    graceMs: number,
    onReady: LaterBuild['onLocalReady'] = () => Promise.resolve(),
  ): Promise<void> {
    const { client, coverage, builders, random, referee, world } = this.#parts
    const isBusy = random.chance(busyRate)
    let [filling, before] = [newestOf(this.#parts), world.nowMicros]
    builders.set(this, isBusy ? world.nowMicros + graceMs * 1_000 - nearMicros : Infinity)
    const onProgress = ({ phase }: { readonly phase: string }): void => {
      if (phase === 'waiting') [filling, before] = [newestOf(this.#parts), world.nowMicros]
      else if (isBusy) builders.set(this, 0)
    }
    // Pages are smaller than what there is, as a rule: then others write between two of them. At the end none writes.
    const rowsAtOnce = graceMs > 0 ? random.pick([1, 1, 2, 50]) : 50
    try {
      const build = async (): Promise<void> => {
        await client.indexes(schemaName).build(name, { graceMs, rowsAtOnce, onProgress })
      }
      // Without a grace a program that does not know the index may write meanwhile.
      await (graceMs > 0 ? judgeBuild(referee, name, build) : build())
      const kind = name === laterLocal ? 'local' : 'global'
      coverage.count(`tables: a ${kind} index built`)
      if (newestOf(this.#parts).some((at, nth) => at > (filling[nth] ?? at))) {
        coverage.count(`tables: rows changed while a ${kind} index was filled`)
      }
      builders.set(this, 0)
      await onReady(epochMicros + before)
      if (graceMs > 0) await world.sleep(readyMicros)
    } finally {
      builders.delete(this)
    }
    this.#parts.onBuilt(graceMs)
  }

  /** A read of the local one. */
  drawRead(): TableRead {
    const { random } = this.#parts
    const query = random.chance(500_000) ? { note: random.pick([...labels, null]) } : {}
    return {
      ...{ kind: 'index', table: 'Item', index: laterLocal, query },
      ...{ isWithRows: random.chance(300_000), reverse: random.chance(300_000) },
      ...{ limit: random.pick([1, 2, 100]), isPaged: random.chance(700_000) },
    }
  }

  /** A read of the whole local one. */
  wholeRead(): TableRead {
    return { kind: 'index', table: 'Item', index: laterLocal, query: {}, ...whole }
  }

  /**
   * All rows that stood since the build began are in it, and, when nothing is on its way, no
   * others.
   */
  async #lookWhenReady(db: Tables, began: readonly Timestamp[]): Promise<void> {
    const { checker, referee, stores, timeoutMs, random, indexes, coverage } = this.#parts
    const isAtRest = indexes.pending === 0
    const asked = { timeoutMs, limit: random.pick([1, 2, 100]) }
    const found = await queryEntries(db, laterIndex, {}, asked)
    checkStanding(this.#parts, 'IDX-6', { index: laterIndex, query: {} }, began, found)
    if (!isAtRest) return
    coverage.count('tables: an index looked at when it was ready')
    const states = stores.flatMap((store, nth) => checker.statesSince(store, began[nth] ?? 0))
    checkNoneGone(referee, laterIndex, states, found.map(describeValue))
  }
}
