/**
 * Rows of a file as cells. The same file loaded again makes no duplicates, since row keys follow from
 * the data set and puts are insert-if-absent.
 */
import type { Json } from '../cells/body.ts'
import {
  loadRows,
  type ItemResult,
  type LoadOptions,
  type LoadReport,
  type Sink,
} from './load-run.ts'
import { makeRowKey, type RowName } from './uuid-v5.ts'

/** One cell on its way; the sink knows the datastore, the column and the ref key. */
export interface LoadCell {
  readonly rowKey: string
  readonly body: Json
}

export type CellSink = Sink<LoadCell>

export interface CellLoadOptions extends Omit<LoadOptions, 'blank'> {
  readonly dataset: string
  /** Field that names the row; absent: its line number does. */
  readonly keyField: string | undefined
}

/** Rejects when the file cannot be opened or has no usable header; else reports, however it ended. */
export function loadCells(options: CellLoadOptions, sink: CellSink): Promise<LoadReport> {
  const { dataset, keyField } = options
  // A body has the text of each field, so a cell stays equal to the same one loaded again.
  const asText = { ...options, blank: '' } as const
  return loadRows(asText, (body, line) => buildCell(body, line, dataset, keyField), sink)
}

function buildCell(
  body: Json,
  line: number,
  dataset: string,
  keyField: string | undefined,
): ItemResult<LoadCell> {
  const name = rowName(body, line, keyField)
  if (!name.ok) return name
  return { ok: true, item: { rowKey: makeRowKey(dataset, name.name), body } }
}

type NameResult =
  { readonly ok: true; readonly name: RowName } | { readonly ok: false; readonly reason: string }

function rowName(body: Json, line: number, keyField: string | undefined): NameResult {
  if (keyField === undefined) return { ok: true, name: { kind: 'line', line } }
  const isObject = typeof body === 'object' && body !== null && !Array.isArray(body)
  const entry = isObject ? Object.entries(body).find(([name]) => name === keyField) : undefined
  if (entry === undefined) return { ok: false, reason: `has no field "${keyField}" for its key` }
  const value: unknown = entry[1]
  if (value === '') return { ok: false, reason: `its key "${keyField}" is blank` }
  if (typeof value !== 'string' && typeof value !== 'number') {
    return { ok: false, reason: `its key "${keyField}" is not a text or a number` }
  }
  return { ok: true, name: { kind: 'key', key: String(value) } }
}
