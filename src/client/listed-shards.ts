/**
 * The shards of a datastore that may have something. Of 4,096 most are never written to: work that looks at each of
 * them, by current reads, costs as much for one cell as for millions.
 *
 * The list names each shard with a commit that was acknowledged before, and maybe some that have nothing (LOG-8). A
 * caller that looks at these alone finds all that a current read of every shard would find.
 */
import type { GroupId } from '../base/ids.ts'
import { listedGroupsMax } from '../base/limits.ts'
import { toStoreError } from '../base/problem.ts'
import { datastoreProblem } from '../cells/cell.ts'
import { shardOfGroup, shardsPrefix } from '../cells/cell-table.ts'
import type { SignalOptions } from '../txn/signalled.ts'
import type { Groups } from './groups.ts'

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
