/**
 * Filling an index over cells from those that are there, and comparing it with them: row by row, each in
 * a transaction that has read the row's cells (`index-keep.ts`), as a write of a cell would.
 */
import type { GroupId } from '../base/ids.ts'
import { equalBytes } from '../base/bytes.ts'
import { listedGroupsMax } from '../base/limits.ts'
import type { Clock } from '../ports/clock.ts'
import { schemaGraceMs, upkeepBounds } from '../tables/bounds.ts'
import { indexAgenda } from '../tables/index-agenda.ts'
import type { Progress } from '../tables/index-upkeep.ts'
import type { Tables } from '../tables/open.ts'
import { runRead } from '../txn/run-read.ts'
import type { GroupPort } from '../txn/group-port.ts'
import { pause } from '../txn/time.ts'
import {
  getIndexed,
  hasCells,
  purgedAddedId,
  scanCells,
  scanIndexed,
  shardKey,
  shardOfGroup,
  shardsPrefix,
} from './cell-table.ts'
import type { ShardName } from './cell.ts'
import { storedName, type NumberedIndex } from './index-definition.ts'
import { indexRowsOf, putIndexRows } from './index-keep.ts'

export interface CellBuildParts {
  readonly tables: Tables
  readonly port: GroupPort
  readonly clock: Clock
  readonly definition: NumberedIndex
  /** Throws when the index is dropped, as far as is known since a short time. */
  checkKept(): void | Promise<void>
  list(prefix: GroupId, after: GroupId | undefined, limit: number): Promise<readonly GroupId[]>
  onProgress(progress: Progress): void
}

export interface CellIndexReport {
  readonly shards: number
  readonly rows: number
  /** Row keys, with what is wrong; at most `faultsMax`. */
  readonly faults: readonly {
    readonly rowKey: string
    readonly kind: 'missing' | 'left-over' | 'other-content'
  }[]
}

const faultsMax = 1_000
/** Cells looked at together for the rows that they are of. */
const cellsAtOnce = 500

/** `declaredAt`: waits until everybody who writes keeps the index. */
export async function buildCellIndex(
  parts: CellBuildParts,
  declaredAt: number | undefined,
  graceMs: number = schemaGraceMs,
): Promise<{ readonly shards: number; readonly rows: number }> {
  if (declaredAt !== undefined) await waitUntil(parts, declaredAt + graceMs * 1000)
  let [shards, rows, filledAt] = [0, 0, 0]
  const total = await countShards(parts)
  await forEachShard(parts, async (of) => {
    for await (const rowKey of rowsOf(parts, of)) {
      const { tables, definition } = parts
      const { timestamp } = await tables.transaction(shardKey(of), async (tx) => {
        // Who clears entries off writes what is read here, so it is not overtaken.
        await purgedAddedId(tx, of)
        await parts.checkKept()
        await putIndexRows(tx, of, rowKey, await indexRowsOf(tx, of, rowKey, [definition]))
      })
      filledAt = Math.max(filledAt, timestamp ?? 0)
      rows += 1
    }
    shards += 1
    parts.onProgress({ phase: 'filling', done: shards, total })
  })
  let relayed = 0
  await forEachShard(parts, async (_, group) => {
    while (await hasChanges(parts, group, filledAt)) await pause(parts, upkeepBounds.lookMs)
    relayed += 1
    parts.onProgress({ phase: 'relaying', done: relayed, total })
  })
  return { shards, rows }
}

/** What each row has in the index by its shard, against its cells. */
export async function compareCellIndex(parts: CellBuildParts): Promise<CellIndexReport> {
  const { tables, definition } = parts
  const faults: CellIndexReport['faults'][number][] = []
  let [shards, rows] = [0, 0]
  const total = await countShards(parts)
  await forEachShard(parts, async (of) => {
    for await (const rowKey of rowsOf(parts, of)) {
      const { value: fault } = await tables.read(shardKey(of), 'current', async (reads) => {
        const said = await indexRowsOf(reads, of, rowKey, [definition])
        const name = storedName(definition)
        const row = said.get(name)
        const there = await getIndexed(reads, of, name, rowKey)
        if (row === undefined) return there && 'left-over'
        if (there === undefined) return 'missing'
        const isSame = equalBytes(row.place, there.place) && equalBytes(row.fields, there.fields)
        return isSame ? undefined : 'other-content'
      })
      if (fault !== undefined && faults.length < faultsMax) faults.push({ rowKey, kind: fault })
      rows += 1
    }
    shards += 1
    parts.onProgress({ phase: 'comparing', done: shards, total })
  })
  return { shards, rows, faults }
}

async function waitUntil(parts: CellBuildParts, until: number): Promise<void> {
  const { clock, onProgress } = parts
  const startedAt = clock.wallMicros()
  const total = Math.ceil((until - startedAt) / 1_000_000)
  for (let now = startedAt; now < until; now = clock.wallMicros()) {
    onProgress({ phase: 'waiting', done: Math.floor((now - startedAt) / 1_000_000), total })
    await pause(parts, Math.min(upkeepBounds.waitStepMs, Math.ceil((until - now) / 1000)))
  }
}

async function forEachShard(
  { definition, list }: CellBuildParts,
  work: (of: ShardName, group: GroupId) => Promise<void>,
): Promise<void> {
  const prefix = shardsPrefix(definition.datastore)
  for (let after: GroupId | undefined; ;) {
    const names = await list(prefix, after, listedGroupsMax)
    for (let at = 0; at < names.length; at += upkeepBounds.groupsAtOnceMax) {
      await Promise.all(
        names.slice(at, at + upkeepBounds.groupsAtOnceMax).map((group) => {
          const of = shardOfGroup(group)
          return of?.datastore === definition.datastore ? work(of, group) : Promise.resolve()
        }),
      )
    }
    after = names.at(-1)
    if (after === undefined || names.length < listedGroupsMax) return
  }
}

async function countShards(parts: CellBuildParts): Promise<number> {
  let count = 0
  await forEachShard(parts, async () => void (count += 1))
  return count
}

/** The rows of a shard that have cells, or something in the index, each once. */
async function* rowsOf(parts: CellBuildParts, of: ShardName): AsyncGenerator<string> {
  yield* rowsWithCells(parts, of)
  yield* rowsLeft(parts, of)
}

/** Rows that have something in the index, and no cells. */
async function* rowsLeft(
  { tables, definition }: CellBuildParts,
  of: ShardName,
): AsyncGenerator<string> {
  for (let cursor: string | undefined; ;) {
    const options = { limit: cellsAtOnce, ...(cursor !== undefined && { cursor }) }
    const { value } = await tables.read(shardKey(of), 'current', async (rows) => {
      const page = await scanIndexed(rows, of, storedName(definition), options)
      const without: string[] = []
      for (const { rowKey } of page.items) {
        if (!(await hasCells(rows, of, rowKey))) without.push(rowKey)
      }
      return { without, next: page.cursor }
    })
    yield* value.without
    cursor = value.next
    if (cursor === undefined) return
  }
}

async function* rowsWithCells({ tables }: CellBuildParts, of: ShardName): AsyncGenerator<string> {
  let last: string | undefined
  for (let cursor: string | undefined; ;) {
    const options = { limit: cellsAtOnce, ...(cursor !== undefined && { cursor }) }
    const { value: page } = await tables.read(shardKey(of), 'current', (rows) =>
      scanCells(rows, of, options),
    )
    for (const { cell } of page.items) {
      if (cell.rowKey !== last) yield cell.rowKey
      last = cell.rowKey
    }
    cursor = page.cursor
    if (cursor === undefined) return
  }
}

async function hasChanges(
  { port, clock }: CellBuildParts,
  group: GroupId,
  at: number,
): Promise<boolean> {
  const from = { kind: 'current' } as const
  const range = { ...indexAgenda, limit: upkeepBounds.changesAtOnceMax }
  const { value } = await runRead(port, group, from, { clock }, (reads) => reads.scan(range))
  return value.rows.some(({ timestamp = 0 }) => timestamp <= at)
}
