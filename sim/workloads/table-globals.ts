/**
 * The operations that sessions of tables ask of global indexes: verified reads while everything goes on, and at the
 * end all entries of each, against the rows of all stores.
 *
 * IDX-1  At the end the entries are those of the rows.
 * IDX-2  A verified read gives nothing that was not so while it was made.
 * IDX-10 What stood from before it until its end is in its pages.
 */
import type { Timestamp } from '../../src/base/ids.ts'
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
import { describeValue } from '../checkers/table-model.ts'
import { checkWhole, standingIn, type WholeRule } from '../checkers/whole-answer.ts'
import type { Coverage } from '../coverage.ts'
import type { SeededRandom } from '../world/random.ts'
import type { Named } from './table-step.ts'

export interface TableGlobalsParts {
  readonly random: SeededRandom
  readonly checker: TableChecker
  readonly indexes: IndexChecker
  readonly referee: Referee
  readonly coverage: Coverage
  readonly stores: readonly string[]
  readonly timeoutMs: number
  /**
   * A session may have written by a schema without the later index, and not know whether it did.
   */
  mayHaveLateWrites(): boolean
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

export class TableGlobals {
  readonly #parts: TableGlobalsParts

  constructor(parts: TableGlobalsParts) {
    this.#parts = parts
  }

  get random(): SeededRandom {
    return this.#parts.random
  }

  /** Whether the local index that came later may lack entries: see `mayHaveLateWrites`. */
  get isExcused(): boolean {
    return this.#parts.mayHaveLateWrites()
  }

  /** Asks for entries, and that their rows have them still. */
  async look(db: Tables): Promise<void> {
    const { random, checker, stores, coverage, timeoutMs, indexes } = this.#parts
    const [index, query] = this.#draw()
    const isAtRest = indexes.pending === 0
    const began = newestOf(this.#parts)
    const told = new Map(stores.map((store) => [store, checker.toldAt(store)]))
    const found = await queryEntries(db, index, query, {
      verify: true,
      timeoutMs,
      limit: random.pick([1, 3, 100]),
    })
    coverage.count('tables: verified read of a global index')
    for (const item of found) this.#checkEntry(index, query, item, told)
    // With nothing on its way, the index had what the rows said.
    if (isAtRest) checkStanding(this.#parts, 'IDX-10', { index, query }, began, found)
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

/** The checkers that a session holds answers against. */
export type Standing = Pick<TableGlobalsParts, 'checker' | 'referee' | 'stores' | 'coverage'>

/** The newest moment of each store. */
export function newestOf({ checker, stores }: Standing): readonly Timestamp[] {
  return stores.map((store) => checker.listMoments(store).at(-1) ?? 0)
}

/** Checks that entries which all states of the rows have had since then are in the answer. */
export function checkStanding(
  { checker, referee, stores, coverage }: Standing,
  rule: WholeRule,
  { index, query }: { readonly index: GlobalIndexModel; readonly query: Named },
  began: readonly Timestamp[],
  found: readonly object[],
): void {
  const standing = stores
    .flatMap((store, nth) => standingIn(checker.statesSince(store, began[nth] ?? 0), index))
    .filter((text) => fitsQuery(text, query))
  if (standing.length > 0) coverage.count(`tables: an answer was to have what stood, ${rule}`)
  checkWhole(referee, rule, { index: index.name, query, standing, found: found.map(describeValue) })
}

function fitsQuery(text: string, query: Named): boolean {
  return Object.entries(query).every(([name, value]) =>
    text.includes(`${name}:${JSON.stringify(value)}`),
  )
}

export async function queryEntries(
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
