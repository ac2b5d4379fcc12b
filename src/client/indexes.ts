/** Global indexes of a schema, for those who look after them: what there are, and whether they are right. */
import { checkOptions } from '../base/arguments.ts'
import { StoreError } from '../base/errors.ts'
import { unknownWord } from '../base/suggest.ts'
import type { Clock } from '../ports/clock.ts'
import type { Random } from '../ports/random.ts'
import { upkeepBounds } from '../tables/limits.ts'
import { compileSchema } from '../tables/compile.ts'
import type { CompiledSchema } from '../tables/compiled.ts'
import {
  compareIndex,
  makeIndex,
  type GlobalIndexReport,
  type Made,
} from '../tables/index-compare.ts'
import { clearIndex } from '../tables/index-clear.ts'
import { MisfitRows } from '../tables/index-misfits.ts'
import type { UpkeepParts } from '../tables/index-upkeep.ts'
import {
  droppedMeanwhile,
  hasIndex,
  markBuilt,
  versionsWithDropped,
  withdrawIndex,
  type SchemaView,
} from '../tables/registry.ts'
import type { IntentSource } from '../txn/session.ts'
import type { Groups } from './groups.ts'
import type { BuildOptions, WriteOptions } from './options.ts'
import { buildRules, checkUpkeep, writeRules } from './rules.ts'

export interface ClientIndexParts {
  readonly groups: Groups
  readonly clock: Clock
  readonly random: Random
  readonly intents: IntentSource
  readonly timeoutMs: number
  view(options: WriteOptions): Promise<SchemaView | undefined>
}

export interface GlobalIndexState {
  readonly name: string
  readonly table: string
  readonly parts: readonly string[]
  readonly shards: number
  readonly spread: number
  /** Not all rows are in it while it is being built, and it is not asked. */
  readonly state: 'building' | 'ready'
}

export type { BuildOptions } from './options.ts'

export type BuildReport = Made

export class IndexAdmin {
  readonly schema: string
  readonly #parts: ClientIndexParts

  constructor(schema: string, parts: ClientIndexParts) {
    this.schema = schema
    this.#parts = parts
  }

  /** The schema's global indexes. */
  async list(options: WriteOptions = {}): Promise<readonly GlobalIndexState[]> {
    checkOptions('indexes.list', options, writeRules)
    const { compiled, view } = await this.#schema(options)
    return [...compiled.globals.values()].map(({ name, table, parts, shards, spread }) => ({
      name,
      table,
      shards,
      spread,
      parts: parts.map((part) => (part.direction === 'desc' ? `${part.name} DESC` : part.name)),
      state: view.building.has(name) ? 'building' : 'ready',
    }))
  }

  /**
   * Puts all rows into an index that was declared when they were there; then it can be asked. Of one
   * that has all rows already, nothing is done: `rebuild` makes it anew.
   */
  async build(index: string, options: BuildOptions = {}): Promise<BuildReport> {
    checkUpkeep('indexes.build', index, options, buildRules)
    const { parts, view } = await this.#upkeep(index, options)
    const since = view.building.get(index)
    // Somebody else was quicker.
    if (since === undefined) return { groups: 0, rows: 0, removed: 0, misfits: parts.misfits.all }
    const made = await makeIndex(parts, since, options.graceMs)
    await markBuilt(this.#parts.groups, this.schema, parts.index, parts.options)
    return made
  }

  /** Puts all rows into the index again, and takes out what is of no row; it goes on being asked. */
  async rebuild(index: string, options: BuildOptions = {}): Promise<BuildReport> {
    checkUpkeep('indexes.rebuild', index, options, buildRules)
    const { parts, view } = await this.#upkeep(index, options)
    if (view.building.has(index)) throw notBuilt(index)
    return makeIndex(parts, undefined)
  }

  /** Compares the index with the rows of its table. */
  async check(index: string, options: BuildOptions = {}): Promise<GlobalIndexReport> {
    checkUpkeep('indexes.check', index, options, buildRules)
    const { parts, view } = await this.#upkeep(index, options)
    if (view.building.has(index)) throw notBuilt(index)
    return compareIndex(parts)
  }

  /**
   * Drops an index that is being built, and clears its entries off; again, it goes on where it ended. Rejects with
   * `invalid` when the index is ready: programs may ask it.
   */
  async drop(name: string, options: BuildOptions = {}): Promise<{ readonly cleared: number }> {
    checkUpkeep('indexes.drop', name, options, buildRules)
    const { compiled, view } = await this.#schema(options)
    const { groups, clock, timeoutMs } = this.#parts
    const index = compiled.globals.get(name)
    let { version } = view
    if (index !== undefined) {
      const { options: own } = this.#partsOf(compiled, name, options)
      await withdrawIndex(groups, this.schema, index, own)
      version = (await this.#schema(options)).view.version
    }
    const earlier = await versionsWithDropped(groups, version, name, { clock, timeoutMs })
    if (earlier.length === 0) throw unknownIndex(this.schema, name, compiled)
    let cleared = 0
    for (const [place, before] of earlier.entries()) {
      const parts = this.#partsOf(compileSchema(before), name, options)
      // One wait is for all of them: they are all withdrawn by now.
      cleared += await clearIndex(parts, place === 0 ? options.graceMs : 0)
    }
    return { cleared }
  }

  async #schema(
    options: WriteOptions,
  ): Promise<{ readonly compiled: CompiledSchema; readonly view: SchemaView }> {
    const view = await this.#parts.view(options)
    if (view !== undefined) return { compiled: compileSchema(view.version), view }
    const message = `the cluster has no schema ${this.schema}; apply it first: trilithon schema apply`
    throw new StoreError('not-found', message)
  }

  async #upkeep(
    name: string,
    options: BuildOptions,
  ): Promise<{ readonly parts: UpkeepParts; readonly view: SchemaView }> {
    const { compiled, view } = await this.#schema(options)
    const parts = this.#partsOf(compiled, name, options)
    const checkWanted = async (): Promise<void> => {
      const { view: now } = await this.#schema(options)
      if (!hasIndex(now.version, parts.index)) throw droppedMeanwhile(name)
    }
    return { parts: { ...parts, checkWanted }, view }
  }

  #partsOf(
    compiled: CompiledSchema,
    name: string,
    { onProgress = () => undefined, rowsAtOnce, signal }: BuildOptions,
  ): UpkeepParts {
    const index = compiled.globals.get(name)
    const table = compiled.tables.get(index?.table ?? '')
    if (index === undefined || table === undefined) {
      throw unknownIndex(this.schema, name, compiled)
    }
    const { groups, clock, random, intents, timeoutMs } = this.#parts
    const until = signal === undefined ? groups : groups.until(signal)
    return {
      port: groups,
      schema: compiled,
      table,
      index,
      onProgress,
      rowsAtOnce: checkedPage(rowsAtOnce),
      misfits: new MisfitRows(),
      options: { clock, random, intents, timeoutMs, signal },
      list: (prefix, after, limit) => until.list(prefix, after, limit, timeoutMs),
    }
  }
}

/** Throws `invalid` for a number of rows that no step looks at. */
export function checkedPage(rowsAtOnce: number | undefined): number | undefined {
  const { rowsAtOnceMax } = upkeepBounds
  if (rowsAtOnce === undefined) return undefined
  if (Number.isInteger(rowsAtOnce) && rowsAtOnce >= 1 && rowsAtOnce <= rowsAtOnceMax)
    return rowsAtOnce
  throw new StoreError(
    'invalid',
    `rowsAtOnce is ${rowsAtOnce}, not an integer from 1 to ${rowsAtOnceMax}`,
  )
}

function unknownIndex(schema: string, name: string, { globals }: CompiledSchema): StoreError {
  const words = unknownWord('global index', name, [...globals.keys()])
  return new StoreError('not-found', `schema ${schema}: ${words}`)
}

function notBuilt(index: string): StoreError {
  const message = `index ${index} is being built; trilithon index build goes on with it`
  return new StoreError('unavailable', message, { index: 'building' })
}
