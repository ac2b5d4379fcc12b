/** The horizon is a commit's timestamp: no state goes too soon, and none stays much too long. */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { groupOfBytes, nodeId, type Timestamp } from '../../src/base/ids.ts'
import { defaultLimits } from '../../src/base/limits.ts'
import { staticPlacement } from '../../src/placement/placement.ts'
import { horizonFor, rememberCommit } from '../../src/replication/horizon.ts'
import { restoreLog, type GroupLog } from '../../src/replication/log.ts'
import { emptyState, type GroupState } from '../../src/replication/state.ts'

const group = groupOfBytes(Buffer.from('g'))
const set = staticPlacement([nodeId('n1')]).replicasOf(group)

function logOf(state: GroupState = emptyState()): GroupLog {
  return restoreLog(group, set, state, new Map(), defaultLimits)
}

/** The horizon that the entry at `timestamp` moves to; applied. */
function commit(log: GroupLog, timestamp: Timestamp, historyMs: number): Timestamp {
  const horizon = horizonFor(log, timestamp, historyMs)
  log.state.position += 1
  log.state.timestamp = timestamp
  log.state.horizon = horizon
  rememberCommit(log, historyMs)
  return horizon
}

test('MVCC-1: a state stays readable for as long as history is kept after it was superseded', () => {
  const gaps = fc.array(fc.oneof(fc.integer({ min: 1, max: 90 }), fc.nat(9_000)), { maxLength: 80 })
  fc.assert(
    fc.property(gaps, fc.integer({ min: 1, max: 4 }), (micros, historyMs) => {
      const log = logOf()
      const commits: Timestamp[] = []
      let timestamp = 1_000_000
      for (const gap of micros) {
        timestamp += gap + 1
        commits.push(timestamp)
        const horizon = commit(log, timestamp, historyMs)
        const oldEnough = timestamp - historyMs * 1_000
        const open = commits.filter((_, i) => (commits[i + 1] ?? Infinity) > oldEnough)
        for (const state of open) expect(state).toBeGreaterThanOrEqual(horizon)
        const last = commits.findLast((one) => one <= oldEnough)
        if (last !== undefined) expect(horizon).toBeGreaterThan(last - (historyMs * 1_000) / 16)
        expect(log.commits.length).toBeLessThanOrEqual(18)
      }
    }),
    { seed: 1, numRuns: 300 },
  )
})

test('MVCC-1: the state of a group that slept is not gone with the first writes that wake it', () => {
  const day = 86_400_000_000
  const log = logOf({ ...emptyState(), position: 9, timestamp: day })
  expect(commit(log, 2 * day, 3_600_000)).toBe(day)
  expect(commit(log, 2 * day + 1, 3_600_000)).toBe(day)
  expect(commit(log, 2 * day + 3_600_000_000, 3_600_000)).toBe(2 * day)
})
