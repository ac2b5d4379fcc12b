/**
 * One cell by its name, read in one call. Where the replica need not ask another node, the row is looked up
 * and decoded without a handle, a turn or a promise. All other cases are left to `CellStore`.
 */
import { outcomeNow } from '../base/problem.ts'
import type { LocalReplica, ReadPoint, Row } from '../group/replica-port.ts'
import { datastoreProblem, nameProblem, type CellName, type StoredCell } from './cell.ts'
import { cellOfRow, cellRowKey } from './cell-table.ts'
import { isGone } from './living.ts'
import { findPosition, replicaLevel, type Answered, type GetCells } from './operation.ts'
import { shardGroup, shardOf } from './shard.ts'
import { stalenessProblem } from '../txn/staleness.ts'

/** Undefined: it has to be waited for, or is refused. */
export function getNow(
  replica: Pick<LocalReplica, 'rowsNow'>,
  { datastore, read: asked, items }: GetCells,
): Answered | undefined {
  const [item] = items
  if (items.length !== 1 || item?.refKey === undefined) return undefined
  if ((datastoreProblem(datastore) ?? nameProblem(item)) !== undefined) return undefined
  const shard = shardOf(datastore, item.rowKey)
  if (stalenessProblem(asked.maxStalenessMs) !== undefined) return undefined
  const atLeast = findPosition(asked.atLeast, shard) ?? 0
  const name = { rowKey: item.rowKey.toLowerCase(), column: item.column, refKey: item.refKey }
  const keys = [cellRowKey({ datastore, shard }, name)]
  const group = shardGroup(datastore, shard)
  const found = outcomeNow(() => {
    const read = replica.rowsNow(group, replicaLevel(asked), atLeast, keys)
    const [row] = read?.rows ?? []
    return read && { position: read.point.position, value: row && living(read.point, name, row) }
  })
  if (found.kind === 'problem') return { answer: { kind: 'get', items: [found] }, positions: [] }
  if (found.value === undefined) return undefined
  const { position, value } = found.value
  return { answer: { kind: 'get', items: [{ kind: 'ok', value }] }, positions: [[shard, position]] }
}

/** TTL-3: undefined where it has expired. */
function living(point: ReadPoint, name: CellName, row: Row): StoredCell | undefined {
  const { cell, ttl } = cellOfRow(name, row)
  const { createdAt } = cell
  return isGone({ createdAt, ttl }, point.timestamp) ? undefined : cell
}
