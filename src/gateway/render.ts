/** Answers as JSON. */
import { StoreError } from '../base/errors.ts'
import { unpackBody, type Json } from '../cells/body.ts'
import type { StoredCell, Written } from '../cells/cell.ts'
import type { CellPage, StoredLogPage } from '../cells/operation.ts'
import type { Outcome } from '../base/problem.ts'
import type { Pace } from '../ports/pace.ts'
import { formatIso } from '../base/datetime.ts'
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
  return { rowKey, column, refKey, addedId, createdAt: formatIso(createdAt), body }
}

export function writtenJson(written: Written): object {
  if (written.buffered) return { shard: written.shard, buffered: true }
  const { shard, addedId, createdAt, created } = written
  return { shard, addedId, createdAt: formatIso(createdAt), created }
}

/** The work of unpacking and writing a body, by its packed bytes, in units of `ports/slices.ts`. */
const renderedBytesPerWork = 1024

/** A JSON list of what `render` makes of each item, in steps: an answer of 4 MiB takes long to write. */
export async function listText<Item>(
  pace: Pace | undefined,
  items: readonly Item[],
  {
    sizeInBytes,
    renderText,
  }: {
    readonly sizeInBytes: (item: Item) => number
    readonly renderText: (item: Item) => string | Promise<string>
  },
): Promise<string> {
  const texts: string[] = []
  for (const item of items) {
    const turn = pace?.spend(1 + sizeInBytes(item) / renderedBytesPerWork)
    if (turn !== undefined) await turn
    const text = renderText(item)
    texts.push(typeof text === 'string' ? text : await text)
  }
  return `[${texts.join(',')}]`
}

/** The items of a page. */
async function cellsText(pace: Pace | undefined, cells: readonly StoredCell[]): Promise<string> {
  const sizeInBytes = ({ body }: StoredCell): number => body.length
  const renderText = (cell: StoredCell): string => JSON.stringify(cellJson(cell))
  return `"items":${await listText(pace, cells, { sizeInBytes, renderText })}`
}

export async function pageText(
  pace: Pace | undefined,
  { cells, next }: CellPage<string | number>,
): Promise<string> {
  const end = next === undefined ? '' : `,"cursor":${JSON.stringify(next)}`
  return `{${await cellsText(pace, cells)}${end}}`
}

export async function logPageText(
  pace: Pace | undefined,
  { shard, cells, next }: StoredLogPage,
): Promise<string> {
  return `{"shard":${shard},${await cellsText(pace, cells)},"cursor":${next}}`
}

/** The items of a batch: what `renderText` makes of each, or `{problem}`. */
export async function itemsText<Value>(
  pace: Pace | undefined,
  items: readonly Outcome<Value>[],
  {
    sizeInBytes = () => 0,
    renderText,
  }: {
    readonly sizeInBytes?: (value: Value) => number
    readonly renderText: (value: Value) => string | Promise<string>
  },
): Promise<string> {
  const list = await listText(pace, items, {
    sizeInBytes: (item) => (item.kind === 'ok' ? sizeInBytes(item.value) : 0),
    renderText: (item) =>
      item.kind === 'ok'
        ? renderText(item.value)
        : JSON.stringify({ problem: problemDetails(item.problem) }),
  })
  return `{"items":${list}}`
}
