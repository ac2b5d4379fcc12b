/** The part of a node that changes its replica set's voters, on the parts of the driver. */
import { assert } from '../base/assert.ts'
import { ownVersions } from '../base/cluster-version.ts'
import type { GroupId, NodeId } from '../base/ids.ts'
import type { GroupEvent } from '../replication/group.ts'
import { rowOfVersion } from '../members/change.ts'
import { Members, type MembersParts } from '../members/members.ts'
import { setGroupOf } from '../members/set-group.ts'
import { VersionGate } from '../members/version-gate.ts'
import type { Epochs } from '../members/epochs.ts'
import type { SetNodes } from '../placement/set-nodes.ts'
import type { PeerWork } from '../peers/peer-work.ts'
import type { DriverOptions, DriverPorts } from './driver-ports.ts'
import type { Edge } from './edge.ts'
import type { Healing } from './healing.ts'
import type { Replica } from './replica.ts'

export interface DriverParts
  extends
    Pick<DriverPorts, 'clock' | 'trace'>,
    Pick<DriverOptions, 'limits' | 'placement' | 'supports'>,
    Pick<
      MembersParts,
      'log' | 'data' | 'epochs' | 'leases' | 'peers' | 'readCurrent' | 'submit' | 'stamp'
    >,
    Pick<MembersParts, 'step' | 'onNodes' | 'isRestored' | 'onRetired' | 'onFailed'> {
  readonly node: NodeId
  readonly nodes: SetNodes
  readonly replica: Replica
  readonly edge: Edge
  readonly healing: Pick<Healing, 'isAside'>
  readonly work: PeerWork
}

export function makeMembers(parts: DriverParts): Members {
  const { node, placement, replica, edge, healing, work, log, step } = parts
  const set = placement.setOfNode(node)
  const group = setGroupOf(placement, set)
  assert(placement.setOf(group) === set, 'MOVE-6: a node follows the row of another set')
  return new Members({
    ...parts,
    gate: new VersionGate(parts.supports ?? ownVersions),
    group,
    first: placement.nodesOf(set),
    firstRow: rowOfVersion(placement.siteOf(set).version),
    firstSetCount: placement.firstSetCount,
    isOfName: (bucket) => placement.setOfBucket(bucket) === set,
    get: (key) => edge.reads.get(group, key)?.value,
    watch: (position, wake) => edge.requests.watch(group, position, wake),
    isAside: (one) => edge.installs.whenBack(one) !== undefined || healing.isAside(one),
    look: (one) => replica.look(one),
    applied: (one) => replica.appliedInMemory(one)?.position ?? log.settled(one),
    stepWaiting: (event) => {
      const pieces = stepEach(replica.waiting(), event, step)
      work.slices.add('groups of a new epoch', { name: 'epoch', pieces })
    },
    later: (lane, added) => work.slices.add(lane, added),
  })
}

/** Tells whether a node of this set is a read-only member in the present epoch. */
export function testReader(
  { placement, node: own }: Pick<DriverOptions, 'placement' | 'node'>,
  epochs: Pick<Epochs, 'setOf' | 'standingOf'>,
): (node: NodeId) => boolean {
  const group = setGroupOf(placement, placement.setOfNode(own))
  const configured = placement.replicasOf(group)
  return (node) =>
    node === own
      ? epochs.standingOf(group) === 'reading'
      : epochs.setOf(configured).readers?.includes(node) === true
}

/** A piece of work for each. */
function* stepEach(
  groups: readonly GroupId[],
  event: GroupEvent,
  step: MembersParts['step'],
): Generator<number, void> {
  for (const group of groups) {
    step(group, event)
    yield 0
  }
}
