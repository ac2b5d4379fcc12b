/** The links of a node to its peers: frames to the messages' places, news of a link to the groups. */
import { assert } from '../base/assert.ts'
import type { GroupId, NodeId } from '../base/ids.ts'
import type { Members } from '../members/members.ts'
import type { LogStore } from '../log/log-store.ts'
import type { LeaseKeeper } from '../peers/lease-keeper.ts'
import type { PeerWork } from '../peers/peer-work.ts'
import { Peers, type PeersOptions } from '../peers/peers.ts'
import { describeSelf, type Refusals } from '../peers/refusal.ts'
import type { SetNodes } from '../placement/set-nodes.ts'
import type { Trace } from '../ports/trace.ts'
import type { LinkInfo, Transport } from '../ports/transport.ts'
import type { GroupEvent } from '../replication/group.ts'
import type { PeerFrame } from '../replication/message.ts'
import type { DataStore } from '../store/data-store.ts'
import { appliedOf } from './applied-log.ts'
import type { Inbound } from './inbound.ts'
import type { Replica } from './replica.ts'

export interface DriverLinksParts {
  readonly nodes: SetNodes
  readonly trace: Trace
  readonly log: LogStore
  readonly replica: Replica
  readonly transport: Transport<PeerFrame>
  readonly keeper: LeaseKeeper
  readonly work: PeerWork
  peers(): Peers
  members(): Members
  inbound(): Inbound
  refusals(): Refusals
  /** Stopped, or failed. */
  isOver(): boolean
  step(group: GroupId, event: GroupEvent): void
  /** Runs work whose failure ends the node. */
  guarded(work: () => void): void
}

export class DriverLinks {
  readonly #parts: DriverLinksParts

  constructor(parts: DriverLinksParts) {
    this.#parts = parts
  }

  start(): void {
    const { log, peers, members, refusals, isOver, transport } = this.#parts
    transport.start({
      self: () => describeSelf(log, members().gate.supports),
      admit: (peer, info) => peers().admit(peer, info),
      onRefused: (peer, reason) => refusals().hear(peer, reason),
      onLink: (peer, state, info) => void (isOver() || peers().onLink(peer, state, info)),
      onFrame: (from, frame) => this.#onFrame(from, frame),
    })
  }

  /** The link is in use; these frames have come over it meanwhile. */
  onJoined(peer: NodeId, info: LinkInfo, held: readonly PeerFrame[]): void {
    const { nodes, peers, members } = this.#parts
    assert(nodes.has(peer), 'MOVE-4: a node of another set joins')
    if (!peers().isNewcomer(peer)) this.onVoter(peer, info)
    members().onJoined(peer)
    for (const frame of held) this.#onFrame(peer, frame)
  }

  /** Nodes were added or removed: links come and go, and so do the leases between them. */
  onNodes(urls: ReadonlyMap<NodeId, string>): void {
    const { nodes, peers, replica, keeper, transport } = this.#parts
    transport.setPeers?.(nodes.others.map((node) => ({ node, url: urls.get(node) })))
    for (const node of peers().checkNodes()) replica.suspect(node, true)
    // Also one that is to lose its vote: its leases last until it has sealed its epoch, or they are over (LEASE-2).
    keeper.leases.setPeers(nodes.others)
  }

  /** The peer has a vote, by its link or by the epoch that begins. */
  onVoter(peer: NodeId, info: LinkInfo): void {
    this.onSuspicion(peer, false)
    // A newcomer begins no term: one of its predecessor's would end by it.
    this.#parts.keeper.onLink(peer, info.incarnation ?? 0)
  }

  onSuspicion(peer: NodeId, isSuspected: boolean): void {
    const { nodes, work, replica, peers, step } = this.#parts
    assert(nodes.has(peer) || isSuspected, 'MOVE-4: a node of another set is trusted')
    if (isSuspected) work.forget(peer)
    // To the groups a store without a vote is one that does not answer.
    else if (peers().isNewcomer(peer)) return
    for (const group of replica.suspect(peer, isSuspected)) step(group, { kind: 'suspect', peer })
  }

  #onFrame(from: string, frame: PeerFrame): void {
    const { isOver, peers, trace, guarded, inbound } = this.#parts
    if (isOver()) return
    const peer = peers().onFrame(from, frame)
    if (peer === undefined) return
    assert(
      peers().linkOf(peer) !== undefined,
      'LOG-10: a frame of a link that is not in use is taken',
    )
    trace.begin?.('messages of peers')
    guarded(() => {
      for (const message of frame.messages) inbound().take(peer, message)
    })
    trace.end?.()
  }
}

export interface DriverPeersParts extends Pick<
  PeersOptions,
  'node' | 'nodes' | 'limits' | 'clock' | 'trace' | 'transport' | 'onDigested'
> {
  readonly log: LogStore
  readonly data: DataStore
  readonly links: DriverLinks
  readonly work: PeerWork
  members(): Members
}

export function makePeers(parts: DriverPeersParts): Peers {
  const { log, data, links, work, members } = parts
  const { incarnation, storeId } = log.identity
  assert(!parts.nodes.has(parts.node), 'MOVE-4: a node is its own peer')
  return new Peers({
    ...parts,
    ...{ incarnation, storeId, meta: data, applied: appliedOf(log, data), memory: log.memory },
    remember: () => log.remember(),
    hearVoters: (told) => members().hearVoters(told),
    findNewcomer: (peer) => members().findNewcomer(peer),
    lastSeat: () => members().lastSeat,
    version: () => members().gate.inForce,
    knowsNodes: () => members().knowsNodes,
    onJoined: (...joined) => links.onJoined(...joined),
    onVoter: (...voter) => links.onVoter(...voter),
    onSuspicion: (...heard) => links.onSuspicion(...heard),
    onNamed: (...named) => work.fetches.name(...named),
    later: (...added) => work.slices.add(...added),
  })
}
