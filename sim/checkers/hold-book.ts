/**
 * The holds of row keys of cells, as the log of their shards has them, by the texts of their keys: HOLD-1 is judged
 * at the place of the log where a cell goes.
 */
import { latin1 } from '../../src/base/bytes.ts'
import { cellRowKey } from '../../src/cells/cell-table.ts'
import { datastore } from '../workloads/datastore.ts'
import type { RowWrite } from './log-model.ts'

/** Texts of a tuple end with 00 01, and each begins with its kind. */
// eslint-disable-next-line no-control-regex
const heldRow = /^\u00ff.hold\u0000\u0001.cells\u0000\u0001.([0-9a-f-]{36})\u0000\u0001$/

export class HoldBook {
  /** By group and what the keys of the row's cells begin with. */
  readonly #held = new Map<string, Set<string>>()

  /** False: a cell of a row that is held goes. */
  onWrite({ group, key, value }: Pick<RowWrite, 'group' | 'key' | 'value'>): boolean {
    const rowKey = heldRow.exec(key)?.[1]
    const held = this.#held.get(group) ?? new Set<string>()
    if (rowKey === undefined)
      return value !== undefined || ![...held].some((row) => key.startsWith(row))
    this.#held.set(group, held)
    if (value === undefined) held.delete(cellsOf(rowKey))
    else held.add(cellsOf(rowKey))
    return true
  }
}

/** The part that the keys of all cells of a row have in common. */
function cellsOf(rowKey: string): string {
  const [one, other] = ['A', 'B'].map((column) =>
    latin1(cellRowKey({ datastore, shard: 0 }, { rowKey, column, refKey: 0 })),
  )
  let length = 0
  while (one?.charAt(length) === other?.charAt(length)) length += 1
  return one?.slice(0, length) ?? ''
}
