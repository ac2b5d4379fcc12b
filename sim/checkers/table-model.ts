/**
 * The meaning of tables, worked out a second time on plain maps of whole rows, without anything of the code
 * under test: no keys in bytes, no entries, no read sets. Index queries are answered from the rows.
 */
import { offerSeconds, type ShopVersion } from '../workloads/table-schema.ts'
import {
  heldResult,
  isRead,
  type Bounds,
  type Named,
  type TableRead,
  type TableStep,
  type TableWrite,
} from '../workloads/table-step.ts'

/** Rows by table and key; never changed once it is made. */
export type TableState = ReadonlyMap<string, TableRow>

export interface TableRow {
  readonly table: string
  readonly row: Named
  /** Of a row that expires: the timestamp of the commit that wrote it last. */
  readonly at?: number
}

interface Part {
  readonly name: string
  readonly isDescending?: true
  /** An entry for each distinct element. */
  readonly isList?: true
}

interface Index {
  readonly table: string
  readonly parts: readonly Part[]
  readonly storing: readonly string[]
  readonly isUnique?: true
}

/** Keys inside a store, in their order. */
const keys: Readonly<Record<string, readonly Part[]>> = {
  Store: [],
  Shelf: [{ name: 'shelf' }],
  Item: [{ name: 'shelf' }, { name: 'item' }],
  Visit: [{ name: 'visit' }],
  Mark: [{ name: 'mark' }],
  Offer: [{ name: 'offer' }],
  Review: [{ name: 'review', isDescending: true }],
}

const indexes: Readonly<Record<string, Index>> = {
  ItemsByTag: { table: 'Item', parts: [{ name: 'tag', isList: true }], storing: [] },
  ItemsByPrice: {
    table: 'Item',
    parts: [{ name: 'price', isDescending: true }],
    storing: ['note'],
  },
  ShelvesByLabel: { table: 'Shelf', parts: [{ name: 'label' }], storing: [], isUnique: true },
  OffersByWho: { table: 'Offer', parts: [{ name: 'who' }], storing: [] },
  VisitsByWho: { table: 'Visit', parts: [{ name: 'who' }], storing: [] },
  ReviewsByText: { table: 'Review', parts: [{ name: 'text' }], storing: [] },
  ItemsByNote: { table: 'Item', parts: [{ name: 'note' }], storing: ['price', 'origin'] },
}

/** The local index that comes when there are rows. */
export const laterLocal = 'ItemsByNote'

/** Tables and properties that programs of the first version do not know. */
const secondTables: readonly string[] = ['Review']
const secondProperties: readonly string[] = ['origin']

/** Holds are beside the rows, and no read shows them. */
const holdTable = 'hold'

/** A step on a copy of the rows: the expected answer, and the numbers that it drew. */
export interface ModelStep {
  readonly result: unknown
  readonly state: TableState
  readonly numbers: readonly { readonly table: string; readonly number: number }[]
}

/** The moments of a transaction: that of its view, and that of its commit. */
export interface Moments {
  readonly asOf: number
  readonly at: number
}

/** TTL-1: the rows that a read at this timestamp is to show. */
function seenAt(state: TableState, asOf: number): TableState {
  const gone = [...state].filter(([, row]) => hasExpired(row, asOf))
  if (gone.length === 0) return state
  const seen = new Map(state)
  for (const [name] of gone) seen.delete(name)
  return seen
}

function hasExpired({ at }: TableRow, asOf: number): boolean {
  return at !== undefined && at + offerSeconds * 1e6 <= asOf
}

/** TTL-2: the rows without those that were removed, and whether each of these had expired by then. */
export function modelRemoval(
  before: TableState,
  offers: readonly string[],
  at: number,
): { readonly state: TableState; readonly hadExpired: boolean } {
  const state = new Map(before)
  let hadExpired = true
  for (const offer of offers) {
    const name = formatName('Offer', { offer })
    const row = before.get(name)
    if (row !== undefined && !hasExpired(row, at)) hadExpired = false
    state.delete(name)
  }
  return { state, hadExpired }
}

/** By a program that goes by `version`, and declares that or an earlier one. */
export function modelStep(
  before: TableState,
  step: TableStep,
  version: ShopVersion,
  declared: ShopVersion = version,
  { asOf, at }: Moments = { asOf: 0, at: 0 },
): ModelStep {
  const made = stepOn(seenAt(before, asOf), step, version, declared)
  if (isRead(step) || step.kind === 'count') return made
  const state = new Map(made.state)
  for (const [name, row] of made.state) {
    if (row.table === 'Offer' && row.at === undefined) state.set(name, { ...row, at })
  }
  return { ...made, state }
}

function stepOn(
  state: TableState,
  step: TableStep,
  version: ShopVersion,
  declared: ShopVersion,
): ModelStep {
  switch (step.kind) {
    case 'get':
    case 'scan':
    case 'tree':
    case 'index':
      return { result: modelRead(state, step, version, 0), state, numbers: [] }
    case 'insert':
      return insert(state, step)
    case 'put':
    case 'update':
    case 'delete':
    case 'purge':
    case 'count':
      return { ...write(state, step, declared), numbers: [] }
  }
}

export function modelRead(
  rows: TableState,
  step: TableRead,
  version: ShopVersion,
  asOf: number,
): unknown {
  const state = seenAt(rows, asOf)
  switch (step.kind) {
    case 'get':
      return step.keys.map((key) => shown(state.get(formatName(step.table, key))?.row, version))
    case 'scan': {
      const rows = listRows(state, step.table).filter((row) => fits(row, step.query))
      const sorted = sortedBy(rows, keys[step.table] ?? [], (row) => row)
      return slicePage(sorted, step).map((row) => shown(row, version))
    }
    case 'tree':
      return [...state.values()]
        .filter(({ table }) => isKnown(table, version))
        .map(({ table, row }) => ({ table, row: shown(row, version) }))
    case 'index': {
      const entries = listEntries(state, step.index).filter(({ entry }) => fits(entry, step.query))
      const index = indexes[step.index]
      const order = [...(index?.parts ?? []), ...(keys[step.table] ?? [])]
      const sorted = sortedBy(entries, order, ({ entry }) => entry)
      const page = slicePage(sorted, step)
      const rows = step.isWithRows ? page.map(({ row }) => shown(row, version)) : []
      return { items: page.map(({ entry }) => entry), rows }
    }
  }
}

/** Rows that a program of this version is shown. */
export function knownCount(state: TableState, version: ShopVersion): number {
  const rows = [...state.values()]
  return rows.filter(({ table }) => isKnown(table, version)).length
}

function isKnown(table: string, version: ShopVersion): boolean {
  return table !== holdTable && (version === 2 || !secondTables.includes(table))
}

function insert(state: TableState, step: TableWrite & { readonly kind: 'insert' }): ModelStep {
  const { table } = step
  if (table === 'Visit') {
    const number = listRows(state, table).length + 1
    const next = stored(state, table, { ...step.row, visit: number })
    return { result: 'done', state: next, numbers: [{ table, number }] }
  }
  const isThere = state.has(formatName(table, step.row)) || isTaken(state, table, step.row)
  if (isThere) return { result: 'already-exists', state, numbers: [] }
  return { result: 'done', state: stored(state, table, step.row), numbers: [] }
}

function write(
  state: TableState,
  step: Exclude<TableWrite, { readonly kind: 'insert' }>,
  declared: ShopVersion,
): Omit<ModelStep, 'numbers'> {
  switch (step.kind) {
    case 'put': {
      if (isTaken(state, step.table, step.row)) return { result: 'already-exists', state }
      const before = declared === 1 ? state.get(formatName(step.table, step.row))?.row : undefined
      // A program keeps what it does not know.
      const kept = secondProperties.filter((name) => before?.[name] !== undefined)
      const unknown = Object.fromEntries(kept.map((name) => [name, before?.[name]]))
      return { result: 'done', state: stored(state, step.table, { ...unknown, ...step.row }) }
    }
    case 'update': {
      const before = state.get(formatName(step.table, step.key))
      if (before === undefined) return { result: 'not-found', state }
      const merged = Object.entries({ ...before.row, ...step.patch })
      const row = Object.fromEntries(merged.filter(([, value]) => value !== null))
      if (isTaken(state, step.table, row)) return { result: 'already-exists', state }
      return { result: 'done', state: stored(state, step.table, row) }
    }
    case 'delete':
    case 'purge': {
      if (isHeldFrom(state, step)) return { result: heldResult, state }
      const next = new Map(state)
      next.delete(formatName(step.table, step.key))
      // A shelf takes its items along.
      for (const row of listBelow(state, step)) next.delete(formatName('Item', row))
      return { result: 'done', state: next }
    }
    case 'count': {
      const before = Number(state.get(formatName('Store', step.key))?.row['total'] ?? 0)
      return {
        result: before,
        state: stored(state, 'Store', { ...step.key, total: before + 1 }),
      }
    }
  }
}

/** The items of a shelf. */
function listBelow(
  state: TableState,
  { table, key }: { readonly table: string; readonly key: Named },
): readonly Named[] {
  if (table !== 'Shelf') return []
  return listRows(state, 'Item').filter((row) => row['shelf'] === key['shelf'])
}

/** HOLD-1: of the row's table, or of one of which rows would go with it. */
function isHeldFrom(
  state: TableState,
  step: { readonly table: string; readonly key: Named },
): boolean {
  const tables = listBelow(state, step).length > 0 ? [step.table, 'Item'] : [step.table]
  return tables.some((table) => isHeld(state, table))
}

export function isHeld(state: TableState, table: string): boolean {
  return state.has(`${holdTable} group`) || state.has(`${holdTable} ${table}`)
}

/** The tables that are held, and `group` where all are. */
export function listHolds(state: TableState): readonly string[] {
  const names = [...state].filter(([, { table }]) => table === holdTable).map(([name]) => name)
  return names.map((name) => name.slice(holdTable.length + 1))
}

/** A hold of a table, or of the group, is set or lifted. */
export function modelHold(before: TableState, of: string, isSet: boolean): TableState {
  const state = new Map(before)
  const name = `${holdTable} ${of}`
  if (isSet) state.set(name, { table: holdTable, row: {} })
  else state.delete(name)
  return state
}

function stored(state: TableState, table: string, row: Named): TableState {
  const whole = table === 'Item' && row['tag'] === undefined ? { ...row, tag: [] } : row
  return new Map(state).set(formatName(table, row), { table, row: whole })
}

/** Whether another row has the same unique values. */
function isTaken(state: TableState, table: string, row: Named): boolean {
  const unique = Object.values(indexes).filter((one) => one.table === table && one.isUnique)
  return unique.some(({ parts }) =>
    listRows(state, table).some(
      (other) =>
        formatName(table, other) !== formatName(table, row) &&
        parts.every(({ name }) => other[name] === row[name]),
    ),
  )
}

function listEntries(state: TableState, name: string): readonly { entry: Named; row: Named }[] {
  const index = indexes[name]
  if (index === undefined) return []
  const { table, parts, storing } = index
  const list = parts.find(({ isList }) => isList)?.name
  return listRows(state, table).flatMap((row) => {
    const values: unknown = list === undefined ? [undefined] : row[list]
    const distinct: readonly unknown[] = Array.isArray(values) ? [...new Set(values)] : []
    const names = ['store', ...(keys[table] ?? []).map((part) => part.name)]
    const own = [...names, ...parts.map((part) => part.name), ...storing]
    const common = own.filter((one) => row[one] !== undefined).map((one) => [one, row[one]])
    return distinct.map((value) => {
      const entry: Named = Object.fromEntries(common)
      return { row, entry: list === undefined ? entry : { ...entry, [list]: value } }
    })
  })
}

export function listRows(state: TableState, table: string): readonly Named[] {
  const rows = [...state.values()]
  return rows.filter((one) => one.table === table).map(({ row }) => row)
}

function formatName(table: string, key: Named): string {
  return `${table} ${JSON.stringify((keys[table] ?? []).map(({ name }) => key[name]))}`
}

function fits(row: Named, query: Named): boolean {
  return Object.entries(query).every(([name, asked]) =>
    isBounds(asked) ? isWithin(row[name], asked) : (row[name] ?? null) === asked,
  )
}

function isBounds(value: unknown): value is Bounds {
  // Null asks for rows without a value.
  return typeof value === 'object' && value !== null
}

function isWithin(value: unknown, { gte, lt }: Bounds): boolean {
  return (
    (gte === undefined || compare(value, gte) >= 0) && (lt === undefined || compare(value, lt) < 0)
  )
}

/** All texts are ASCII, so that the order of their letters is that of their bytes. Absent comes first. */
function compare(a: unknown, b: unknown): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b
  const isThere = Number(a !== undefined) - Number(b !== undefined)
  if (isThere !== 0) return isThere
  return String(a) < String(b) ? -1 : a === b ? 0 : 1
}

function sortedBy<Item>(
  items: readonly Item[],
  parts: readonly Part[],
  readValues: (item: Item) => Named,
): readonly Item[] {
  const order = (a: Item, b: Item): number => {
    for (const { name, isDescending } of parts) {
      const difference = compare(readValues(a)[name], readValues(b)[name])
      if (difference !== 0) return isDescending ? -difference : difference
    }
    return 0
  }
  return items.toSorted(order)
}

function slicePage<Item>(
  items: readonly Item[],
  { reverse, limit, isPaged }: { reverse: boolean; limit: number; isPaged: boolean },
): readonly Item[] {
  const asked = reverse ? items.toReversed() : items
  return isPaged ? asked : asked.slice(0, limit)
}

function shown(row: Named | undefined, version: ShopVersion): Named | undefined {
  if (row === undefined || version === 2) return row
  return Object.fromEntries(
    Object.entries(row).filter(([name]) => !secondProperties.includes(name)),
  )
}

/** The same text for the same rows: members in the order of their names, absent ones left out. */
export function describeValue(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(describeValue).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'none'
  const members = Object.entries(value).filter(([, one]) => one !== undefined)
  members.sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${members.map(([name, one]) => `${name}:${describeValue(one)}`).join(',')}}`
}

/** The result of a step as text; for a tree, in any order. */
export function resultText(step: TableStep, result: unknown): string {
  if (step.kind === 'tree' && Array.isArray(result))
    return result.map(describeValue).toSorted().join('\n')
  return describeValue(result)
}
