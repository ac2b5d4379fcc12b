/**
 * The last wait of a build of an index: until the index has what is on the worklist of a group (SPEC.md
 * "Global indexes").
 */
import { asBuffer, latin1, readCount } from '../base/bytes.ts'
import { StoreError } from '../base/errors.ts'
import type { GroupId, Timestamp } from '../base/ids.ts'
import type { Clock } from '../ports/clock.ts'
import type { GroupPort } from '../group/group-port.ts'
import type { KeyRange } from '../group/outcome.ts'
import type { StoredRow } from '../txn/reads.ts'
import { runRead } from '../txn/run-read.ts'
import { pause } from '../time/moments.ts'
import { upkeepBounds } from '../indexes/limits.ts'
import { decodeEntryState } from './index-worklist.ts'

interface WaitOptions {
  readonly clock: Clock
  readonly timeoutMs?: number | undefined
}

/** Changes on a group's worklist that are waited for, by their keys: when they were seen first. */
type Waited = ReadonlyMap<string, Timestamp>

/**
 * Resolves when what is on the worklist now, of these changes, is in its index, or what took its place
 * there. A change may be replaced before it is relayed, by a later one of its entry, and the row be
 * missing in the index still: so its key is waited for, whenever what stands there was written.
 */
export async function untilRelayedFrom(
  port: GroupPort,
  group: GroupId,
  changes: KeyRange,
  options: WaitOptions,
): Promise<void> {
  const from = { kind: 'current' } as const
  const range = { ...changes, limit: upkeepBounds.changesAtOnceMax }
  let waited: Waited | undefined
  for (;;) {
    const { value: page } = await runRead(port, group, from, options, (reads) => reads.scan(range))
    // Of a page that is cut off it is not known what is gone.
    if (page.isWhole) waited = await stillWaited(port, page.rows, waited, options)
    if (waited?.size === 0) return
    await pause(options, upkeepBounds.lookMs)
  }
}

async function stillWaited(
  port: GroupPort,
  rows: readonly StoredRow[],
  before: Waited | undefined,
  options: WaitOptions,
): Promise<Waited> {
  const waited = new Map<string, Timestamp>()
  for (const row of rows) {
    const key = latin1(row.key)
    const since = before === undefined ? (row.timestamp ?? 0) : before.get(key)
    if (since !== undefined && !(await hasLater(port, row, since, options))) waited.set(key, since)
  }
  return waited
}

/** Of an entry that changes all the time: does the index have what came at `since`, or after it? */
async function hasLater(
  port: GroupPort,
  change: StoredRow,
  since: Timestamp,
  options: WaitOptions,
): Promise<boolean> {
  if (change.timestamp === since) return false
  const { target, key } = decodeEntryState(change)
  const from = { kind: 'current' } as const
  try {
    const { value: entry } = await runRead(port, target, from, options, (reads) => reads.get(key))
    return entry !== undefined && readCount(asBuffer(entry.value), 0) >= since
  } catch (error) {
    // The build tries a silent node again: it has done too much to end with this.
    if (error instanceof StoreError) return false
    throw error
  }
}
