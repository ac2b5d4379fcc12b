/** The part that each peer has told to have in its epoch, as a node of the same replica set last heard it. */
import { isStoreId, type NodeId } from '../base/ids.ts'
import type { Peers } from '../peers/peers.ts'
import type { StandingTold } from '../replication/message.ts'
import type { Epochs } from './epochs.ts'
import type { MoverParts } from './mover.ts'

export interface StandingsToldParts {
  readonly epochs: Pick<Epochs, 'own'>
  peers(): Pick<Peers, 'linkOf' | 'isAlive'>
}

export class StandingsTold extends Map<NodeId, StandingTold> {
  readonly #parts: StandingsToldParts

  constructor(parts: StandingsToldParts) {
    super()
    this.#parts = parts
  }

  /** Whether the peer is alive and votes in the epoch in which this node acts. */
  hasVote(node: NodeId): boolean {
    const told = this.get(node)
    const { epoch } = this.#parts.epochs.own
    return this.#parts.peers().isAlive(node) && told?.epoch === epoch && told.gated === epoch
  }

  /** The store that has come to this seat of the node. */
  newcomer(node: NodeId, seat: number): ReturnType<MoverParts['newcomer']> {
    const link = this.#parts.peers().linkOf(node)
    const told = this.get(node)
    const store = link?.storeId
    if (link === undefined || store === undefined || told === undefined) return undefined
    if ((link.seat ?? 0) !== seat) return undefined
    return isStoreId(store) ? { store, isRestored: told.isRestored } : undefined
  }
}
