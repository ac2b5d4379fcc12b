/**
 * Filling an index over cells from those that are there, and comparing it with them: row by row, each in
 * a transaction that has read the row's cells (`index-maintenance.ts`), as a write of a cell would. A build
 * is given all shards: a list of them lacks one whose first entry is accepted, and not acknowledged. Making
 * an index anew and comparing it go by the list.
 */
import { present } from '../base/assert.ts'
import { equalBytes } from '../base/bytes.ts'
import { mapConcurrently } from '../base/concurrency.ts'
import type { Page } from '../base/page.ts'
import type { Position } from '../base/ids.ts'
import type { Clock } from '../ports/clock.ts'
import type { Random } from '../ports/random.ts'
import { upkeepBounds } from '../indexes/limits.ts'
import { indexWorklist } from '../tables/index-worklist.ts'
import {
  indexFaultsMax,
  type ComparedRows,
  type IndexFault,
  type Progress,
} from '../indexes/report.ts'
import { untilRelayedFrom } from '../tables/index-wait.ts'
import type { ScanOptions } from '../tables/read-rows.ts'
import type { Tables } from '../tables/tables.ts'
import type { GroupReader } from '../tables/types.ts'
import { runTransaction } from '../txn/run.ts'
import type { IntentSource } from '../txn/session.ts'
import type { GroupPort } from '../group/group-port.ts'
import { indexShardsAtOnceMax } from './limits.ts'
import {
  hasCells,
  purgedAddedId,
  scanCells,
  scanColumn,
  findShardGroup,
  shardKey,
} from './cell-table.ts'
import { getIndexed, scanIndexed } from './indexed-table.ts'
import type { ShardName } from './cell.ts'
import { listColumns, storedName, type NumberedIndex } from './index-definition.ts'
import { buildIndexRows, putIndexRows } from './index-maintenance.ts'
import { agingOf, isGone } from './living.ts'

export interface CellBuildParts {
  readonly tables: Tables
  readonly port: GroupPort
  readonly clock: Clock
  readonly random: Random
  readonly intents: IntentSource
  readonly definition: NumberedIndex
  readonly signal?: AbortSignal | undefined
  /** Of each call, in milliseconds; the usual one when absent. `tables` has its own. */
  readonly timeoutMs?: number | undefined
  /** Throws when the index is dropped, as far as is known since a short time. */
  checkKept(): void | Promise<void>
  /** Cells or entries that one read gives; absent: as many as is usual. */
  readonly rowsAtOnce?: number | undefined
  /** All that the datastore may have. */
  readonly shards: readonly number[]
  onProgress(progress: Progress): void
}

export interface CellIndexReport extends ComparedRows {
  /** Those with rows. */
  readonly shards: number
}

/** Of a log: before it there is none. */
const firstPosition: Position = 1
/** Cells that a build reads at once to learn their rows; each shard under work holds one such page. */
const cellsAtOnce = 100

/** `filled`: shards with rows. */
export interface CellsFilled {
  readonly filled: readonly number[]
  readonly rows: number
}

/** Everybody who writes keeps the index already. */
export function buildCellIndex(parts: CellBuildParts): Promise<CellsFilled> {
  return fillShards(parts, async (of) => {
    const atLeast = await takePosition(parts, of)
    // Most shards: no entry was accepted before. A writer that shares the entry, or comes behind it, keeps the index.
    if (atLeast === firstPosition) return undefined
    // A writer behind that position keeps the index: the build need not see its writes.
    return { level: 'snapshot', atLeast }
  })
}

/**
 * Makes what rows have in an index that is ready anew. Every writer has kept the index since before it was ready, and the
 * build's position settled each earlier write. So an entry that is acknowledged later keeps the index too: the shards that a
 * list names are all, and current reads see the rows there.
 */
export function rebuildCellIndex(parts: CellBuildParts): Promise<CellsFilled> {
  return fillShards(parts, async () => ({ level: 'current' }))
}

/** `beginShard` gives how a shard is looked at; undefined: it has no rows. */
async function fillShards(
  parts: CellBuildParts,
  beginShard: (of: ShardName) => Promise<Look | undefined>,
): Promise<CellsFilled> {
  const { port, clock, timeoutMs } = parts
  let rows = 0
  const filled: ShardName[] = []
  const shards = { shards: parts.shards, atOnceMax: indexShardsAtOnceMax }
  await forEachShard(parts, 'filling', shards, async (of) => {
    const look = await beginShard(of)
    if (look === undefined) return
    let count = 0
    for await (const rowKey of listRows(parts, of, look)) {
      await fillRow(parts, of, rowKey)
      count += 1
    }
    rows += count
    if (count > 0) filled.push(of)
  })
  // The build asks a node of each shard until its relay is done.
  const rest = {
    shards: filled.map(({ shard }) => shard),
    atOnceMax: upkeepBounds.groupsAtOnceMax,
  }
  await forEachShard(parts, 'relaying', rest, async (of) => {
    await untilRelayedFrom(port, findShardGroup(of), indexWorklist, { clock, timeoutMs })
  })
  return { filled: rest.shards, rows }
}

/**
 * An entry that one node alone has accepted, of a writer that did not keep the index, might be applied after
 * the build has looked at the shard. It is applied before this position, or never.
 */
async function takePosition(
  { port, clock, random, intents, timeoutMs }: CellBuildParts,
  of: ShardName,
): Promise<Position> {
  const options = { clock, random, intents, timeoutMs }
  const { position } = await runTransaction(
    port,
    findShardGroup(of),
    options,
    async (transaction) => {
      transaction.takePosition()
    },
  )
  return position
}

async function fillRow(parts: CellBuildParts, of: ShardName, rowKey: string): Promise<void> {
  const { tables, definition } = parts
  await tables.transaction(shardKey(of), async (tx) => {
    // A purge writes the row that this reads. So the two conflict, and no entry comes back after a purge.
    await purgedAddedId(tx, of)
    await parts.checkKept()
    await putIndexRows(tx, of, rowKey, await buildIndexRows(tx, of, rowKey, [definition]))
  })
}

/** Compares each row's entries in the index, by its shard, with its cells. */
export async function compareCellIndex(parts: CellBuildParts): Promise<CellIndexReport> {
  const { tables, definition } = parts
  const faults: IndexFault[] = []
  let [shards, rows] = [0, 0]
  const all = { shards: parts.shards, atOnceMax: indexShardsAtOnceMax }
  await forEachShard(parts, 'comparing', all, async (of) => {
    let count = 0
    for await (const rowKey of listRows(parts, of, { level: 'current' })) {
      const kind = await findFault(tables, definition, of, rowKey)
      if (kind !== undefined && faults.length < indexFaultsMax)
        faults.push({ kind, index: definition.name, entry: rowKey })
      count += 1
    }
    rows += count
    if (count > 0) shards += 1
  })
  return { shards, rows, faults }
}

async function findFault(
  tables: Tables,
  definition: NumberedIndex,
  of: ShardName,
  rowKey: string,
): Promise<IndexFault['kind'] | undefined> {
  const { value } = await tables.read(shardKey(of), 'current', async (reads) => {
    const said = await buildIndexRows(reads, of, rowKey, [definition])
    const name = storedName(definition)
    if (await hasExpired(reads, of, rowKey, listColumns(definition))) return undefined
    const row = said.get(name)
    const there = await getIndexed(reads, of, name, rowKey)
    if (row === undefined) return there && 'left-over'
    if (there === undefined) return 'missing'
    const isSame = equalBytes(row.place, there.place) && equalBytes(row.fields, there.fields)
    return isSame ? undefined : 'other-content'
  })
  return value
}

/** Whether what the row has in the index is to be made anew, when a latest cell that has expired is removed. */
async function hasExpired(
  rows: GroupReader,
  of: ShardName,
  rowKey: string,
  columns: readonly string[],
): Promise<boolean> {
  const asOf = present(await rows.asOf(), 'TTL-3: cells are read at a moment')
  for (const column of columns) {
    const page = await scanColumn(rows, of, { rowKey, column }, { reverse: true, limit: 1 })
    if (page.items.some((row) => isGone(agingOf(row), asOf))) return true
  }
  return false
}

async function forEachShard(
  { definition, onProgress }: CellBuildParts,
  phase: Progress['phase'],
  { shards, atOnceMax }: { readonly shards: readonly number[]; readonly atOnceMax: number },
  work: (of: ShardName) => Promise<void>,
): Promise<void> {
  const { datastore } = definition
  let done = 0
  await mapConcurrently(shards, atOnceMax, async (shard) => {
    await work({ datastore, shard })
    done += 1
    onProgress({ phase, done, total: shards.length })
  })
}

/** How a shard is looked at. */
interface Look {
  readonly level: 'current' | 'snapshot'
  readonly atLeast?: Position
}

/** The rows of a shard that have cells, or something in the index, each once. */
async function* listRows(parts: CellBuildParts, of: ShardName, look: Look): AsyncGenerator<string> {
  yield* rowsWithCells(parts, of, look)
  yield* rowsLeft(parts, of, look)
}

/** Rows that have something in the index, and no cells. */
function rowsLeft(parts: CellBuildParts, of: ShardName, look: Look): AsyncGenerator<string> {
  return itemsOf(parts, of, look, async (rows, options) => {
    const page = await scanIndexed(rows, of, storedName(parts.definition), options)
    const items: string[] = []
    for (const { rowKey } of page.items) {
      if (!(await hasCells(rows, of, rowKey))) items.push(rowKey)
    }
    return { ...page, items }
  })
}

async function* rowsWithCells(
  parts: CellBuildParts,
  of: ShardName,
  look: Look,
): AsyncGenerator<string> {
  let last: string | undefined
  const cells = itemsOf(parts, of, look, (rows, options) => scanCells(rows, of, options))
  for await (const { cell } of cells) {
    if (cell.rowKey !== last) yield cell.rowKey
    last = cell.rowKey
  }
}

/** Of all pages that `read` gives, each at a moment of its own. */
async function* itemsOf<Item>(
  { tables, rowsAtOnce = cellsAtOnce }: CellBuildParts,
  of: ShardName,
  { level, ...call }: Look,
  read: (rows: GroupReader, options: ScanOptions) => Promise<Page<Item>>,
): AsyncGenerator<Item> {
  for (let cursor: string | undefined; ;) {
    const options = { limit: rowsAtOnce, ...(cursor !== undefined && { cursor }) }
    const work = (rows: GroupReader): Promise<Page<Item>> => read(rows, options)
    const { value: page } = await tables.read(shardKey(of), level, work, call)
    yield* page.items
    cursor = page.cursor
    if (cursor === undefined) return
  }
}
