/** Takes all entries out of the groups of a global index that its schema has no more. */
import { prefixRange } from '../txn/key-range.ts'
import { runTransaction } from '../txn/run.ts'
import { schemaGraceMs, upkeepBounds } from './limits.ts'
import { entryWriter } from './entries.ts'
import { indexGroups } from './global-entries.ts'
import { inTurns } from './global-read.ts'
import { waitForGrace } from './index-grace.ts'
import { countGroups, untilRelayed, type UpkeepParts } from './index-upkeep.ts'

/**
 * Waits until nobody keeps the index any more, `graceMs` from now, and until what was on its way is there; then clears.
 * Resolves with how many entries there were. Again, it goes on where it ended.
 */
export async function clearIndex(
  parts: UpkeepParts,
  graceMs: number = schemaGraceMs,
): Promise<number> {
  const { index, onProgress, options } = parts
  const { clock, signal } = options
  await waitForGrace({ clock, onProgress, signal }, clock.wallMicros(), graceMs)
  await untilRelayed(parts, await countGroups(parts))
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
