/**
 * The indexes over a datastore's cells: rows of a group of the datastore's own, with a copy on every
 * other replica set (`index-copies.ts`). Each node that writes cells looks at those of its set again
 * every `trustMs`, before it writes, so that within a known time after a set has them every write there
 * goes by them, as with indexes of tables (`../tables/schema-watch.ts`).
 */
import { StoreError } from '../base/errors.ts'
import { toStoreError, problem } from '../base/problem.ts'
import { unknownWord } from '../base/suggest.ts'
import type { Clock } from '../ports/clock.ts'
import { checkMove, droppedMeanwhile, type IndexState } from '../indexes/state.ts'
import { Trusted } from '../indexes/trusted.ts'
import type { Tables } from '../tables/tables.ts'
import type { GroupTransaction } from '../tables/types.ts'
import { indexesMax } from './limits.ts'
import {
  datastoreKey,
  putDefinitions,
  scanDefinitions,
  type DefinitionRow,
  type DefinitionRows,
  type TtlRow,
} from './definition-table.ts'
import {
  checkDefinition,
  definitionJson,
  storedName,
  type IndexDefinition,
  type NumberedIndex,
} from './index-definition.ts'

/** An index as the cluster has it. */
export interface KnownIndex {
  readonly definition: NumberedIndex
  /** When all sets were known to have what is said here; before that, when it was declared. Microseconds since 1970. */
  readonly declaredAt: number
  /** A dropping one is not kept any more, and its entries are being cleared. */
  readonly state: IndexState
  /** All sets have this definition and state; they may lack the progress of a build or a drop. */
  readonly isSpread: boolean
  /**
   * Its row in the registry cannot be read, so the definition has a name and no fields. Writers do not keep
   * such an index, queries are refused, and it can be dropped.
   */
  readonly isDamaged: boolean
  /** Shards below this number have no entries of it left. */
  readonly clearedTo: number
}

interface ReadOptions {
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
}

/** `copy`: the name under which a set has them; those of the datastore itself when it is absent. */
export async function readIndexes(
  tables: Tables,
  datastore: string,
  { copy = datastore, ...options }: ReadOptions & { readonly copy?: string } = {},
): Promise<readonly KnownIndex[]> {
  return (await readDefinitions(tables, datastore, { copy, ...options })).indexes
}

/** The rules of a datastore. */
export interface Definitions {
  readonly indexes: readonly KnownIndex[]
  /** Seconds that cells live, by column. */
  readonly ttls: ReadonlyMap<string, number>
}

export async function readDefinitions(
  tables: Tables,
  datastore: string,
  { copy = datastore, ...options }: ReadOptions & { readonly copy?: string } = {},
): Promise<Definitions> {
  const read = await tables.read(
    datastoreKey(copy),
    'current',
    (rows) => scanDefinitions(rows, copy),
    options,
  )
  const { rows, ttls } = read.value
  return {
    indexes: rows.map((row) => toKnownIndex(datastore, row)),
    ttls: new Map(ttls.map(({ column, ttl }) => [column, ttl])),
  }
}

/** One row that cannot be read is one damaged index, and stops nothing else of its datastore. */
function toKnownIndex(datastore: string, row: DefinitionRow): KnownIndex {
  const { index_name: name, number = 0 } = row
  const read = definitionIn(datastore, row)
  return {
    definition: { number, ...(read ?? { name, datastore, fields: [] }) },
    isDamaged: read === undefined,
    declaredAt: row.declared_at,
    state: readState(row),
    isSpread: row.is_known === true,
    clearedTo: row.cleared_to ?? 0,
  }
}

function readState(row: DefinitionRow): IndexState {
  if (row.is_dropping === true) return 'dropping'
  if (!row.is_building) return 'ready'
  if (row.is_known !== true) return 'declared'
  return row.is_filling === true ? 'building' : 'known'
}

/** Undefined: the row holds no definition, or that of another index. */
function definitionIn(
  datastore: string,
  { index_name: name, definition }: DefinitionRow,
): IndexDefinition | undefined {
  const checked = readDefinition(definition)
  if (checked?.name !== name || checked.datastore !== datastore) return undefined
  return checked
}

function readDefinition(stored: string): IndexDefinition | undefined {
  try {
    const value: unknown = JSON.parse(stored)
    const checked = checkDefinition(value)
    return checked.ok ? checked.definition : undefined
  } catch {
    return undefined
  }
}

export function damagedIndex({ datastore, name }: IndexDefinition): StoreError {
  const message = `index ${name} of datastore ${datastore}: its stored definition cannot be read, so the index takes part in nothing; take it out with trilithon index drop --datastore ${datastore} ${name}, and declare it anew`
  return new StoreError('corrupt', message)
}

/** The definitions that a change makes of the known ones; absent: none. */
export type Change<Value> = (
  known: DefinitionRows,
  version: number,
) => {
  readonly rows?: readonly DefinitionRow[]
  readonly ttls?: readonly TtlRow[]
  /** Other sets need not hear of it. */
  readonly isOwn?: true
  readonly value: Value
}

/** Of the datastore's own rows; other sets hear of it by `spreadDefinitions`. */
export async function changeDefinitions<Value>(
  tables: Tables,
  datastore: string,
  work: Change<Value>,
  options: ReadOptions = {},
): Promise<Value> {
  const run = async (tx: GroupTransaction): Promise<Value> => {
    const known = await scanDefinitions(tx, datastore)
    const version = known.version + 1
    const { rows, ttls, isOwn, value } = work(known, version)
    const changed = { rows: rows ?? known.rows, ttls: ttls ?? known.ttls }
    const next = isOwn ? known.version : version
    const isChanged = rows !== undefined || ttls !== undefined
    if (isChanged) await putDefinitions(tx, datastore, { version: next, ...changed })
    return value
  }
  return (await tables.transaction(datastoreKey(datastore), run, options)).value
}

/** Declares an index; a build fills it from the rows before a query may ask it. */
export async function applyIndex(
  tables: Tables,
  definition: IndexDefinition,
  clock: Clock,
  options: ReadOptions = {},
): Promise<'new' | 'same'> {
  const { datastore, name } = definition
  checkReadable(definition)
  const row = {
    datastore,
    index_name: name,
    definition: definitionJson(definition),
    declared_at: clock.wallMicros(),
    is_building: true,
  }
  const declare: Change<'new' | 'same'> = ({ rows }, version) => {
    const before = rows.find((one) => one.index_name === name)
    if (before?.is_dropping === true) throw beingDropped(datastore, name)
    if (before?.definition === row.definition) return { value: 'same' }
    if (before !== undefined) throw otherDefinition(name)
    if (rows.length >= indexesMax) throw tooMany(datastore)
    return { rows: [...rows, { ...row, number: version, version }], value: 'new' }
  }
  return changeDefinitions(tables, datastore, declare, options)
}

/** A definition that cannot be read again is not stored. */
function checkReadable(definition: IndexDefinition): void {
  if (readDefinition(definitionJson(definition)) !== undefined) return
  throw new StoreError('invalid', `index ${definition.name}: this defines no index`)
}

function beingDropped(datastore: string, name: string): StoreError {
  const message = `index ${name} is being dropped, and some of its entries are still there; trilithon index drop --datastore ${datastore} ${name} goes on with it, and then it can be declared anew`
  return new StoreError('already-exists', message)
}

function otherDefinition(name: string): StoreError {
  const message = `index ${name} is defined differently already, and its entries are stored so; drop it, or give this one another name`
  return new StoreError('already-exists', message)
}

function tooMany(datastore: string): StoreError {
  const message = `datastore ${datastore} has ${indexesMax} indexes, which is as many as there may be`
  return new StoreError('too-large', message, { limit: 'indexesMax', limitValue: indexesMax })
}

/** Every writer keeps it, and entries of earlier rows are being filled in. */
export function markIndexBuilding(tables: Tables, index: NumberedIndex): Promise<void> {
  return move(tables, index, 'building', { is_filling: true })
}

/** All rows are in it. */
export function markIndexBuilt(tables: Tables, index: NumberedIndex): Promise<void> {
  return move(tables, index, 'ready', { is_building: false })
}

/** Rejects with `not-found` when it was dropped meanwhile. */
function move(
  tables: Tables,
  index: NumberedIndex,
  to: IndexState,
  changed: Partial<DefinitionRow>,
): Promise<void> {
  return changeDefinitions(tables, index.datastore, ({ rows }, version) => {
    const row = rows.find((one) => isRowOf(one, index))
    if (row === undefined || row.is_dropping === true) throw droppedMeanwhile(index.name)
    const state = readState(row)
    // Another program was quicker.
    if (state === to || state === 'ready') return { value: undefined }
    checkMove(state, to)
    return { rows: replaced(rows, { ...row, ...changed, version }), value: undefined }
  })
}

/**
 * Once all sets know of it, writers do not keep it any more. `number`: that one, and no
 * later one of its name.
 */
export function markIndexDropping(
  tables: Tables,
  { datastore, name, number }: Pick<IndexDefinition, 'datastore' | 'name'> & { number?: number },
  options: ReadOptions,
): Promise<NumberedIndex> {
  const work: Change<NumberedIndex> = ({ rows }, version) => {
    const known = rows.map((row) => toKnownIndex(datastore, row))
    const { definition: value } = indexNamed(known, datastore, name)
    if (number !== undefined && number !== value.number) throw droppedMeanwhile(name)
    const row = rows.find((one) => isRowOf(one, value))
    if (row === undefined || row.is_dropping === true) return { value }
    const dropping = { ...row, is_dropping: true, is_known: false, version }
    return { rows: replaced(rows, dropping), value }
  }
  return changeDefinitions(tables, datastore, work, options)
}

/** How far an index that is being dropped was cleared; `all`: nothing is left, and it is forgotten. */
export function noteCleared(
  tables: Tables,
  index: NumberedIndex,
  to: number | 'all',
  options: ReadOptions,
): Promise<void> {
  const work: Change<void> = ({ rows }) => {
    const row = rows.find((one) => isRowOf(one, index))
    if (row?.is_dropping !== true) return { value: undefined }
    if (to === 'all') return { rows: rows.filter((one) => one !== row), value: undefined }
    const cleared = { ...row, cleared_to: Math.max(to, row.cleared_to ?? 0) }
    return { rows: replaced(rows, cleared), isOwn: true, value: undefined }
  }
  return changeDefinitions(tables, index.datastore, work, options)
}

function isRowOf(row: DefinitionRow, { name, number }: NumberedIndex): boolean {
  return row.index_name === name && (row.number ?? 0) === number
}

function replaced(rows: readonly DefinitionRow[], row: DefinitionRow): readonly DefinitionRow[] {
  return rows.map((one) => (one.index_name === row.index_name ? row : one))
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
  throw toStoreError(
    problem('not-found', `datastore ${datastore}: there is no index ${name}; ${what}`),
  )
}

export interface KeptIndexesParts {
  readonly tables: Tables
  readonly clock: Clock
  readonly trustMs: number
  /** The name under which they are looked at; that of the datastore when it is absent. */
  readonly nameCopy?: (datastore: string) => string
  /** Of each index that cannot be read, once for as long as this program runs. */
  readonly noteDamaged?: ((error: StoreError) => void) | undefined
}

/** The indexes, and the TTLs, of the datastores that a node, or a program, works on. */
export class KeptIndexes {
  readonly #parts: KeptIndexesParts
  readonly #kept = new Map<string, Trusted<Definitions>>()
  readonly #noted = new Set<string>()

  constructor(parts: KeptIndexesParts) {
    this.#parts = parts
  }

  /** Fresh enough to write by; at once, unless nothing is known of the datastore for long. */
  of(datastore: string): Definitions | Promise<Definitions> {
    return this.#trusted(datastore).fresh()
  }

  /** As they are now. */
  now(datastore: string): Promise<Definitions> {
    return this.#trusted(datastore).now()
  }

  /** This node changed them: the next use reads them anew. */
  forget(datastore: string): void {
    this.#kept.delete(datastore)
  }

  #trusted(datastore: string): Trusted<Definitions> {
    const known = this.#kept.get(datastore)
    if (known !== undefined) return known
    const { clock, trustMs } = this.#parts
    const trusted = new Trusted({ clock, trustMs, look: () => this.#look(datastore) })
    if (this.#kept.size >= datastoresKeptMax) this.#kept.clear()
    this.#kept.set(datastore, trusted)
    return trusted
  }

  async #look(datastore: string): Promise<Definitions> {
    const { tables, nameCopy } = this.#parts
    const copy = nameCopy?.(datastore) ?? datastore
    const found = await readDefinitions(tables, datastore, { copy })
    for (const { isDamaged, definition } of found.indexes) {
      if (isDamaged) this.#noteDamaged(definition)
    }
    return found
  }

  #noteDamaged(definition: NumberedIndex): void {
    const name = `${definition.datastore} ${storedName(definition)}`
    if (this.#noted.has(name) || this.#noted.size >= notedMax) return
    this.#noted.add(name)
    this.#parts.noteDamaged?.(damagedIndex(definition))
  }
}

const datastoresKeptMax = 1_000
const notedMax = 1_000
