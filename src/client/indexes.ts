/** The indexes of a schema, for those who look after them: where they stand, and whether they are right. */
import { checkOptions } from '../base/arguments.ts'
import { StoreError } from '../base/errors.ts'
import { unknownWord } from '../base/suggest.ts'
import type { Clock } from '../ports/clock.ts'
import type { Random } from '../ports/random.ts'
import { upkeepBounds } from '../indexes/limits.ts'
import { compileSchema } from '../tables/compile.ts'
import { isGlobal, type CompiledIndex, type CompiledSchema } from '../tables/compiled.ts'
import { buildIndex, clearDropped, dropIndex } from '../tables/index-build.ts'
import type { BuiltIndexReport } from '../tables/index-compare.ts'
import { findLife } from '../tables/index-life.ts'
import { compareIndex, makeIndex, type Made } from '../tables/index-make.ts'
import type { UpkeepParts } from '../tables/index-parts.ts'
import { hasIndex, readVersions, type SchemaView } from '../tables/registry.ts'
import { droppedMeanwhile, notAsked, type IndexState } from '../indexes/state.ts'
import { MisfitRows } from '../indexes/misfits.ts'
import { telling, whileAtWork } from '../indexes/report.ts'
import { withdrawnIn } from '../../schema/version.ts'
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

export interface TableIndexState {
  readonly name: string
  readonly table: string
  readonly kind: 'local' | 'inline' | 'global'
  readonly parts: readonly string[]
  /** Of a global one: groups that it has, and over how many the entries of one value are spread. */
  readonly shards?: number
  readonly spread?: number
  /** Queries are answered when it is `ready`. */
  readonly state: IndexState
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

  /** The schema's indexes, and those that it had whose entries are still being cleared. */
  async list(options: WriteOptions = {}): Promise<readonly TableIndexState[]> {
    checkOptions('indexes.list', options, writeRules)
    const { compiled, view } = await this.#schema(options)
    const there = listIndexes(compiled).map((index) =>
      toState(index, findLife(view.lives, index.name).state),
    )
    const { withdrawn } = view.lives
    if (withdrawn.length === 0) return there
    const { groups, clock, timeoutMs } = this.#parts
    const numbers = withdrawn.map(({ version }) => version)
    const versions = await readVersions(groups, this.schema, numbers, { clock, timeoutMs })
    const gone = versions.flatMap((version) =>
      listIndexes(compileSchema(version)).filter(({ number }) =>
        withdrawn.some((one) => one.number === number && one.version === version.version),
      ),
    )
    return [...there, ...gone.map((index) => toState(index, 'dropping'))]
  }

  /**
   * Makes an index ready that was declared when rows were there: puts all rows into it, while they
   * change, and compares it with them. Of one that is ready, nothing is done: `rebuild` makes it anew.
   * A build that was ended is gone on with by another one. Rejects with `already-exists` where two rows
   * have the same value in a unique index, and with `not-found` when it is dropped.
   */
  async build(index: string, options: BuildOptions = {}): Promise<BuildReport> {
    checkUpkeep('indexes.build', index, options, buildRules)
    return whileAtWork(options, async (told) => {
      const { parts, view } = await this.#upkeep(index, told)
      return buildIndex(parts, findLife(view.lives, index), options.graceMs)
    })
  }

  /** Puts all rows into the index again, and takes out what is of no row; it goes on being asked. */
  async rebuild(index: string, options: BuildOptions = {}): Promise<BuildReport> {
    checkUpkeep('indexes.rebuild', index, options, buildRules)
    return whileAtWork(options, async (told) => makeIndex(await this.#ready(index, told)))
  }

  /** Compares the index with the rows of its table. */
  async check(index: string, options: BuildOptions = {}): Promise<BuiltIndexReport> {
    checkUpkeep('indexes.check', index, options, buildRules)
    return whileAtWork(options, async (told) => {
      return (await compareIndex(await this.#ready(index, told))).report
    })
  }

  /**
   * Drops an index and clears its entries: queries are refused from now on, writers keep a ready one
   * for a grace, and after another grace its entries go. A drop that was ended is gone on with by
   * another one. Rejects with `not-found` when there was never an index of this name.
   */
  async drop(name: string, options: BuildOptions = {}): Promise<{ readonly cleared: number }> {
    checkUpkeep('indexes.drop', name, options, buildRules)
    return whileAtWork(options, (told) => this.#drop(name, told))
  }

  async #drop(name: string, options: BuildOptions): Promise<{ readonly cleared: number }> {
    const { compiled, view } = await this.#schema(options)
    const { groups, clock, timeoutMs } = this.#parts
    let { version } = view
    if (indexNamed(compiled, name) !== undefined) {
      await dropIndex(this.#buildParts(compiled, name, options), options.graceMs)
      version = (await this.#schema(options)).view.version
    }
    const dropped = withdrawnIn(version.numbers, name)
    const earlier = await readVersions(groups, this.schema, dropped, { clock, timeoutMs })
    if (earlier.length === 0) throw unknownIndex(this.schema, name, compiled)
    let cleared = 0
    for (const [place, before] of earlier.entries()) {
      const parts = this.#buildParts(compileSchema(before), name, options)
      // One wait is for all of them: they are all withdrawn by now.
      cleared += await clearDropped(parts, place === 0 ? options.graceMs : 0)
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
    const parts = this.#buildParts(compiled, name, options)
    const checkWanted = async (): Promise<void> => {
      const { view: now } = await this.#schema(options)
      if (!hasIndex(now.version, parts.index)) throw droppedMeanwhile(name)
    }
    return { parts: { ...parts, checkWanted }, view }
  }

  async #ready(name: string, options: BuildOptions): Promise<UpkeepParts> {
    const { parts, view } = await this.#upkeep(name, options)
    const { state } = findLife(view.lives, name)
    if (state === 'ready') return parts
    throw notAsked({ name, flags: `--schema ${this.schema}` }, state)
  }

  #buildParts(
    compiled: CompiledSchema,
    name: string,
    { onProgress, rowsAtOnce, signal }: BuildOptions,
  ): UpkeepParts {
    const index = indexNamed(compiled, name)
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
      onProgress: telling(onProgress),
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

function listIndexes({ indexes, globals }: CompiledSchema): readonly CompiledIndex[] {
  return [...indexes.values(), ...globals.values()]
}

function indexNamed({ indexes, globals }: CompiledSchema, name: string): CompiledIndex | undefined {
  return indexes.get(name) ?? globals.get(name)
}

function toState(index: CompiledIndex, state: IndexState): TableIndexState {
  const { name, table } = index
  const parts = index.parts.map((part) =>
    part.direction === 'desc' ? `${part.name} DESC` : part.name,
  )
  if (isGlobal(index)) {
    const { shards, spread } = index
    return { name, table, kind: 'global', parts, shards, spread, state }
  }
  return { name, table, kind: index.into === undefined ? 'local' : 'inline', parts, state }
}

function unknownIndex(schema: string, name: string, compiled: CompiledSchema): StoreError {
  const known = listIndexes(compiled).map((index) => index.name)
  return new StoreError('not-found', `schema ${schema}: ${unknownWord('index', name, known)}`)
}
