/**
 * The requests of this node's edge to its replica: submissions, reads, and waits for positions; and the snapshots that
 * make a group wait. The driver steps the groups.
 */
import type { GroupId } from '../base/ids.ts'
import type { Limits } from '../base/limits.ts'
import type { Clock } from '../ports/clock.ts'
import type { Trace } from '../ports/trace.ts'
import type { GroupEvent } from '../replication/group.ts'
import type { LogEnding } from '../peers/log-ending.ts'
import type { DataStore } from '../store/data-store.ts'
import type { Healing } from './healing.ts'
import { Installs } from './installs.ts'
import { Reads } from './reads.ts'
import type { Replica } from './replica.ts'
import { Requests } from './requests.ts'
import { Submissions } from './submissions.ts'

export interface EdgeParts {
  readonly clock: Clock
  readonly trace: Trace
  readonly limits: Limits
  readonly data: DataStore
  readonly replica: Replica
  readonly healing: Healing
  /** Whether the group may have come to this set from another one. */
  mayHaveCome(group: GroupId): boolean
  step(group: GroupId, event: GroupEvent): void
  /** Runs work whose failure ends the node. */
  guarded(work: () => void): void
  /** Stopped, or failed. */
  isOver(): boolean
  ending(): Pick<LogEnding, 'restoring' | 'freshness'>
  /** A submission was settled after this time, milliseconds. */
  onSettled(ms: number): void
}

export class Edge {
  readonly requests: Requests
  readonly submissions: Submissions
  readonly installs: Installs
  readonly reads: Reads

  constructor(parts: EdgeParts) {
    const { clock, trace, limits, data, replica, healing, step } = parts
    const { guarded, isOver, ending } = parts
    const requests = new Requests(clock, (group, read) =>
      step(group, { kind: 'cancel-read', read }),
    )
    this.requests = requests
    requests.onSettled = parts.onSettled
    this.submissions = new Submissions(requests, limits, { step, guarded })
    const installs = new Installs({
      ...{ trace, limits, data, replica, healing, step },
      onInstalled: (group, position) => requests.applied(group, position),
    })
    this.installs = installs
    this.reads = new Reads({
      ...{ clock, trace, limits, data, replica, requests, isOver },
      isRestored: () => ending().restoring.isOver,
      mayHaveCome: (group) => parts.mayHaveCome(group),
      isFresh: (read) => ending().freshness.isFresh(read),
      whenBack: (group) => installs.whenBack(group),
      isAside: (group) => healing.isAside(group),
      wake: (group) => step(group, { kind: 'wake' }),
      begin: (group, read) => step(group, { kind: 'read', read }),
    })
  }
}
