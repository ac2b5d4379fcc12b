/**
 * A node that lost its data store under a log which had given up flushes, and how its peers restore it (LOG-19). The rule
 * is that of `src/peers/restoring.ts` as it is. A position stands for the flush that names it.
 */
import type { NodeId, Position } from '../../src/base/ids.ts'
import { silentTrace } from '../../src/ports/trace.ts'
import { computeMajority } from '../../src/placement/placement.ts'
import { Restoring } from '../../src/peers/restoring.ts'
import type { LogDisk } from './log-disk.ts'

/** For each peer, how far its log was when it first answered; undefined: it has not. */
export type RestoringTargets = ReadonlyMap<NodeId, Position | undefined>

/** As a run begins in which the node is not restored. */
export function noTargets(names: readonly NodeId[], node: NodeId): RestoringTargets {
  return new Map(names.filter((one) => one !== node).map((peer) => [peer, undefined]))
}

/** Whether a data store that durably holds `applied` is restored. */
export function isRestoredBy(targets: RestoringTargets, applied: Position): boolean {
  const restoring = new Restoring({
    ...{ trace: silentTrace, isRestored: false },
    nodes: {
      otherVoters: [...targets.keys()],
      majority: computeMajority({ length: targets.size + 1 }),
    },
    ask: () => undefined,
    appliedThrough: () => applied,
    hasNamedAll: () => true,
    advanceMarks: () => undefined,
    drain: () => Promise.resolve(),
    keep: () => Promise.resolve(),
    onRestored: () => undefined,
    onFailed: () => undefined,
  })
  for (const [peer, through] of targets) {
    if (through !== undefined) restoring.onDigested(peer, through)
  }
  return restoring.hasTakenUp
}

/** The highest position that the flushes of a log name to a peer. `applied`: what its data store durably holds. */
export function namedBy(disk: LogDisk, applied: Position): Position {
  let highest = applied
  for (const [position, { accepted, chosen }] of disk) {
    if (accepted !== undefined || chosen !== undefined) highest = Math.max(highest, position)
  }
  return highest
}

/** A log that has given up the flushes of these positions. */
export function cutThrough(disk: LogDisk, position: Position): LogDisk {
  return new Map([...disk].filter(([at]) => at > position))
}
