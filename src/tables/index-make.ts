/**
 * The long work on an index of tables, of any kind: making its entries, comparing them with the rows,
 * taking them out. `index-build.ts` puts these together to a life.
 */
import type { GroupId, Timestamp } from '../base/ids.ts'
import type { Misfits } from '../indexes/misfits.ts'
import { indexFaultsMax, type IndexFault } from '../indexes/report.ts'
import { indexGroups } from './global-entries.ts'
import { inTurns } from './global-read.ts'
import { compareGlobal, removeLeftOvers, type BuiltIndexReport } from './index-compare.ts'
import {
  countGroups,
  forEachGroup,
  isOfGlobal,
  type Pass,
  type UpkeepParts,
} from './index-parts.ts'
import { backfillIndex, untilRelayed, type Filled } from './index-backfill.ts'
import { clearInGroup, compareInGroup } from './local-upkeep.ts'

export interface Made extends Filled {
  /** Rows that it has not, since their values are too long for it. */
  readonly misfits: Misfits
}

/**
 * Puts all rows into an index, and takes out entries of no row. These come up within the grace: one program
 * puts the entry of a row, and another one, which does not know the index yet, removes the row.
 */
export async function makeIndex(parts: UpkeepParts, pass?: Pass): Promise<Made> {
  const filled = await backfillIndex(parts, pass)
  if (!isOfGlobal(parts)) return { ...filled, misfits: parts.misfits.all }
  // Not before: entries put within the grace may have been on their way until now.
  const removed = await removeLeftOvers(parts)
  if (removed > 0) await untilRelayed(parts, filled.groups)
  return { ...filled, removed, misfits: parts.misfits.all }
}

/** The report, and a moment as of which, and later, it holds. */
export interface ComparedIndex {
  readonly report: BuiltIndexReport
  readonly asOf: Timestamp
}

export async function compareIndex(parts: UpkeepParts): Promise<ComparedIndex> {
  if (isOfGlobal(parts)) {
    return { report: await compareGlobal(parts), asOf: parts.options.clock.wallMicros() }
  }
  const total = await countGroups(parts)
  const faults: IndexFault[] = []
  let [groups, rows, entries, asOf] = [0, 0, 0, 1]
  await forEachGroup(parts, async (group) => {
    const compared = await compareInGroup(parts, group)
    rows += compared.rows
    entries += compared.entries
    asOf = Math.max(asOf, compared.asOf)
    faults.push(...compared.faults.slice(0, indexFaultsMax - faults.length))
    parts.onProgress({ phase: 'comparing', done: ++groups, total })
  })
  return { report: { groups, rows, entries, faults, misfits: parts.misfits.all }, asOf }
}

/** Takes all entries out. No program keeps the index any more. */
export async function clearIndex(parts: UpkeepParts): Promise<number> {
  let total = await countGroups(parts)
  let [cleared, done] = [0, 0]
  const clear = async (group: GroupId): Promise<void> => {
    const some = await clearInGroup(parts, group)
    cleared += some
    parts.onProgress({ phase: 'clearing', done: ++done, total })
  }
  if (isOfGlobal(parts)) {
    // Changes that are on their way there would come after the clearing.
    await untilRelayed(parts, total)
    const groups = indexGroups(parts.index)
    total = groups.length
    await inTurns(groups, clear)
  } else await forEachGroup(parts, clear)
  return cleared
}
