/**
 * The operations that sessions of tables ask of global indexes: verified reads while everything goes on, the
 * build of one that came later, and at the end all entries of each, against the rows of all stores.
 *
 * IDX-6  When a later index is ready, it has all rows, and none that are gone.
 * IDX-1  At the end the entries are those of the rows.
 * IDX-2  A verified read gives nothing that was not so while it was made.
 * IDX-10 What stood from before it until its end is in its pages.
 */
import type { Timestamp } from '../../src/base/ids.ts'
import type { Client } from '../../src/client/client.ts'
import type { Tables } from '../../src/tables/tables.ts'
import {
  globalEntries,
  globalIndexes,
  laterIndex,
  type GlobalIndexModel,
} from '../checkers/global-model.ts'
import type { IndexChecker } from '../checkers/index-checker.ts'
import type { Referee } from '../checkers/referee.ts'
import type { TableChecker } from '../checkers/table-checker.ts'
import { laterLocal, describeValue } from '../checkers/table-model.ts'
import { checkNoneGone, checkWhole, standingIn, type WholeRule } from '../checkers/whole-answer.ts'
import type { Coverage } from '../coverage.ts'
import type { SeededRandom } from '../world/random.ts'
import type { Named, TableRead } from './table-step.ts'
import type { World } from '../world/world.ts'

export interface TableGlobalsParts {
  readonly random: SeededRandom
  readonly client: Client
  readonly checker: TableChecker
  readonly indexes: IndexChecker
  readonly referee: Referee
  readonly coverage: Coverage
  readonly stores: readonly string[]
  readonly timeoutMs: number
  readonly world: World
  /** Those that build the later index now, of all sessions, and when each begins to fill it. */
  readonly builders: Map<TableGlobals, number>
  /**
   * A session may have written by a schema without the later index, and not know whether it did.
   */
  mayHaveLateWrites(): boolean
  /** The later index is filled, after such a grace. */
  onBuilt(graceMs: number): void
}

/** As programs do whose types are known only when they run. */
interface PlainTables {
  index(
    table: { readonly name: string },
    name: string,
    query: unknown,
    options: object,
  ): Promise<{ readonly items: readonly object[]; readonly cursor?: string | undefined }>
}

const tags = ['x', 'y', 'z'] as const
const labels = ['left', 'middle', 'right', 'top'] as const
export const schemaName = 'Shop'
/** Before an index is filled, sessions that have waited for it are at work again. */
const nearMicros = 100_000
/** So that a program which does not keep a ready index is found by what it writes. */
const readyMicros = 300_000

export class TableGlobals {
  readonly #parts: TableGlobalsParts

  constructor(parts: TableGlobalsParts) {
    this.#parts = parts
  }

  get random(): SeededRandom {
    return this.#parts.random
  }

  /** Asks for entries, and that their rows have them still. */
  async look(db: Tables): Promise<void> {
    const { random, checker, stores, coverage, timeoutMs, indexes } = this.#parts
    const [index, query] = this.#draw()
    const isAtRest = indexes.pending === 0
    const began = this.#newest()
    const told = new Map(stores.map((store) => [store, checker.toldAt(store)]))
    const found = await queryEntries(db, index, query, {
      verify: true,
      timeoutMs,
      limit: random.pick([1, 3, 100]),
    })
    coverage.count('tables: verified read of a global index')
    for (const item of found) this.#checkEntry(index, query, item, told)
    // With nothing on its way, the index had what the rows said.
    if (isAtRest) this.#checkWhole('IDX-10', { index, query }, began, found)
  }

  #draw(): readonly [GlobalIndexModel, Named] {
    const { random } = this.#parts
    const index = random.pick(globalIndexes.slice(0, 2))
    return index.table === 'Item'
      ? [index, { tag: random.pick(tags) }]
      : [index, { label: random.pick(labels) }]
  }

  #checkEntry(
    index: GlobalIndexModel,
    query: Named,
    item: object,
    told: ReadonlyMap<string, Timestamp>,
  ): void {
    const { checker, referee } = this.#parts
    const store = 'store' in item ? String(item.store) : ''
    const text = describeValue(item)
    const states = checker.statesSince(store, told.get(store) ?? 0)
    const wasSo = states.some((state) => globalEntries(state, index).includes(text))
    const fits = fitsQuery(text, query)
    referee.check(
      wasSo && fits,
      'IDX-2',
      'A verified read of an index gave what was not so while it was made.',
      () => ({ index: index.name, query, entry: text }),
    )
  }

  /** Checks that entries which all states of the rows have had since then are in the answer. */
  #checkWhole(
    rule: WholeRule,
    { index, query }: { readonly index: GlobalIndexModel; readonly query: Named },
    began: readonly Timestamp[],
    found: readonly object[],
  ): void {
    const { checker, referee, stores, coverage } = this.#parts
    const standing = stores
      .flatMap((store, nth) => standingIn(checker.statesSince(store, began[nth] ?? 0), index))
      .filter((text) => fitsQuery(text, query))
    if (standing.length > 0) coverage.count(`tables: an answer was to have what stood, ${rule}`)
    checkWhole(referee, rule, {
      index: index.name,
      query,
      standing,
      found: found.map(describeValue),
    })
  }

  /** Whether a session builds the later index: the others go on writing until it is ready. */
  get isBuilding(): boolean {
    return this.#parts.builders.size > 0
  }

  /** The time until the next known backfill. */
  get microsToFilling(): number {
    const { builders, world } = this.#parts
    return Math.max(0, Math.min(...builders.values()) - nearMicros - world.nowMicros)
  }

  /** Fills the index that came later, as soon as no session goes by the schema before. */
  async build(db: Tables, graceMs: number): Promise<void> {
    const { client, coverage, builders, random, world } = this.#parts
    const indexes = client.indexes(schemaName)
    const known = await indexes.list()
    const isLeft = (name: string): boolean =>
      known.some((one) => one.name === name && one.state !== 'ready')
    if (isLeft(laterLocal)) await this.#buildLocal(graceMs)
    if (!isLeft(laterIndex.name)) return
    const began = this.#newest()
    let filling: readonly Timestamp[] = []
    const onProgress = ({ phase }: { readonly phase: string }): void => {
      if (phase === 'filling' && filling.length === 0) filling = this.#newest()
    }
    // Pages are smaller than what there is, as a rule.
    const rowsAtOnce = random.pick([1, 2, 50])
    builders.set(this, world.nowMicros + graceMs * 1_000)
    try {
      await indexes.build(laterIndex.name, { graceMs, rowsAtOnce, onProgress })
      await this.#stayReady(graceMs)
    } finally {
      builders.delete(this)
    }
    coverage.count('tables: a global index built')
    this.#parts.onBuilt(graceMs)
    if (this.#newest().some((at, nth) => at > (filling[nth] ?? at))) {
      coverage.count('tables: rows changed while an index was filled')
    }
    await this.#lookWhenReady(db, began)
  }

  /** The checker compares each answer of it with the rows (IDX-14). */
  async #buildLocal(graceMs: number): Promise<void> {
    const { client, coverage, builders, random, world } = this.#parts
    builders.set(this, world.nowMicros + graceMs * 1_000)
    const began = this.#newest()
    try {
      const rowsAtOnce = random.pick([1, 2, 50])
      await client.indexes(schemaName).build(laterLocal, { graceMs, rowsAtOnce })
      await this.#stayReady(graceMs)
    } finally {
      builders.delete(this)
    }
    coverage.count('tables: a local index built')
    if (this.#newest().some((at, nth) => at > (began[nth] ?? at))) {
      coverage.count('tables: rows changed while a local index was built')
    }
    this.#parts.onBuilt(graceMs)
  }

  /** The others go on writing for a while: every program keeps the index by now. */
  async #stayReady(graceMs: number): Promise<void> {
    if (graceMs > 0) await this.#parts.world.sleep(readyMicros)
  }

  /** A read of the local index that came later. */
  drawLater(): TableRead {
    const { random } = this.#parts
    const query = random.chance(500_000) ? { note: random.pick([...labels, null]) } : {}
    return {
      ...{ kind: 'index', table: 'Item', index: laterLocal, query },
      ...{ isWithRows: random.chance(300_000), reverse: random.chance(300_000) },
      ...{ limit: random.pick([1, 2, 100]), isPaged: random.chance(700_000) },
    }
  }

  /** Whether the local index that came later may lack entries: see `mayHaveLateWrites`. */
  get isExcused(): boolean {
    return this.#parts.mayHaveLateWrites()
  }

  /** The newest moment of each store. */
  #newest(): readonly Timestamp[] {
    const { checker, stores } = this.#parts
    return stores.map((store) => checker.listMoments(store).at(-1) ?? 0)
  }

  /**
   * All rows that stood since the build began are in it, and, when nothing is on its way, no
   * others.
   */
  async #lookWhenReady(db: Tables, began: readonly Timestamp[]): Promise<void> {
    const { checker, referee, stores, timeoutMs, random, indexes, coverage } = this.#parts
    const isAtRest = indexes.pending === 0
    const found = await queryEntries(
      db,
      laterIndex,
      {},
      { timeoutMs, limit: random.pick([1, 2, 100]) },
    )
    this.#checkWhole('IDX-6', { index: laterIndex, query: {} }, began, found)
    if (!isAtRest) return
    coverage.count('tables: an index looked at when it was ready')
    const states = stores.flatMap((store, nth) => checker.statesSince(store, began[nth] ?? 0))
    checkNoneGone(referee, laterIndex, states, found.map(describeValue))
  }

  /** True when all of each index was compared; false when changes are on their way. */
  async compareAll(db: Tables, hasLater: boolean): Promise<boolean> {
    const { indexes, checker, referee, stores, timeoutMs, coverage, random } = this.#parts
    if (indexes.pending > 0) return false
    for (const index of hasLater ? [...globalIndexes, laterIndex] : globalIndexes) {
      const asked = { limit: random.pick([1, 2, 3, 100]), reverse: random.chance(500_000) }
      const found = await queryEntries(db, index, {}, { timeoutMs, ...asked })
      if (found.length > asked.limit) coverage.count('tables: pages of a global index compared')
      if (indexes.pending > 0) return false
      const states = stores.map((store) => checker.stateAt(store, Number.MAX_SAFE_INTEGER))
      const expected = states.flatMap((state) => globalEntries(state, index)).toSorted()
      const seen = found.map(describeValue).toSorted()
      coverage.count('tables: a global index compared')
      const isExcused = index === laterIndex && this.#parts.mayHaveLateWrites()
      referee.check(
        isExcused || describeValue(seen) === describeValue(expected),
        'IDX-1',
        'Entries of a global index are not those of the rows, though nothing is on its way.',
        () => ({ index: index.name, expected, seen }),
      )
    }
    indexes.atRest()
    return true
  }
}

function fitsQuery(text: string, query: Named): boolean {
  return Object.entries(query).every(([name, value]) =>
    text.includes(`${name}:${JSON.stringify(value)}`),
  )
}

async function queryEntries(
  db: PlainTables,
  { name, table }: GlobalIndexModel,
  query: Named,
  options: object,
): Promise<readonly object[]> {
  const items: object[] = []
  for (let cursor: string | undefined; ;) {
    const page = await db.index({ name: table }, name, query, {
      ...options,
      ...(cursor !== undefined && { cursor }),
    })
    items.push(...page.items)
    cursor = page.cursor
    if (cursor === undefined) return items
  }
}
