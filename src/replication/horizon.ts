/**
 * How far back a group's history is kept: the proposer moves the horizon, and the log tells everybody.
 *
 * The horizon is always the timestamp of a commit. A state lasts from its commit to the next one, and
 * a reader names it by its beginning: in a group without writes for a day that is a day ago,
 * though the state was the newest until just now. Of two commits that are further apart than history
 * is kept, the earlier one's state stays readable until the later one is as old.
 *
 * MVCC-1  A state is readable for `historyMs` after the commit that superseded it.
 */
import { assert } from '../base/assert.ts'
import type { Timestamp } from '../base/ids.ts'
import type { GroupLog } from './log.ts'

/** Commits that are remembered in the length of history: it may be kept longer by one part of them. */
const commitsPerHistory = 16
const microsPerMs = 1_000

/** The horizon for an entry of this timestamp. */
export function horizonFor(log: GroupLog, timestamp: Timestamp, historyMs: number): Timestamp {
  const { state, commits } = log
  const old = commits.findLast((commit) => commit <= timestamp - historyMs * microsPerMs)
  const horizon = Math.max(state.horizon, old ?? 0)
  assert(horizon <= timestamp, 'MVCC-1: an entry is behind its own horizon')
  return horizon
}

/** Remembers the commit just applied, when it is far enough from the last one remembered. */
export function rememberCommit(log: GroupLog, historyMs: number): void {
  const { commits } = log
  const { timestamp } = log.state
  const historyMicros = historyMs * microsPerMs
  if (timestamp - (commits.at(-1) ?? 0) < historyMicros / commitsPerHistory) return
  assert(timestamp > (commits.at(-1) ?? 0), 'MVCC-2: remembered commits do not rise')
  commits.push(timestamp)
  // Of those that are old enough already, the last one is all that is needed.
  while ((commits[1] ?? Number.POSITIVE_INFINITY) <= timestamp - historyMicros) commits.shift()
}
