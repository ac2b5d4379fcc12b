/**
 * The indexes over a datastore's cells: rows of a group of the datastore's own. Each node that writes
 * cells looks at them again every `schemaTrustMs`, before it writes, so that within a known time after
 * an index was declared every write keeps it, as with indexes of tables (`../tables/schema-watch.ts`).
 */
import { StoreError } from '../base/errors.ts'
import { errorOf, problem } from '../base/problem.ts'
import { unknownWord } from '../base/suggest.ts'
import type { Clock } from '../ports/clock.ts'
import type { Tables } from '../tables/open.ts'
import { indexesMax } from './bounds.ts'
import { datastoreKey, putDefinition, scanDefinitions } from './cell-table.ts'
import { checkDefinition, definitionJson, type IndexDefinition } from './index-definition.ts'

/** An index as the cluster has it. */
export interface KnownIndex {
  readonly definition: IndexDefinition
  /** Microseconds since 1970. */
  readonly declaredAt: number
  /** Not all rows are in it, and it is not asked. */
  readonly isBuilding: boolean
}

export async function readIndexes(
  tables: Tables,
  datastore: string,
  options: { readonly timeoutMs?: number } = {},
): Promise<readonly KnownIndex[]> {
  const key = datastoreKey(datastore)
  const read = await tables.read(
    key,
    'current',
    (rows) => scanDefinitions(rows, datastore),
    options,
  )
  return read.value.map(
    ({ definition: text, declared_at: declaredAt, is_building: isBuilding }) => {
      const value: unknown = JSON.parse(text)
      const checked = checkDefinition(value)
      if (checked.ok) return { definition: checked.definition, declaredAt, isBuilding }
      throw new StoreError('corrupt', `an index of datastore ${datastore} is stored as none`)
    },
  )
}

/** Declares an index; what it says is built from the rows before it is asked. */
export async function applyIndex(
  tables: Tables,
  definition: IndexDefinition,
  clock: Clock,
): Promise<'new' | 'same'> {
  const { datastore, name } = definition
  const row = {
    ...{ datastore, index_name: name, definition: definitionJson(definition) },
    ...{ declared_at: clock.wallMicros(), is_building: true },
  }
  const { value } = await tables.transaction(datastoreKey(datastore), async (tx) => {
    const known = await scanDefinitions(tx, datastore)
    const before = known.find((one) => one.index_name === name)
    if (before?.definition === row.definition) return 'same' as const
    if (before !== undefined) throw otherDefinition(name)
    if (known.length >= indexesMax) throw tooMany(datastore)
    await putDefinition(tx, row)
    return 'new' as const
  })
  return value
}

function otherDefinition(name: string): StoreError {
  const message = `index ${name} is defined differently already, and its entries are stored so; give this one another name`
  return new StoreError('already-exists', message)
}

function tooMany(datastore: string): StoreError {
  const message = `datastore ${datastore} has ${indexesMax} indexes, which is as many as there may be`
  return new StoreError('too-large', message, { limit: 'indexesMax', limitValue: indexesMax })
}

/** All rows are in it. */
export async function markIndexBuilt(
  tables: Tables,
  datastore: string,
  name: string,
): Promise<void> {
  await tables.transaction(datastoreKey(datastore), async (tx) => {
    const known = await scanDefinitions(tx, datastore)
    const row = known.find(({ index_name }) => index_name === name)
    if (row !== undefined) await putDefinition(tx, { ...row, is_building: false })
  })
}

/** Throws `not-found` with the nearest name that there is. */
export function indexNamed(
  indexes: readonly KnownIndex[],
  datastore: string,
  name: string,
): KnownIndex {
  const found = indexes.find(({ definition }) => definition.name === name)
  if (found !== undefined) return found
  const known = indexes.map(({ definition }) => definition.name)
  const what = known.length === 0 ? 'it has none' : unknownWord('index', name, known)
  throw errorOf(problem('not-found', `datastore ${datastore}: there is no index ${name}; ${what}`))
}

interface Kept {
  readonly indexes: readonly KnownIndex[]
  /** Of the monotonic clock, when they were asked for. */
  readonly askedAtMs: number
}

/** The indexes of the datastores that this node works on. */
export class KeptIndexes {
  readonly #tables: Tables
  readonly #clock: Clock
  readonly #trustMs: number
  readonly #kept = new Map<string, Kept>()
  readonly #looks = new Map<string, Promise<Kept>>()

  constructor(tables: Tables, clock: Clock, trustMs: number) {
    this.#tables = tables
    this.#clock = clock
    this.#trustMs = trustMs
  }

  /** Fresh enough to write by; at once, unless nothing is known of the datastore for long. */
  of(datastore: string): readonly KnownIndex[] | Promise<readonly KnownIndex[]> {
    const kept = this.#kept.get(datastore)
    const ageMs = kept === undefined ? Infinity : this.#clock.monotonicMs() - kept.askedAtMs
    if (kept !== undefined && ageMs < this.#trustMs / 2) return kept.indexes
    const look = this.#look(datastore)
    if (kept === undefined || ageMs >= this.#trustMs) return look.then(({ indexes }) => indexes)
    // Nobody waits for it yet, and whoever does later hears what went wrong.
    look.catch(() => undefined)
    return kept.indexes
  }

  /** As they are now. */
  async now(datastore: string): Promise<readonly KnownIndex[]> {
    return (await this.#look(datastore)).indexes
  }

  #look(datastore: string): Promise<Kept> {
    const under = this.#looks.get(datastore)
    if (under !== undefined) return under
    const look = this.#lookOnce(datastore).finally(() => this.#looks.delete(datastore))
    this.#looks.set(datastore, look)
    return look
  }

  async #lookOnce(datastore: string): Promise<Kept> {
    const askedAtMs = this.#clock.monotonicMs()
    const kept = { indexes: await readIndexes(this.#tables, datastore), askedAtMs }
    if (this.#kept.size >= datastoresKeptMax) this.#kept.clear()
    this.#kept.set(datastore, kept)
    return kept
  }
}

const datastoresKeptMax = 1_000
