/** The ports that the replica of a node runs on, and its options. */
import type { Versions } from '../base/cluster-version.ts'
import type { ClusterId, NodeId } from '../base/ids.ts'
import type { Limits } from '../base/limits.ts'
import type { Recovery } from '../log/quorum-loss.ts'
import type { Placement } from '../placement/placement.ts'
import type { Clock } from '../ports/clock.ts'
import type { Random } from '../ports/random.ts'
import type { Journal } from '../ports/journal.ts'
import type { OrderedStore } from '../ports/storage.ts'
import type { Trace } from '../ports/trace.ts'
import type { Transport } from '../ports/transport.ts'
import type { PeerFrame } from '../replication/message.ts'

export interface DriverPorts {
  readonly clock: Clock
  readonly random: Random
  readonly trace: Trace
  readonly log: Journal
  readonly data: OrderedStore
  readonly peers: Transport<PeerFrame>
}

export interface DriverOptions {
  readonly node: NodeId
  readonly cluster: ClusterId
  readonly placement: Placement
  readonly limits: Limits
  /**
   * The first incarnation of a store that takes the place of another one under this node's name, as the change that replaces it
   * says. Of use to an empty folder alone. Absent: an empty folder is the node's first.
   */
  readonly seat?: number
  /** An operator has begun this epoch, since a majority of the voters is lost for good. Of no use once the log has it. */
  readonly recovery?: Recovery
  /** The cluster versions that it supports; fewer than its build does: it acts as an earlier build. Absent: those of its build. */
  readonly supports?: Versions | undefined
}
