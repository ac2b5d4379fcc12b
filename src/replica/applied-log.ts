/** The data store as a cursor over digests looks at it: batches for flushes (LOG-18). */
import { assert } from '../base/assert.ts'
import type { LogStore } from '../log/log-store.ts'
import type { OwnLog } from '../peers/peer-digest-cursor.ts'
import type { DataStore } from '../store/data-store.ts'

export function appliedOf(
  log: Pick<LogStore, 'settled'>,
  data: Pick<DataStore, 'lastBatch' | 'durableBatch'>,
): OwnLog {
  return {
    get lastFlush() {
      return data.lastBatch
    },
    get durableFlush() {
      assert(data.durableBatch <= data.lastBatch, 'LOG-18: a batch is durable before it is made')
      return data.durableBatch
    },
    // A position in the batch under way counts here. It is durable once that batch is.
    highest: (group) => log.settled(group),
  }
}
