/** Indexes over the cells of a datastore: asked by `ClientCellIndex`, looked after by `ClientCellIndexes`. */
import type { Page } from '../base/page.ts'
import { toStoreError } from '../base/problem.ts'
import { checkOptions } from '../base/arguments.ts'
import { StoreError } from '../base/errors.ts'
import { wordsFor } from '../base/words.ts'
import { pageItemsMax } from '../base/limits.ts'
import { unpackBody } from '../cells/body.ts'
import { datastoreProblem, type Cell, type StoredCell } from '../cells/cell.ts'
import {
  buildCellIndex,
  compareCellIndex,
  rebuildCellIndex,
  type CellIndexReport,
} from '../cells/index-build.ts'
import {
  checkDefinition,
  type IndexDefinition,
  type NumberedIndex,
} from '../cells/index-definition.ts'
import {
  applyIndex,
  damagedIndex,
  indexNamed,
  KeptIndexes,
  markIndexBuilding,
  markIndexBuilt,
  readIndexes,
  type Definitions,
  type KnownIndex,
} from '../cells/index-registry.ts'
import type { IndexValue } from '../cells/index-values.ts'
import type { Answer, CellService, DropIndex, SpreadIndexes } from '../cells/operation.ts'
import { shardCountOf } from '../cells/datastore-form.ts'
import { allShardsOf } from '../cells/shard.ts'
import type { Clock } from '../ports/clock.ts'
import type { Random } from '../ports/random.ts'
import { schemaGraceMs, upkeepBounds } from '../indexes/limits.ts'
import { waitForGrace } from '../indexes/grace.ts'
import { notRight, telling, whileAtWork } from '../indexes/report.ts'
import { droppedMeanwhile, notAsked } from '../indexes/state.ts'
import type { Tables } from '../tables/tables.ts'
import type { IntentSource } from '../txn/session.ts'
import { checkSignal, signalled } from '../txn/signalled.ts'
import { pause } from '../time/moments.ts'
import { notAnAnswer } from './call.ts'
import { checkDates, checkFilters, type IndexWhere } from './filters.ts'
import type { Groups } from './groups.ts'
import { listShards } from './listed-shards.ts'
import { checkedPage } from './indexes.ts'
import type { BuildOptions, CellBuildOptions, IndexQueryOptions, WriteOptions } from './options.ts'
import {
  buildRules,
  cellBuildRules,
  checkText,
  checkUpkeep,
  queryRules,
  writeRules,
} from './rules.ts'

export type { IndexWhere } from './filters.ts'
export type { CellBuildOptions, IndexQueryOptions } from './options.ts'

export interface CellIndexEntry {
  readonly rowKey: string
  /**
   * By field, null where a row has no value. A datetime is microseconds since 1970: a number, or a bigint
   * outside of the years 1684 to 2255, where a number would lose digits.
   */
  readonly fields: Readonly<Record<string, IndexValue | null>>
  /** Present when the query named columns, by column. */
  readonly cells?: Readonly<Record<string, Cell>>
}

export interface CellIndexParts {
  readonly service: CellService
  readonly timeoutMs: number
}

export class CellIndex {
  readonly datastore: string
  readonly name: string
  readonly #parts: CellIndexParts

  constructor(parts: CellIndexParts, datastore: string, name: string) {
    this.#parts = parts
    this.datastore = datastore
    this.name = name
  }

  /** Entries with this value of the shard field, and all other filters. */
  async query(where: IndexWhere, options: IndexQueryOptions = {}): Promise<Page<CellIndexEntry>> {
    const call = `index ${wordsOfName(this.name)}`
    checkText('index.query', 'the name of the index', this.name)
    checkOptions(`${call}: query`, options, queryRules)
    const { select, columns, order, cursor, read = 'current', timeoutMs, signal } = options
    const { datastore, name } = this
    const { filters, dates } = checkFilters(where, call)
    const operation = {
      kind: 'index' as const,
      datastore,
      name,
      read: { level: read, atLeast: [] },
      where: filters,
      limit: options.limit ?? pageItemsMax,
      reverse: options.reverse === true,
      verify: options.verify === true,
      ...(columns !== undefined && { columns }),
      ...(order !== undefined && { order }),
      ...(cursor !== undefined && { cursor }),
    }
    const ms = timeoutMs ?? this.#parts.timeoutMs
    const { answer } = await signalled(signal, () =>
      this.#parts.service.execute(operation, { timeoutMs: ms, signal }),
    )
    checkSignal(signal)
    if (answer.kind === 'problem') throw toStoreError(answer.problem)
    if (answer.kind !== 'index') throw toStoreError(notAnAnswer)
    checkDates(dates, answer, call)
    checkSelected(select, answer.fields, name)
    const entries = answer.entries.map(({ rowKey, values, cells }): CellIndexEntry => {
      const named = answer.fields.map((field, place) => [field, values[place] ?? null] as const)
      const fields = Object.fromEntries(
        named.filter(([field]) => select === undefined || select.includes(field)),
      )
      return cells === undefined ? { rowKey, fields } : { rowKey, fields, cells: byColumn(cells) }
    })
    return answer.cursor === undefined
      ? { items: entries }
      : { items: entries, cursor: answer.cursor }
  }
}

export function checkDatastore(datastore: string): void {
  const wrong = datastoreProblem(datastore)
  if (wrong !== undefined) throw toStoreError(wrong)
}

/** The name of an index, or what was given for it. */
function wordsOfName(name: unknown): string {
  return typeof name === 'string' ? name : wordsFor(name)
}

function checkSelected(
  select: readonly string[] | undefined,
  fields: readonly string[],
  name: string,
): void {
  const wrong = select?.find((field) => !fields.includes(field))
  if (wrong === undefined) return
  const message = `index ${name} has no field ${wrong}, only ${fields.join(', ')}`
  throw new StoreError('invalid', message)
}

function byColumn(cells: readonly StoredCell[]): Readonly<Record<string, Cell>> {
  return Object.fromEntries(
    cells.map((cell) => {
      const body = unpackBody(cell.body)
      if (body !== undefined) return [cell.column, { ...cell, body }]
      throw new StoreError('corrupt', "the bytes of a cell's body are damaged")
    }),
  )
}

function refuseOther(datastore: string, definition: IndexDefinition): StoreError {
  const { name, datastore: other } = definition
  const message = `cells.indexes.apply: index ${name} is defined over datastore ${other}, and these are the indexes of ${datastore}; apply it by client.cells('${other}').indexes`
  return new StoreError('invalid', message)
}

function declaredMeanwhile(name: string): StoreError {
  const message = `index ${name} was declared a moment ago, and not every replica set is known to have heard of it; build it again`
  return new StoreError('unavailable', message)
}

function checkKept({ indexes: known }: Definitions, definition: NumberedIndex): void {
  const { name, number } = definition
  const isKept = known.some((one) => {
    return (
      one.definition.name === name && one.definition.number === number && one.state !== 'dropping'
    )
  })
  if (!isKept) throw droppedMeanwhile(name)
}

export interface CellIndexesParts {
  readonly service: CellService
  readonly tables: Tables
  readonly groups: Groups
  readonly clock: Clock
  readonly random: Random
  readonly intents: IntentSource
  readonly timeoutMs: number
  /** How long cached definitions may be used, in milliseconds. */
  readonly trustMs: number
}

/** Another shard may have rows, of which the index would lack the entries. */
function coversAll(datastore: string, shards: readonly number[] | undefined): boolean {
  return shards === undefined || new Set(shards).size === shardCountOf(datastore)
}

export class CellIndexAdmin {
  readonly datastore: string
  readonly #parts: CellIndexesParts

  constructor(parts: CellIndexesParts, datastore: string) {
    this.#parts = parts
    this.datastore = datastore
  }

  async list(options: WriteOptions = {}): Promise<readonly KnownIndex[]> {
    checkDatastore(this.datastore)
    checkOptions('cells.indexes.list', options, writeRules)
    return readIndexes(this.#parts.tables, this.datastore, options)
  }

  /** Declares an index, as YAML of it reads; `build` makes it one that can be asked. */
  async apply(given: unknown, options: WriteOptions = {}): Promise<'new' | 'same'> {
    checkOptions('cells.indexes.apply', options, writeRules)
    const checked = checkDefinition(given)
    if (!checked.ok) {
      const [problem] = checked.problems
      throw new StoreError('invalid', problem?.message ?? 'this defines no index')
    }
    const { definition } = checked
    checkDatastore(this.datastore)
    if (definition.datastore !== this.datastore) throw refuseOther(this.datastore, definition)
    const kind = await applyIndex(this.#parts.tables, definition, this.#parts.clock, options)
    await this.#spread(options)
    return kind
  }

  /**
   * Fills the index from the cells that are there; nothing is done when that was done before. The index is
   * ready when one call has looked at all shards: a call for some of them fills those, and no more.
   */
  async build(
    name: string,
    options: CellBuildOptions = {},
  ): Promise<{ shards: number; rows: number }> {
    checkUpkeep('cells.indexes.build', name, options, cellBuildRules)
    return whileAtWork(options, (told) => this.#makeReady(name, told))
  }

  async #makeReady(
    name: string,
    options: CellBuildOptions,
  ): Promise<{ shards: number; rows: number }> {
    // Nothing is waited for before all replica sets have heard of it.
    await this.#spread(options)
    const { definition, declaredAt, state } = await this.#named(name, options)
    if (state === 'ready') return { shards: 0, rows: 0 }
    if (state === 'declared') throw declaredMeanwhile(name)
    const { tables } = this.#parts
    const parts = this.#build(definition, options)
    if (state === 'known') await waitForGrace(parts, declaredAt, options.graceMs ?? schemaGraceMs)
    await markIndexBuilding(tables, definition)
    await this.#spread(options)
    const { filled, rows } = await buildCellIndex(parts)
    const { faults } = await compareCellIndex({ ...parts, shards: filled })
    const place = { name, flags: `--datastore ${this.datastore}` }
    if (faults.length > 0) throw notRight(place, faults)
    if (coversAll(this.datastore, options.shards)) {
      await markIndexBuilt(tables, definition)
      await this.#spread(options)
    }
    return { shards: filled.length, rows }
  }

  /** Makes what each row has in the index anew; it goes on being asked. */
  async rebuild(
    name: string,
    options: CellBuildOptions = {},
  ): Promise<{ shards: number; rows: number }> {
    checkUpkeep('cells.indexes.rebuild', name, options, cellBuildRules)
    return whileAtWork(options, (told) => this.#makeAnew(name, told))
  }

  async #makeAnew(
    name: string,
    options: CellBuildOptions,
  ): Promise<{ shards: number; rows: number }> {
    const { definition, state } = await this.#named(name, options)
    const isReady = state === 'ready'
    const shards = isReady ? await this.#listed(options) : options.shards
    const parts = this.#build(definition, { ...options, ...(shards && { shards }) })
    const { filled, rows } = await (isReady ? rebuildCellIndex(parts) : buildCellIndex(parts))
    return { shards: filled.length, rows }
  }

  /** Compares what each row has in the index with its cells. */
  async check(name: string, options: CellBuildOptions = {}): Promise<CellIndexReport> {
    checkUpkeep('cells.indexes.check', name, options, cellBuildRules)
    return whileAtWork(options, async (told) => {
      const { definition } = await this.#named(name, told)
      const shards = await this.#listed(told)
      return compareCellIndex(this.#build(definition, { ...told, shards }))
    })
  }

  /** The shards that are given, or all with a commit: of the others a current read finds neither cells nor entries. */
  async #listed({ shards, signal }: CellBuildOptions): Promise<readonly number[]> {
    if (shards !== undefined) return shards
    const { groups, timeoutMs } = this.#parts
    return listShards(groups, this.datastore, timeoutMs, { ...(signal && { signal }) })
  }

  /**
   * Ends an index and clears its entries off, when no writer keeps it any more. One that was interrupted is
   * gone on with by another call; rejects with `not-found` when there is none of the name.
   */
  async drop(name: string, options: BuildOptions = {}): Promise<void> {
    checkUpkeep('cells.indexes.drop', name, options, buildRules)
    const { graceMs, signal } = options
    const tell = telling(options.onProgress)
    const { datastore } = this
    let asked: DropIndex = { kind: 'drop-index', datastore, name }
    if (graceMs !== undefined) asked = { ...asked, graceMs: Math.ceil(graceMs) }
    for (;;) {
      const answer = await this.#ask(asked, options).catch((error: unknown) => {
        // The answer to the last step was lost, or another caller took that step.
        const isGone = error instanceof StoreError && error.code === 'not-found'
        if (isGone && asked.number !== undefined) return undefined
        throw error
      })
      if (answer?.kind !== 'drop-index' || answer.phase === 'dropped') return
      const { phase, done, total, number } = answer
      tell({ phase, done, total })
      checkSignal(signal)
      asked = { ...asked, number }
      if (phase === 'waiting') await pause(this.#parts, upkeepBounds.waitStepMs)
    }
  }

  async #named(name: string, { signal }: BuildOptions): Promise<KnownIndex> {
    const known = indexNamed(
      await this.list(signal === undefined ? {} : { signal }),
      this.datastore,
      name,
    )
    if (known.state === 'dropping') {
      throw notAsked({ name, flags: `--datastore ${this.datastore}` }, known.state)
    }
    if (known.isDamaged) throw damagedIndex(known.definition)
    return known
  }

  async #spread(options: WriteOptions): Promise<void> {
    await this.#ask({ kind: 'spread-indexes', datastore: this.datastore }, options)
  }

  #ask(
    operation: SpreadIndexes | DropIndex,
    { timeoutMs = this.#parts.timeoutMs, signal }: WriteOptions,
  ): Promise<Answer> {
    return signalled(signal, async () => {
      const { answer } = await this.#parts.service.execute(operation, { timeoutMs, signal })
      if (answer.kind === 'problem') throw toStoreError(answer.problem)
      if (answer.kind !== operation.kind) throw toStoreError(notAnAnswer)
      return answer
    })
  }

  #build(
    definition: NumberedIndex,
    {
      onProgress,
      shards = allShardsOf(definition.datastore),
      rowsAtOnce,
      signal,
    }: CellBuildOptions,
  ): Parameters<typeof buildCellIndex>[0] {
    const { tables, groups, clock, random, intents, trustMs, timeoutMs } = this.#parts
    const kept = new KeptIndexes({ tables, clock, trustMs })
    const tell = telling(onProgress)
    return {
      tables,
      port: groups,
      clock,
      random,
      intents,
      timeoutMs,
      definition,
      shards,
      rowsAtOnce: checkedPage(rowsAtOnce),
      signal,
      onProgress: (progress) => {
        checkSignal(signal)
        tell(progress)
      },
      checkKept: () => {
        checkSignal(signal)
        const known = kept.of(definition.datastore)
        if (known instanceof Promise) return known.then((all) => checkKept(all, definition))
        return checkKept(known, definition)
      },
    }
  }
}
