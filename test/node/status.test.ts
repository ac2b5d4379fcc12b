/** The status of a node in its own words. */
import { expect, test } from 'vitest'
import { nodeId } from '../../src/base/ids.ts'
import type { ReplicaStatus } from '../../src/replica/replica-status.ts'
import {
  readinessChecks,
  statusFigures,
  statusReport,
  type StatusParts,
} from '../../src/node/status.ts'

const node = nodeId('n1')
const noSnapshots = { sent: 0, sentBytes: 0, sending: 0, pace: 1, taken: 0, taking: 0, waiting: 0 }

const nothingCompared = {
  ...{ rounds: 0, groups: 0, differences: 0, unequal: 0, uncompared: 0, isUnderWay: false },
  ...{ aside: 0, mended: 0, open: 0, undecided: 0, isCounting: false, countedGroups: 4 },
}

/** A node of one, that is well but for its clock. */
function partsWith(clock: Partial<ReplicaStatus>): StatusParts {
  return {
    ...{ node, cluster: 'c', nodes: [{ id: node, url: 'http://127.0.0.1:1', set: 'main' }] },
    ...{ version: '0', url: 'http://127.0.0.1:1', state: 'running', startedAtMs: 0, nowMs: 0 },
    ...{ dataResets: 0, indexes: undefined },
    replica: {
      ...{ storeId: 's', incarnation: 1, durableFlush: 0, settledFlush: 0, groupsInMemory: 0 },
      ...{ requests: 0, overlayBytes: 0, lackingGroups: 0, isCatchingUp: false, openSnapshots: 0 },
      restoringFrom: [],
      snapshots: noSnapshots,
      erase: { isBehind: false, requests: [], oldestMs: 0, overdue: 0, done: 0 },
      compare: nothingCompared,
      ...{ leasedGroups: 0, grantedGroups: 0, remembersPeers: true, falseClaims: 0 },
      ...{ logDamages: 0, scrubLogDamages: 0, lostFlushes: 0, logDamage: [] },
      ...{ scrubbedBytes: 0, scrubbedPart: 0, scrubPasses: 0 },
      ...{ rowScrubPasses: 0, rowScrubbedGroups: 0, rowScrubWrong: 0 },
      ...{ logScrubbedBytes: 0, logScrubbedPart: 0, logScrubPasses: 0 },
      ...{ clockLeadMs: 0, clockLagMs: 0, isClockAhead: false, isClockBehind: false },
      ...{ areClocksAwaited: false, ...clock },
      ...{ firstFlush: 1, retainedBytes: 0, retainedMs: 0, droppedFlushes: 0, peersBehind: 0 },
      ...{ failure: undefined, peers: [] },
      members: { epoch: 1, standing: 'voting', blockedGroups: 0, members: [], canLose: 0 },
    },
  }
}

test('CLOCK-2: the status says that the clock is behind, by how much, and the remedy', () => {
  const parts = partsWith({ clockLagMs: 7_200_000, isClockBehind: true })
  const [message, ...others] = statusReport(parts).messages
  expect(message).toMatch(/wall clock is 7200.0 s behind most others': set it/)
  expect(others).toEqual([])
  const lag = statusFigures(parts).find(({ name }) => name === 'trilithon_replica_clock_lag_ms')
  expect(lag?.value).toBe(7_200_000)
})

test('CLOCK-1: the status says that the clock is ahead, by how much, and the remedy', () => {
  expect(statusReport(partsWith({ clockLeadMs: 120 })).messages).toEqual([])
  const [message, ...others] = statusReport(
    partsWith({ clockLeadMs: 3_600_000, isClockAhead: true }),
  ).messages
  expect(message).toMatch(/wall clock is 3600.0 s ahead of most others': set it/)
  expect(others).toEqual([])
  const figures = statusFigures(partsWith({ clockLeadMs: 120 }))
  const lead = figures.find(({ name }) => name === 'trilithon_replica_clock_lead_ms')
  expect(lead?.value).toBe(120)
})

test('DISK-16: the status reports a log damaged beneath the node, and the remedy', () => {
  const what = '000005.ldb at byte 9: a block does not match its checksum'
  const parts = partsWith({})
  const { replica } = parts
  const damaged = replica && { ...replica, logDamages: 1, scrubLogDamages: 1, logDamage: [what] }
  const report = statusReport({ ...parts, replica: damaged })
  expect(report.ready).toBe(true)
  expect(report.messages.join()).toMatch(
    /000005\.ldb at byte 9: .*keep data\/; check this disk, and see "A damaged log"/,
  )
  const figures = statusFigures({ ...parts, replica: damaged })
  const names = ['trilithon_replica_log_damages_total', 'trilithon_replica_scrub_log_damages_total']
  expect(figures.filter(({ name }) => names.includes(name)).map(({ value }) => value)).toEqual([
    1, 1,
  ])
})

test('LIVE-8: a status says that the node catches up, and how much it lacks', () => {
  expect(statusReport(partsWith({ lackingGroups: 3 })).messages).toEqual([])
  const parts = partsWith({ lackingGroups: 3_882, isCatchingUp: true })
  expect(statusReport(parts).messages).toEqual([
    'this node was away and catches up: it fetches what about 3882 groups have committed meanwhile',
  ])
})

test('a status says which snapshots of groups come and go, and how much the node slows them down', () => {
  const snapshots = { sent: 7, sentBytes: 4_096, sending: 2, pace: 0.25, taken: 5 }
  const parts = partsWith({ snapshots: { ...snapshots, taking: 3, waiting: 40 } })
  const report = statusReport(parts)
  expect(report.messages).toEqual([
    'this node takes 3 snapshots of groups from others, and 40 more groups wait for one',
    'this node sends 2 snapshots of groups, at 25 % of the pace while commits take long',
  ])
  expect(report.replica?.snapshots).toEqual({ ...snapshots, taking: 3, waiting: 40 })
  const figures = statusFigures(parts)
    .filter(({ name }) => name.includes('snapshots_') && !name.includes('replica'))
    .map(({ name, value }) => [name.replace('trilithon_snapshots_', ''), value])
  expect(Object.fromEntries(figures)).toEqual({
    ...{ sent_total: 7, sent_bytes_total: 4_096, sending: 2, pace: 0.25 },
    ...{ taken_total: 5, taking: 3, waiting: 40 },
  })
})

test('a status says nothing of snapshots while none is under way', () => {
  const snapshots = { ...noSnapshots, sent: 7, taken: 5, sentBytes: 10 }
  expect(statusReport(partsWith({ snapshots })).messages).toEqual([])
  const sending = { ...noSnapshots, sending: 1 }
  expect(statusReport(partsWith({ snapshots: sending })).messages).toEqual([
    'this node sends 1 snapshot of a group',
  ])
})

test('CLOCK-3: a node that waits for the clocks of others is not ready, and says why', () => {
  expect(statusReport(partsWith({})).ready).toBe(true)
  const waiting = partsWith({ areClocksAwaited: true })
  expect(statusReport(waiting).ready).toBe(false)
  expect(readinessChecks(waiting).filter(({ ok }) => !ok)).toEqual([
    { name: 'clocks', ok: false, text: "others' clocks are being asked for" },
  ])
})

test('a status and its figures say which buckets leave the replica set, and how many of their groups are left behind', () => {
  const moves = { left: 3, taken: 0, cleared: 2, passed: 1 }
  const buckets = { phase: 'leaving', to: 'west', buckets: 512, moved: 3, left: 4 } as const
  const parts = { ...partsWith({}), moves, buckets }
  expect(statusReport(parts).buckets).toEqual(buckets)
  const read = (of: StatusParts): unknown =>
    statusFigures(of)
      .filter(({ name }) => name.startsWith('trilithon_buckets_'))
      .map(({ name, value }) => [name, value])
  const [leaving, left] = ['trilithon_buckets_leaving', 'trilithon_buckets_groups_left']
  expect(read(parts)).toEqual([
    [leaving, 512],
    [left, 4],
  ])
  expect(read({ ...parts, buckets: undefined })).toEqual([
    [leaving, 0],
    [left, 0],
  ])
  expect(read(partsWith({})), 'with one replica set').toEqual([])
})
