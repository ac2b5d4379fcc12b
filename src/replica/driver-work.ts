/** The work between a node and its peers, on the parts of the driver (`../peers/peer-work.ts`). */
import { assert } from '../base/assert.ts'
import { PeerWork, type PeerWorkParts } from '../peers/peer-work.ts'
import type { Peers } from '../peers/peers.ts'
import type { LogStore } from '../log/log-store.ts'
import type { Clock } from '../ports/clock.ts'
import type { DataStore } from '../store/data-store.ts'
import type { Comparing } from './comparing.ts'
import type { DriverPorts } from './driver-ports.ts'
import type { Edge } from './edge.ts'
import { snapshotPorts } from './installs.ts'
import type { Reading, Replica } from './replica.ts'

export interface DriverWork extends Pick<
  PeerWorkParts,
  'limits' | 'backpressure' | 'step' | 'onFailed'
> {
  readonly ports: DriverPorts
  readonly log: LogStore
  readonly data: DataStore
  peers(): Peers
  replica(): Replica
  edge(): Edge
  comparing(): Comparing
  /** Runs work whose failure ends the node. */
  guarded(work: () => void): void
}

export function makePeerWork(parts: DriverWork): PeerWork {
  const { ports, limits, log, data, backpressure, guarded, step, onFailed } = parts
  const { peers, replica, edge, comparing } = parts
  const { clock, trace } = ports
  return new PeerWork({
    ...{ limits, clock, trace, log, backpressure, stores: ports, step, onFailed },
    send: (to, message) => peers().send(to, message),
    hasRoomFor: (to) => peers().hasRoomFor(to),
    onLogDamaged: (what) => guarded(() => void log.renew(what, () => data.wantBatch())),
    snapshots: snapshotPorts(data, replica, () => edge().installs, comparing),
    applied: (group) => replica().appliedInMemory(group)?.position,
    isAwaited: (group) => replica().isAwaited(group),
    areOthersEnough: () => peers().areOthersEnough,
  })
}

/** This node's clocks, and its rights by the words of its peers. */
export function readNow(
  clock: Clock,
  { clocks, isAdmitted }: Peers,
  may: Pick<Reading, 'mayPropose' | 'isRestored'>,
): Reading {
  const wall = clock.wallMicros()
  const now = clock.monotonicMs()
  assert(wall > 0, 'CLOCK-1: the wall clock shows no time')
  return { wall, now, stamp: clocks.held({ wall, now }), isAdmitted, ...may }
}
