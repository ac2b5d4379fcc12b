/** Answers as JSON. */
import { StoreError } from '../base/errors.ts'
import { unpackBody, type Json } from '../cells/body.ts'
import type { StoredCell, Written } from '../cells/cell.ts'
import type { CellPage, StoredLogPage } from '../cells/operation.ts'
import type { Outcome } from '../base/problem.ts'
import { isoOf } from './iso-time.ts'
import { problemDetails } from './problems.ts'

export interface CellJson {
  readonly rowKey: string
  readonly column: string
  readonly refKey: number
  readonly addedId: number
  readonly createdAt: string
  readonly body: Json
}

export function cellJson(cell: StoredCell): CellJson {
  const { rowKey, column, refKey, addedId, createdAt } = cell
  const body = unpackBody(cell.body)
  if (body === undefined) {
    throw new StoreError('corrupt', "the bytes of this cell's body are damaged at this node")
  }
  return { rowKey, column, refKey, addedId, createdAt: isoOf(createdAt), body }
}

export function writtenJson(written: Written): object {
  if (written.buffered) return { shard: written.shard, buffered: true }
  const { shard, addedId, createdAt, created } = written
  return { shard, addedId, createdAt: isoOf(createdAt), created }
}

export function pageJson(page: CellPage<string | number>): object {
  const cells = page.cells.map(cellJson)
  return page.next === undefined ? { cells } : { cells, next: page.next }
}

export function logPageJson(page: StoredLogPage): object {
  return { shard: page.shard, cells: page.cells.map(cellJson), next: page.next }
}

/** The items of a batch: what `render` makes of each, or `{problem}`. */
export function itemsJson<Value>(
  items: readonly Outcome<Value>[],
  render: (value: Value) => object,
): object {
  return {
    items: items.map((item) =>
      item.kind === 'ok' ? render(item.value) : { problem: problemDetails(item.problem) },
    ),
  }
}
