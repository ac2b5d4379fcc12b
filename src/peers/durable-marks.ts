/** How far the logs of two nodes are durably applied at each other, as they tell it (LOG-18, `peer-marks.ts`). */
import type { NodeId } from '../base/ids.ts'
import type { PeerMemory } from '../log/peer-memory.ts'
import type { Trace } from '../ports/trace.ts'
import type { DurableMark } from '../replication/message.ts'
import type { Newcomer } from './admission.ts'
import type { Peer } from './peer.ts'

export interface DurableMarksParts {
  readonly trace: Trace
  readonly log: { readonly durableFlush: number }
  /** Which store of each peer may vote, as the log remembers it. */
  readonly memory: PeerMemory
  /** The store that may come to the node's name without a vote; undefined: none may. */
  findNewcomer(node: NodeId): Newcomer | undefined
  send(to: NodeId, message: DurableMark): void
}

export class DurableMarks {
  readonly #parts: DurableMarksParts

  constructor(parts: DurableMarksParts) {
    this.#parts = parts
  }

  /** Tells the peer how much of its log this node has durably applied, where that is news. */
  tell(peer: Peer): void {
    const { appliedThrough: through } = peer.marks
    if (!peer.isJoined || !peer.knowsLogEnds || peer.toldMark === through) return
    peer.toldMark = through
    this.#parts.send(peer.node, { kind: 'durable-mark', through })
  }

  /** The peer tells how much of this node's log it has durably applied. */
  hear(peer: Peer, through: number): void {
    const { log, trace } = this.#parts
    const { storeId } = peer.info
    if (storeId === undefined) return
    // It can have heard of no flush that is not durable here.
    if (through > log.durableFlush) return trace.mark('durable_mark_beyond_the_log')
    peer.heardMark = { storeId, through }
  }

  /** The figures that the present store of the peer has told. */
  heardOf({ node, heardMark }: Peer): number | undefined {
    const { memory, findNewcomer } = this.#parts
    const newcomer = findNewcomer(node)
    const store = newcomer?.isReader === true ? newcomer.store : memory.of(node)?.storeId
    const isPresent = heardMark !== undefined && heardMark.storeId === store
    return isPresent ? heardMark.through : undefined
  }
}
