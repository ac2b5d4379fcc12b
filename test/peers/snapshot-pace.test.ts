/** How fast a node sends snapshots, and that it gives way to commits. */
import { expect, test } from 'vitest'
import { SnapshotPace } from '../../src/peers/snapshot-pace.ts'

const limits = { snapshotBytesPerSecond: 1_000, snapshotGroupsPerSecond: 10 }

/** A look after `count` commits that took `ms` each; gives the pace. */
function looks(pace: SnapshotPace, ms: number, hasSent: boolean, count = 100): number {
  if (hasSent) pace.take(0, 0, 0)
  for (let i = 0; i < count; i++) pace.onCommit(ms)
  pace.look()
  return pace.part
}

test('parts wait until those before are paid for, by their bytes and their groups', () => {
  const pace = new SnapshotPace(limits)
  expect(pace.take(0, 500, 0)).toBe(0)
  expect(pace.take(0, 250, 0)).toBe(500)
  // 0.2 s for two groups.
  expect(pace.take(100, 0, 2)).toBe(650)
  expect(pace.take(750, 0, 0)).toBe(200)
})

test('a pause saves nothing up: later parts wait as ever', () => {
  const pace = new SnapshotPace(limits)
  expect(pace.take(0, 100, 0)).toBe(0)
  expect(pace.take(60_000, 1_000, 0)).toBe(0)
  expect(pace.take(60_000, 1_000, 0)).toBe(1_000)
})

test('over a second as much is sent as the limits say', () => {
  const pace = new SnapshotPace(limits)
  let nowMs = 0
  let bytes = 0
  for (let i = 0; i < 10_000 && nowMs < 10_000; i++) {
    nowMs += pace.take(nowMs, 40, 0)
    bytes += 40
  }
  expect(bytes / 10).toBeGreaterThan(950)
  expect(bytes / 10).toBeLessThan(1_050)
})

test('the pace halves while commits take over one and a half times as long, down to a sixteenth', () => {
  const pace = new SnapshotPace(limits)
  expect(looks(pace, 10, false)).toBe(1)
  expect(looks(pace, 15, true)).toBe(1)
  expect([16, 16, 16, 16, 16, 16].map((ms) => looks(pace, ms, true))).toEqual([
    ...[1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 16, 1 / 16],
  ])
  // A sixteenth of 1,000 bytes a second.
  pace.take(100_000, 10, 0)
  expect(pace.take(100_000, 0, 0)).toBe(160)
})

test('the pace goes back up by a quarter a look once commits take as long as ever', () => {
  const pace = new SnapshotPace(limits)
  looks(pace, 10, false)
  expect([looks(pace, 100, true), looks(pace, 100, true)]).toEqual([1 / 2, 1 / 4])
  expect([looks(pace, 12, true), looks(pace, 12, true)]).toEqual([0.3125, 0.390625])
  for (let i = 0; i < 10; i++) looks(pace, 12, true)
  expect(pace.part).toBe(1)
})

test('the pace doubles where the node sends nothing, or too few clients commit', () => {
  const pace = new SnapshotPace(limits)
  looks(pace, 10, false)
  for (let i = 0; i < 4; i++) looks(pace, 100, true)
  expect(pace.part).toBe(1 / 16)
  expect(looks(pace, 100, true, 19)).toBe(1 / 8)
  expect(looks(pace, 10, false)).toBe(1 / 4)
  expect(looks(pace, 10, false, 0)).toBe(1 / 2)
})

test('a slow commit in two hundred is of no matter, and two are', () => {
  const withSlow = (slow: number): number => {
    const pace = new SnapshotPace(limits)
    looks(pace, 10, false, 200)
    pace.take(0, 0, 0)
    for (let i = 0; i < 200; i++) pace.onCommit(i < slow ? 500 : 10)
    pace.look()
    return pace.part
  }
  expect([withSlow(1), withSlow(2)]).toEqual([1, 1 / 2])
})

test('the usual time of commits follows the times of the last looks', () => {
  const pace = new SnapshotPace(limits)
  looks(pace, 10, false)
  // The machine is slower now, whatever is sent: after some looks 20 ms are usual.
  expect(looks(pace, 20, true)).toBe(1 / 2)
  for (let i = 0; i < 10; i++) looks(pace, 20, false)
  expect(looks(pace, 20, true)).toBe(1)
  expect(looks(pace, 40, true)).toBe(1 / 2)
})

test('a node that has sent snapshots ever since its start does not know what is usual, and keeps its pace', () => {
  const pace = new SnapshotPace(limits)
  expect([looks(pace, 10, true), looks(pace, 1_000, true)]).toEqual([1, 1])
})
