/** Opens the journal of a node's log, of either kind. */
import type { JournalKind } from '../adapters/journal-kind.ts'
import { openLevelStore } from '../adapters/level-storage.ts'
import { openSegmentFolder } from '../adapters/segment-folder.ts'
import { systemRandom } from '../adapters/system-random.ts'
import { OrderedJournal } from '../journal/ordered-journal.ts'
import { openSegmentJournal } from '../journal/segment-journal.ts'
import type { Journal } from '../ports/journal.ts'

/** The log itself keeps what is read again, as flushes, and needs less of a cache than `data/`. */
const cacheBytes = 8 * 1024 * 1024

/** `openFilesMax`: tables of LevelDB, or segments, that may be open at once. */
export async function openLog(
  path: string,
  kind: JournalKind,
  openFilesMax: number,
): Promise<Journal> {
  if (kind === 'files') {
    const folder = await openSegmentFolder(path, { openFilesMax })
    return openSegmentJournal({ folder, random: systemRandom })
  }
  const store = await openLevelStore(path, {
    // The log says itself what it has lost, position by position.
    ...{ checkTables: false, tellsDamage: true },
    ...{ blockCacheBytes: cacheBytes, openTablesMax: openFilesMax },
  })
  return new OrderedJournal(store)
}
