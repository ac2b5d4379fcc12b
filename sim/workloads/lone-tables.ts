/**
 * A program that alone writes a store of tables, at one node, until that node is cut off. The store
 * has rows, and none of them has an entry in the index that comes later. The index backfill
 * therefore puts nothing there. A write that only that node has accepted must not take effect after
 * the backfill.
 */
import type { StoreErrorCode } from '../../src/base/errors.ts'
import type { Client } from '../../src/client/client.ts'
import type { Tables } from '../../src/tables/tables.ts'
import type { TableChecker } from '../checkers/table-checker.ts'
import type { LoneOptions } from './lone-draw.ts'
import { writeAlone } from './lone-writer.ts'
import { markStep } from './table-draw.ts'
import { performStep, type TableRun, type TableStep } from './table-step.ts'
import { globalShopSchemas } from './table-schema.ts'
import type { World } from '../world/world.ts'
import { toldBy } from './told.ts'

/** The store, and its group. */
export const loneStore = 'east'

export interface LoneTablesParts {
  readonly world: World
  readonly client: Client
  readonly checker: TableChecker
  readonly lone: LoneOptions
  readonly timeoutMs: number
  isEnding(): boolean
  /** A write may have been, or not. */
  onUnknown(): void
  /** Whether a node may have a damaged data disk now, and say so. */
  mayBeCorrupt(): boolean
}

const name = 'table-lone'
/**
 * Codes that the world may be the reason of, beside those that say that a call may be made again.
 */
const excused: readonly StoreErrorCode[] = [
  'closed',
  'expired',
  'snapshot-too-old',
  'schema-mismatch',
]
const rootKey = { table: 'Store', key: { store: loneStore } } as const
const key = { store: loneStore, shelf: 1, item: 'a' }

export class LoneTables {
  readonly #parts: LoneTablesParts
  #isLeft = false

  constructor(parts: LoneTablesParts) {
    this.#parts = parts
  }

  /** Whether a node that is cut off may be the only one to have a write. */
  get isLeft(): boolean {
    return this.#isLeft
  }

  async run(): Promise<void> {
    const { world, lone, checker, isEnding } = this.#parts
    const db = await this.#open()
    if (db === undefined) return
    checker.onGroup(db.group(rootKey), loneStore)
    const put = (number: number, isLast: boolean): Promise<boolean> => this.#put(db, number, isLast)
    this.#isLeft = await writeAlone({ world, ...lone, put, isEnding })
  }

  async #open(): Promise<Tables | undefined> {
    const { world, client, lone, isEnding } = this.#parts
    const model = globalShopSchemas[1]
    while (world.nowMicros < lone.atMicros && !isEnding()) {
      const db = await this.#told(() => client.tables({ name: model.name, tables: [], model }))
      if (db !== undefined) return db
      await world.sleep(20_000)
    }
    return undefined
  }

  /** The last one is an item with a note: before that the store has none. */
  async #put(db: Tables, number: number, isLast: boolean): Promise<boolean> {
    const { checker, timeoutMs } = this.#parts
    const operation = `${name}.${number}`
    const items: readonly TableStep[] = isLast
      ? [{ kind: 'put', table: 'Item', row: { ...key, price: 1, tag: [], note: 'left' } }]
      : []
    const atLeast = checker.toldAt(loneStore)
    let [runs, isKnown] = [0, true]
    const committed = await this.#told(
      () =>
        db.transaction(
          rootKey,
          async (tx) => {
            const own = ++runs
            const steps = [...items, markStep(loneStore, operation, own)]
            const run: TableRun = { version: 1, declared: 1, steps, results: [] }
            const results: unknown[] = []
            for (const one of steps) results.push(await performStep(tx, one))
            checker.onRun(operation, loneStore, own, { ...run, results })
            return own
          },
          // An isolated node cannot serve a current read.
          { timeoutMs, from: 'snapshot' },
        ),
      (code) => {
        isKnown = code !== 'unknown-outcome'
        if (isKnown) checker.onRefused(name, operation, code)
        else this.#parts.onUnknown()
      },
    )
    if (committed === undefined) return isKnown
    checker.onCommitted(name, operation, committed, atLeast)
    return true
  }

  /** Undefined when the world was in the way. */
  #told<Value>(
    call: () => Promise<Value>,
    onFailed: (code: string) => void = () => undefined,
  ): Promise<Value | undefined> {
    const { mayBeCorrupt } = this.#parts
    return toldBy(call, { codes: excused, mayBeCorrupt, onFailed })
  }
}
