/**
 * Which part of a group's past may be read, and which may be forgotten (Megastore, 3.3). A version of a row
 * is seen by reads at t with start <= t < end; its end is the start of what superseded it.
 *
 * MVCC-1  A version goes only when no permitted and no open snapshot sees it.
 *
 * Left out: the callers and their times; those are `../replica/reads.ts` and `history-sweep.ts`.
 */
import type { Timestamp } from '../base/ids.ts'

/** Whether a version seen from `start` up to, but not at, `end` is what a read at `at` sees. */
export function isSeenAt(at: Timestamp, start: Timestamp, end: Timestamp): boolean {
  return start <= at && at < end
}

/** The oldest timestamp that a reader may read at; `oldestPin`: of the snapshots open at this node. */
export function oldestReadable(horizon: Timestamp, oldestPin: Timestamp | undefined): Timestamp {
  return oldestPin === undefined ? horizon : Math.min(horizon, oldestPin)
}

/** Whether no reader may see a version that ended at `end` any more. */
export function mayGo(end: Timestamp, oldest: Timestamp): boolean {
  return end <= oldest
}

/** History is swept once in a quarter of its length: it may stay longer by that. */
const sweepsPerHistory = 4
const microsPerMs = 1_000

/**
 * Whether a horizon that moved from `before` to `after` has made enough superseded for the group's
 * history to be looked through. Needs no memory of the last time: marks lie at fixed distances.
 */
export function isSweepDue(before: Timestamp, after: Timestamp, historyMs: number): boolean {
  const distance = Math.ceil((historyMs * microsPerMs) / sweepsPerHistory)
  return Math.floor(after / distance) > Math.floor(before / distance)
}
