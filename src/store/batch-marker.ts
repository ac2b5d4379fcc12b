/**
 * Markers of the applier's batches: batch n writes its number into slot n of a ring. LevelDB may
 * drop a damaged piece of its own log without a word; a batch lost like that leaves its slot with
 * an older number, or none.
 *
 * LevelDB's log is as long as its write buffer, 32 MiB at a node (`../node/daemon.ts`), and there may be
 * two, as long as a buffer is being written out. The ring outlasts both when batches are of 4 KiB and
 * more; one of a single small row has 300 bytes. A loss before that is seen all the same, since
 * these logs are read through before the store is opened, unless it looks like a torn end
 * (`../adapters/level-journal.ts`).
 */
import type { KeyValue, OrderedStore, Put } from '../ports/storage.ts'
import { corruptData, unknownFormat } from './damage.ts'
import { scanRows } from './read-store.ts'
import { allMarkers, decodeStored, encodeStored, markerKey } from './row-format.ts'

/** Batches whose loss is seen. */
export const batchMarkersMax = 16_384

const nothing = new Uint8Array()

export function encodeMarker(batch: number): Put {
  const key = markerKey(batch % batchMarkersMax)
  return { key, value: encodeStored(key, batch, nothing) }
}

/** The number of the last batch, 0 for a new store. Rejects with `corrupt` when one is missing. */
export async function lastBatch(store: OrderedStore): Promise<number> {
  const batches: number[] = []
  for await (const rows of scanRows(store, allMarkers, corruptData)) {
    batches.push(...rows.map(decodeBatch))
  }
  const last = batches.reduce((highest, batch) => Math.max(highest, batch), 0)
  const known = new Set(batches)
  for (let batch = last; batch > Math.max(0, last - batchMarkersMax); batch--) {
    if (!known.has(batch)) throw corruptData(`batch ${batch} of ${last} is missing`)
  }
  return last
}

function decodeBatch({ key, value }: KeyValue): number {
  const stored = decodeStored(key, value)
  if (stored === 'unknown format') throw unknownFormat('data store', value[4])
  if (stored === 'damaged') throw corruptData('a batch marker is damaged')
  return stored.stamp
}
