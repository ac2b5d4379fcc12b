/**
 * Frames between endpoints that have met: a handshake lies behind each link. A frame arrives whole,
 * late, more than once, out of order, or not at all, also over a later link than the one it was sent
 * over; nothing above this port trusts it further. But no second copy comes over a later link of a
 * client's: those are one connection each, and a refusal rests on it (TXN-5).
 */
import type { Versions } from '../base/cluster-version.ts'
import type { NodeId } from '../base/ids.ts'
import type { RememberedStore } from '../base/remembered.ts'

/** A node's id on peer links; on client links the node's id, or a client's as its node names it. */
export type Endpoint = string

/** The facts that each side of a handshake tells of itself, when it is a node. */
export interface LinkInfo {
  /** The node's id, where its endpoint goes by another name. Found out, not told. */
  readonly node?: string
  /** Of the node, where this side may be of any. Found out, not told. */
  readonly cluster?: string
  readonly storeId?: string
  readonly incarnation?: number
  /** The last flush that the sender's start found in its log; later ones come with its frames. */
  readonly durableFlush?: number
  /** Drawn as the sender started: a folder of the past may count the same incarnation again. */
  readonly run?: number
  /** The sender's durable memory of the other nodes' stores; absent: it has lost its memory. */
  readonly known?: readonly RememberedStore[]
  /** A digest of the sender's list of nodes: their ids and sets, in their order. */
  readonly nodes?: string
  /** Whether it knows the messages about where a log ends: an earlier build would refuse frames with them. */
  readonly knowsLogEnds?: boolean
  /** Whether it knows the messages by which nodes compare their groups: the same holds of these. */
  readonly compares?: boolean
  /** Whether it knows the messages about a change of the voters: the same holds of these. */
  readonly knowsEpochs?: boolean
  /** Whether it knows the row of the voters with read-only members in it: an earlier build would not know who votes then. */
  readonly knowsReaders?: boolean
  /** The seat of a store that took the place of another one; absent: it is its node's first. */
  readonly seat?: number
  /** The nodes that vote in the sender's epoch; absent: those that its set began with, or the sender is in doubt of them. */
  readonly voters?: VotersTold
  /** Where clients reach the sender, if not where its peers do: scheme, host and port. */
  readonly clientUrl?: string
  /** Of a client: whether it knows the messages about the nodes of the cluster. An earlier build ends its link over one. */
  readonly followsNodes?: boolean
  /** Whether it knows the entry by which a group leaves its replica set: an earlier build would go on behind it. */
  readonly movesGroups?: boolean
  /** Whether it answers how far its flushes go: an earlier build would refuse frames with the question. */
  readonly tellsReach?: boolean
  /** The cluster versions that its build supports; absent: the first one alone. */
  readonly supports?: Versions
}

export interface VotersTold {
  readonly epoch: number
  /** Not empty. */
  readonly nodes: readonly NodeId[]
}

/** Why an address that is dialled has no link, as of the latest try. */
export interface Unreached {
  /**
   * `waits`: it may come up by itself. `forbidden`: it does not take this side as it is. `wrong`: one of the
   * two sides is set up wrongly, or the address is another one's.
   */
  readonly kind: 'waits' | 'forbidden' | 'wrong'
  readonly reason: string
}

/** A refusal that begins so goes away by itself within moments: its link is dialled again as after a break. */
export const passingRefusal = 'forgetful:'

export interface TransportHandlers<Frame> {
  /** The facts that this side tells of itself in a handshake that begins now. */
  self(): LinkInfo
  /** Checks a peer that wants a link: undefined to go on, else the reason to send to it. */
  admit(peer: Endpoint, info: LinkInfo): string | undefined
  /**
   * The peer would not have us, for the reason it gave (such as `stale-disk`). `node`: its id, where its
   * endpoint goes by another name and it has said so.
   */
  onRefused(peer: Endpoint, reason: string, node?: string): void
  /** A try to dial an address failed. The reason names the address where `addresses` says so. */
  onUnreached?(peer: Endpoint, why: Unreached): void
  onLink(peer: Endpoint, state: 'up' | 'down', info: LinkInfo): void
  onFrame(from: Endpoint, frame: Frame): void
  /** A peer that much waited for has taken some of it. */
  onDrained?(peer: Endpoint): void
  /** The link with the peer ends as soon as `isIdle` says so: nothing new is to be sent there. */
  onLeaving?(peer: Endpoint): void
  /** Whether nothing that was sent to the peer waits for its answer. */
  isIdle?(peer: Endpoint): boolean
}

export interface PeerAddress {
  readonly node: Endpoint
  /** Scheme, host and port; undefined: as it was given at first. */
  readonly url: string | undefined
}

/** An address that is dialled. */
export interface DialledAddress {
  readonly endpoint: Endpoint
  /** The node that has to answer there; absent: whichever does. */
  readonly node?: string
}

export interface Transport<Frame> {
  /** Called once, before anything else; links come up from now on and after every loss by themselves. */
  start(handlers: TransportHandlers<Frame>): void
  /** Sends when a link is up and its queue has room; false when the frame was dropped instead. */
  send(to: Endpoint, frame: Frame): boolean
  isUp(peer: Endpoint): boolean
  /** Bytes that were sent and wait to be taken; absent: it is not known. `onDrained` tells of less. */
  queuedBytes?(to: Endpoint): number
  /** Held: nothing is read from this peer, so that it waits; absent: that cannot be done. */
  hold?(from: Endpoint, isHeld: boolean): void
  /**
   * The peers to have links with from now on, and where those are reached that the transport was not given at first. Absent: they
   * do not change.
   */
  setPeers?(peers: readonly PeerAddress[]): void
  /** The addresses that were given at first, where others may take their place; absent: they do not change. */
  readonly endpoints?: readonly Endpoint[]
  /** The addresses to have links with from now on: others have none any more. Absent: they do not change. */
  setEndpoints?(addresses: readonly DialledAddress[]): void
  /** Ends the link with the peer, if there is one: the next one has to be admitted anew. Absent: that cannot be done. */
  disconnect?(peer: Endpoint): void
  /** How many addresses are dialled, where callers are to hear why one has no link; 0 or absent: they are not. */
  readonly addresses?: number
  close(): Promise<void>
}
