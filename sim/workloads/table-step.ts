/**
 * Steps of sessions with tables, as plain data. A step is drawn once and carried out on a handle of
 * the real library. A model of its own judges it (`../checkers/table-model.ts`).
 *
 * The handles are used as by programs that know their types only when they run.
 */
import { StoreError } from '../../src/base/errors.ts'
import type { ShopVersion } from './table-schema.ts'

/** A row, a key, a patch or a query: by name, and the last value of a query maybe bounds. */
export type Named = Readonly<Record<string, unknown>>

export interface Bounds {
  readonly gte?: string | number
  readonly lt?: string | number
}

interface PageOptions {
  readonly reverse: boolean
  /** Rows of one page. */
  readonly limit: number
  /** Whether all pages are read, or the first one alone. */
  readonly isPaged: boolean
}

export type TableRead =
  | { readonly kind: 'get'; readonly table: string; readonly keys: readonly Named[] }
  | ({ readonly kind: 'scan'; readonly table: string; readonly query: Named } & PageOptions)
  /** The store's row and all below it. */
  | { readonly kind: 'tree'; readonly key: Named; readonly limit: number }
  | ({
      readonly kind: 'index'
      readonly table: string
      readonly index: string
      readonly query: Named
      /** Reads the row of each entry as well. */
      readonly isWithRows: boolean
    } & PageOptions)

export type TableWrite =
  | { readonly kind: 'insert'; readonly table: string; readonly row: Named }
  | { readonly kind: 'put'; readonly table: string; readonly row: Named }
  | {
      readonly kind: 'update'
      readonly table: string
      readonly key: Named
      readonly patch: Named
    }
  | { readonly kind: 'delete' | 'purge'; readonly table: string; readonly key: Named }
  /** One more in the store's row, which is made by the first one. */
  | { readonly kind: 'count'; readonly key: Named }

export type TableStep = TableRead | TableWrite

/** One run of a transaction's function, or a read: its steps and answers, one after another. */
export interface TableRun {
  readonly version: ShopVersion
  /** The version that the program declares; it may go by a later one. */
  readonly declared: ShopVersion
  readonly steps: readonly TableStep[]
  /** Of as many of the steps as were done. */
  readonly results: readonly unknown[]
  /** Of a transaction: the moment that it read, where a step asked for rows that expire. */
  readonly asOf?: number | undefined
}

interface PageOf {
  readonly items: readonly object[]
  readonly cursor?: string | undefined
}

interface TableName {
  readonly name: string
}

interface ScanOptions {
  readonly reverse?: boolean
  readonly limit?: number
  readonly cursor?: string
}

export interface PlainReader {
  asOf(): Promise<number | undefined>
  getMany(table: TableName, keys: readonly unknown[]): Promise<readonly (object | undefined)[]>
  scan(table: TableName, range: unknown, options: ScanOptions): Promise<PageOf>
  scanTree(table: TableName, key: unknown, options: ScanOptions): Promise<PageOf>
  index(
    table: TableName,
    name: string,
    query: unknown,
    options: ScanOptions,
  ): Promise<PageOf & { rows(): Promise<readonly object[]> }>
}

export interface PlainTransaction extends PlainReader {
  insert(table: TableName, row: unknown): Promise<object>
  put(table: TableName, row: unknown): Promise<void>
  update(table: TableName, key: unknown, patch: unknown): Promise<void>
  delete(table: TableName, key: unknown): Promise<void>
  purge(table: TableName, key: unknown): Promise<void>
}

export function isRead(step: TableStep): step is TableRead {
  return ['get', 'scan', 'tree', 'index'].includes(step.kind)
}

/** The moment of the transaction's view, where that says which rows are there. */
export async function readMoment(
  tx: PlainReader,
  steps: readonly TableStep[],
): Promise<number | undefined> {
  return steps.some(isOfMoment) ? tx.asOf() : undefined
}

function isOfMoment(step: TableStep): boolean {
  return step.kind === 'tree' || ('table' in step && step.table === 'Offer')
}

export async function performRead(rows: PlainReader, step: TableRead): Promise<unknown> {
  switch (step.kind) {
    case 'get':
      return rows.getMany({ name: step.table }, step.keys)
    case 'scan':
      return readPages(step, (options) => rows.scan({ name: step.table }, step.query, options))
    case 'tree': {
      const { key, limit } = step
      const whole = { reverse: false, limit, isPaged: true }
      return readPages(whole, (options) => rows.scanTree({ name: 'Store' }, key, options))
    }
    case 'index': {
      const found: object[] = []
      const items = await readPages(step, async (options) => {
        const page = await rows.index({ name: step.table }, step.index, step.query, options)
        if (step.isWithRows) found.push(...(await page.rows()))
        return page
      })
      return { items, rows: found }
    }
  }
}

async function readPages(
  { reverse, limit, isPaged }: PageOptions,
  read: (options: ScanOptions) => Promise<PageOf>,
): Promise<readonly object[]> {
  const items: object[] = []
  for (let cursor: string | undefined; ;) {
    const page = await read({ reverse, limit, ...(cursor !== undefined && { cursor }) })
    items.push(...page.items)
    cursor = page.cursor
    if (cursor === undefined || !isPaged) return items
  }
}

/** Of a deletion or a purge, which a hold forbids. */
export const heldResult = 'held'

/** A refusal that the rows explain is a result; any other error ends the run of the function. */
export async function performStep(tx: PlainTransaction, step: TableStep): Promise<unknown> {
  if (isRead(step)) return performRead(tx, step)
  try {
    return await performWrite(tx, step)
  } catch (error) {
    const code = error instanceof StoreError ? error.code : undefined
    if (code === 'already-exists' || code === 'not-found') return code
    if (code === 'invalid' && String(error).includes(' is held (')) return heldResult
    throw error
  }
}

async function performWrite(tx: PlainTransaction, step: TableWrite): Promise<unknown> {
  switch (step.kind) {
    case 'insert':
      await tx.insert({ name: step.table }, step.row)
      return 'done'
    case 'put':
      await tx.put({ name: step.table }, step.row)
      return 'done'
    case 'update':
      await tx.update({ name: step.table }, step.key, step.patch)
      return 'done'
    case 'delete':
      await tx.delete({ name: step.table }, step.key)
      return 'done'
    case 'purge':
      await tx.purge({ name: step.table }, step.key)
      return 'done'
    case 'count': {
      const [row] = await tx.getMany({ name: 'Store' }, [step.key])
      const before = row !== undefined && 'total' in row ? Number(row.total) : 0
      await tx.put({ name: 'Store' }, { ...step.key, total: before + 1 })
      return before
    }
  }
}
