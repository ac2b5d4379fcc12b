/** Takes all entries out of the groups of a global index that its schema has no more. */
import { prefixRange } from '../txn/key-range.ts'
import { runTransaction } from '../txn/run.ts'
import { upkeepBounds } from '../indexes/limits.ts'
import { entryWriter } from './entries.ts'
import { indexGroups } from './global-entries.ts'
import { inTurns } from './global-read.ts'
import type { GlobalUpkeep } from './index-parts.ts'
import { untilRelayed } from './index-backfill.ts'

/** Waits until what was on its way is there; then clears. `total`: groups of the table. */
export async function clearGlobal(parts: GlobalUpkeep, total: number): Promise<number> {
  const { index, onProgress, options } = parts
  await untilRelayed(parts, total)
  const range = prefixRange(entryWriter(index).bytes)
  const limit = parts.rowsAtOnce ?? upkeepBounds.changesAtOnceMax
  const groups = indexGroups(index)
  let [cleared, done] = [0, 0]
  await inTurns(groups, async (group) => {
    for (let isWhole = false; !isWhole;) {
      const { value } = await runTransaction(parts.port, group, options, async (transaction) => {
        const page = await transaction.scan({ ...range, limit })
        for (const { key } of page.rows) transaction.delete(key)
        return { count: page.rows.length, isWhole: page.isWhole }
      })
      cleared += value.count
      isWhole = value.isWhole
    }
    onProgress({ phase: 'clearing', done: ++done, total: groups.length })
  })
  return cleared
}
