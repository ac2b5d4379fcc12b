/**
 * The shards of a datastore that may have something. Of 4,096 most are never written to: work that looks at each of
 * them, by current reads, costs as much for one cell as for millions.
 *
 * The list names each shard with a commit that was acknowledged before, and maybe some that have nothing (LOG-8). A
 * caller that looks at these alone finds all that a current read of every shard would find.
 */
import { present } from '../base/assert.ts'
import type { GroupId } from '../base/ids.ts'
import { mapConcurrently, splitIntoChunks } from '../base/concurrency.ts'
import { listedGroupsMax } from '../base/limits.ts'
import { toStoreError } from '../base/problem.ts'
import { datastoreProblem } from '../cells/cell.ts'
import { shardOfGroup, shardsPrefix } from '../cells/cell-table.ts'
import type { SignalOptions } from '../txn/signalled.ts'
import type { Groups } from './groups.ts'
import type { LogSource } from './tail.ts'

/** In rising order. Rejects with `unavailable` without a majority of a replica set, and with `invalid` where the name is none. */
export async function listShards(
  groups: Pick<Groups, 'list'>,
  datastore: string,
  timeoutMs: number,
  options: SignalOptions = {},
): Promise<readonly number[]> {
  const wrong = datastoreProblem(datastore)
  if (wrong !== undefined) throw toStoreError(wrong)
  const prefix = shardsPrefix(datastore)
  const shards: number[] = []
  for (let after: GroupId | undefined; ;) {
    const names = await groups.list(prefix, after, listedGroupsMax, timeoutMs, options)
    for (const name of names) {
      const of = shardOfGroup(name)
      if (of?.datastore === datastore) shards.push(of.shard)
    }
    after = names.at(-1)
    if (after === undefined || names.length < listedGroupsMax) return shards
  }
}

/** Logs asked for in one call, and such calls at once. */
const logsPerCall = 256
const callsAtOnce = 4

/**
 * The shards that have a cell, which alone have something to purge: in rising order. A build of an index takes a position
 * in every shard, and from then on a list names them all. So a current read of the beginning of each log, hundreds in a
 * call, leaves out those without a cell. Rejects as `listShards` does.
 */
export async function listShardsWithCells(
  groups: Pick<Groups, 'list'>,
  cells: LogSource,
  timeoutMs: number,
  options: SignalOptions = {},
): Promise<readonly number[]> {
  const shards = await listShards(groups, cells.datastore, timeoutMs, options)
  const places = shards.map((shard) => ({ kind: 'after', shard, addedId: 0 }) as const)
  const pages = await mapConcurrently(splitIntoChunks(places, logsPerCall), callsAtOnce, (some) =>
    cells.shardLogs(some, { ...options, timeoutMs, limit: 1 }),
  )
  // A page without a cell may have passed over some that have expired, or have had no room for the first one. A node may have failed to
  // read the log of a shard. That shard may have cells, so it is listed: a purge of it tries the nodes again, and reports their error.
  return pages.flat().flatMap((page, at) => {
    const shard = present(shards[at], 'cells: a batch of logs has an answer for each shard')
    if (page.kind === 'problem') return [shard]
    const { items, cursor, asOf } = page.value
    const isEmpty = items.length === 0 && cursor === 0 && asOf !== undefined
    return isEmpty ? [] : [shard]
  })
}
