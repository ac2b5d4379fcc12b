/** The nodes of a replica set that one of them sees now, for its status. */
import type { NodeId } from '../base/ids.ts'
import { placeOfNode, type NodePlace } from '../config/node-place.ts'
import { mainSet, type NodeAddress } from '../config/values.ts'
import type { Change } from '../members/change.ts'
import type { MembersReport } from '../members/report.ts'

/** The facts that say which nodes there are. */
export interface SeenParts {
  readonly node: NodeId
  /** Those of the configuration. */
  readonly nodes: readonly NodeAddress[]
  /** Where the peers of now are, by their ids, where that is known. Absent: where the configuration says. */
  readonly peerUrls?: ReadonlyMap<string, string | undefined> | undefined
  /** Absent while the stores are being opened. */
  readonly replica:
    | {
        readonly peers: readonly SeenPeer[]
        readonly members: MembersReport
      }
    | undefined
}

interface SeenPeer {
  readonly node: NodeId
  readonly isUp: boolean
  readonly isSuspected: boolean
  readonly mark?: number | undefined
  readonly isBehind?: boolean
}

export interface SeenNode extends NodePlace {
  readonly id: string
  /** Empty: it is not known. */
  readonly url: string
  readonly isSelf: boolean
  readonly isUp: boolean
  /** The last flush of this node's log that the peer is known to need no more. Absent: unknown, or this node. */
  readonly durableMark?: number
  /** This node's log does not wait for it any more, or has given up what it lacks. Absent: no. */
  readonly isBehindLog?: true
  /** It takes no part in its epoch yet. Absent: it does, or that is not known. */
  readonly hasNoVote?: true
  /** It is being added: no majority is of it yet. Absent: it is not. */
  readonly isJoining?: true
  /** It is a read-only member: no majority is of it. Absent: it is not. */
  readonly isReader?: true
}

export function findOwnSet({ node, nodes }: Pick<SeenParts, 'node' | 'nodes'>): string {
  return nodes.find(({ id }) => id === node)?.set ?? mainSet
}

/** Those that the replica set has now, as this node knows them. Until its stores are open it goes by the configuration. */
export function listSeenNodes(parts: SeenParts): readonly SeenNode[] {
  return listAddresses(parts).map((address) => seeNode(parts, address))
}

function listAddresses(parts: SeenParts): readonly Pick<SeenNode, 'id' | 'url'>[] {
  const { node, nodes, replica, peerUrls } = parts
  const own = findOwnSet({ node, nodes })
  const ofSet = nodes.filter(({ set }) => set === own)
  const members = replica?.members.members ?? []
  // Before the stores are open, a node that joins may have been added or not: only of itself it matters.
  if (members.length === 0) return ofSet.filter(({ id, joins }) => joins !== true || id === node)
  const ids = members.map((one) => one.node)
  const inOrder = [...ofSet.map(({ id }) => id).filter((id) => ids.includes(id)), ...ids]
  return [...new Set(inOrder)].map((id) => {
    const configured = ofSet.find((one) => one.id === id)?.url
    return { id, url: peerUrls?.get(id) ?? configured ?? '' }
  })
}

function seeNode(
  { node, nodes, replica }: SeenParts,
  { id, url }: Pick<SeenNode, 'id' | 'url'>,
): SeenNode {
  const isSelf = id === node
  const peer = replica?.peers.find((one) => one.node === id)
  const isUp = isSelf ? replica !== undefined : peer?.isUp === true && !peer.isSuspected
  const { standing, isReader } = replica?.members.members.find((one) => one.node === id) ?? {}
  const { mark, isBehind } = peer ?? {}
  return {
    ...{ id, url, ...placeOfNode(nodes, id), isSelf, isUp },
    ...(mark !== undefined && { durableMark: mark }),
    ...(isBehind === true && { isBehindLog: true }),
    ...((standing === 'newcomer' || standing === 'before-gate') && { hasNoVote: true }),
    ...(isJoining(id, replica?.members.change) && { isJoining: true }),
    ...(isReader === true && { isReader: true }),
  }
}

function isJoining(id: string, change: Change | undefined): boolean {
  const isAddition = change?.kind === 'add' || change?.kind === 'add-reader'
  return isAddition && change.phase === 'copying' && change.node === id
}

/** Whether majorities are of it. */
export function isVoter({ isJoining: joins, isReader }: Voting): boolean {
  return joins !== true && isReader !== true
}

type Voting = Readonly<{ isJoining?: true; isReader?: true }>

/** How many more voters may fail; -1: there is no majority. */
export function spareNodes(nodes: readonly SeenNode[]): number {
  const voters = nodes.filter(isVoter)
  const majority = Math.floor(voters.length / 2) + 1
  return Math.max(-1, voters.filter(({ isUp, hasNoVote }) => isUp && !hasNoVote).length - majority)
}
