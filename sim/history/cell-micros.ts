/**
 * Calls on cells and their answers as micro-operations. A shard's log is a list, a column is a
 * register, and a row is its known columns.
 */
import { sha256 } from '../../src/base/bytes.ts'
import { pageItemsMax } from '../../src/base/limits.ts'
import { canonicalJson } from '../../src/cells/body.ts'
import type { Cell, CellName, NewCell } from '../../src/cells/cell.ts'
import type { Page } from '../../src/base/page.ts'
import type { LogPage, ReadOptions } from '../../src/client/options.ts'
import type { Level, MicroOperation } from './operation.ts'
import { shardOf } from '../workloads/datastore.ts'

/** A page with more bytes than this may have been cut for its size. */
const pageBytesSafe = 1024 * 1024
const hashChars = 8

type ColumnName = Omit<CellName, 'refKey'>

/** An answer's cell. */
type Shown = NewCell & { readonly addedId: number }

interface LogPlaceOptions {
  /** Absent: from a time on, or from the beginning. */
  readonly after?: number
  readonly limit?: number
  readonly waitMs?: number
}

interface VersionRange {
  readonly cursor?: number | undefined
  readonly reverse?: boolean
}

/**
 * The columns of each row that have been put, or seen: what an answer about a row might have shown.
 */
export class KnownColumns {
  readonly #byRow = new Map<string, Set<string>>()

  add({ rowKey, column }: ColumnName): void {
    const row = rowKey.toLowerCase()
    const known = this.#byRow.get(row)
    if (known === undefined) this.#byRow.set(row, new Set([column]))
    else known.add(column)
  }

  of(rowKey: string): Iterable<string> {
    return this.#byRow.get(rowKey.toLowerCase()) ?? []
  }
}

export interface Names {
  list(shard: number): string
  /** Of a put, with the added id once that is known. */
  writes(cell: NewCell, addedId?: number): readonly MicroOperation[]
  /** Of an answer that shows one cell. */
  found(cell: Shown): readonly MicroOperation[]
  got(name: CellName, cell: Cell | undefined): readonly MicroOperation[]
  latest(name: ColumnName, cell: Cell | undefined): readonly MicroOperation[]
  /** The columns of a row from one on. */
  row(rowKey: string, from: string | undefined, page: Page<Cell>): readonly MicroOperation[]
  versions(
    name: ColumnName,
    range: VersionRange,
    page: Page<Cell, number>,
  ): readonly MicroOperation[]
  page(page: LogPage, options: LogPlaceOptions): readonly MicroOperation[]
}

export function makeNames(datastore: string, columns: KnownColumns = new KnownColumns()): Names {
  const list = (shard: number): string => `${datastore}/shard ${shard}`
  const formatKey = ({ rowKey, column }: ColumnName): string =>
    `${datastore}/${rowKey.toLowerCase()}/${column}`
  /** Where a cell stands in the log of its shard. */
  const place = (cell: Shown): MicroOperation => {
    const key = list(shardOf(cell.rowKey))
    return {
      kind: 'read',
      key,
      elements: [formatElement(cell)],
      after: cell.addedId - 1,
      isEnd: false,
    }
  }
  const found: Names['found'] = (cell) => {
    const { refKey: version } = cell
    columns.add(cell)
    const value = hashBody(cell)
    return [{ kind: 'get', key: formatKey(cell), version, isPresent: true, value }, place(cell)]
  }
  const latest: Names['latest'] = (name, cell) => {
    const version = cell === undefined ? {} : { version: cell.refKey }
    return [{ kind: 'latest', key: formatKey(name), ...version }, ...(cell ? found(cell) : [])]
  }
  return {
    list,
    found,
    latest,
    writes(cell, addedId) {
      columns.add(cell)
      const index = addedId === undefined ? {} : { index: addedId - 1 }
      const key = list(shardOf(cell.rowKey))
      const { refKey: version } = cell
      return [
        { kind: 'append', key, element: formatElement(cell), ...index },
        { kind: 'write', key: formatKey(cell), version, value: hashBody(cell) },
      ]
    },
    got(name, cell) {
      if (cell !== undefined) return found(cell)
      const { refKey: version } = name
      return [{ kind: 'get', key: formatKey(name), version, isPresent: false }]
    },
    row(rowKey, from = '', { items: cells, cursor: next }) {
      const shown = cells.flatMap((cell) => latest(cell, cell))
      const seen = new Set(cells.map(({ column }) => column))
      const absent = [...columns.of(rowKey)].filter(
        (column) => !seen.has(column) && column >= from && (next === undefined || column < next),
      )
      return [...shown, ...absent.flatMap((column) => latest({ rowKey, column }, undefined))]
    },
    versions(name, range, { items: cells, cursor: next }) {
      for (const cell of cells) columns.add(cell)
      const versions = cells.map((cell) => ({ version: cell.refKey, value: hashBody(cell) }))
      const key = formatKey(name)
      return [{ kind: 'range', key, versions, ...toStretch(range, next) }, ...cells.map(place)]
    },
    page(page, options) {
      for (const cell of page.items) columns.add(cell)
      const view = stretchOfLog(page, options)
      return view === undefined ? [] : [{ kind: 'read', key: list(page.shard), ...view }]
    },
  }
}

export function pickLevel(options: ReadOptions | undefined): Level {
  return options?.read ?? 'current'
}

/** The stretch that a page covers: up to where the next one begins. */
function toStretch(
  { cursor: from, reverse = false }: VersionRange,
  next: number | undefined,
): { readonly from: number; readonly to?: number } {
  if (!reverse) return { from: from ?? 0, ...(next !== undefined && { to: next - 1 }) }
  return { from: next === undefined ? 0 : next + 1, ...(from !== undefined && { to: from }) }
}

function stretchOfLog(
  { items: cells, asOf }: LogPage,
  { after, limit = pageItemsMax, waitMs = 0 }: LogPlaceOptions,
): Pick<MicroOperation & { readonly kind: 'read' }, 'elements' | 'after' | 'isEnd'> | undefined {
  const [first] = cells
  const start = after ?? (first && first.addedId - 1)
  if (start === undefined) return undefined
  const bytes = cells.reduce((sum, { body }) => sum + JSON.stringify(body).length, 0)
  const isShort = waitMs === 0 && cells.length < limit && bytes < pageBytesSafe
  return { elements: cells.map(formatElement), after: start, isEnd: isShort || asOf !== undefined }
}

function formatElement(cell: NewCell): string {
  return `${cell.rowKey.toLowerCase()}/${cell.column}/${cell.refKey}#${hashBody(cell)}`
}

/** Names the body: equal ones are one element. */
function hashBody({ body }: Pick<NewCell, 'body'>): string {
  const text = canonicalJson(body)
  return sha256(text.kind === 'ok' ? text.text : '')
    .toString('hex')
    .slice(0, hashChars)
}
