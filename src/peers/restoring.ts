/**
 * A data store that was made anew from a log which had given up flushes. The votes in these are lost, and the peers
 * have the rows: their digests and directories name the groups, whose entries and snapshots then come as they come to any
 * node that is behind.
 *
 * LOG-19  Such a node is not restored before it durably applied all that the flushes of a majority of the *others* name,
 *         as of a moment after its start. Until then it gives no vote, answers no read round, counts itself in none, holds
 *         no lease, and names its groups to no peer.
 *
 * A flush is given up when all that it names is applied, so what is lost are votes for chosen values. Such a value was
 * accepted by a majority before, and in any majority of the others one node accepted it. Marks of LOG-18 say when all that
 * the flushes of a peer name is applied here: from then on this node knows what was chosen wherever it has forgotten a vote.
 */
import { assert } from '../base/assert.ts'
import type { NodeId } from '../base/ids.ts'
import { computeMajority } from '../placement/placement.ts'
import type { Trace } from '../ports/trace.ts'

export interface RestoringParts {
  readonly trace: Trace
  /** All nodes of the replica set but this one. */
  readonly others: readonly NodeId[]
  /** As the data store says at the start. */
  readonly isRestored: boolean
  /** Asks the peer how far its log goes; `onDigested` brings the answer. */
  ask(peer: NodeId): unknown
  /** Everything that the peer's flushes through here name is durably applied (LOG-18). */
  appliedThrough(peer: NodeId): number
  onRestored(): void
}

export class Restoring {
  readonly #parts: RestoringParts
  /** By peer, how far its log went when it first answered. */
  readonly #targets = new Map<NodeId, number>()
  #isOver: boolean

  constructor(parts: RestoringParts) {
    this.#parts = parts
    this.#isOver = parts.isRestored
    if (!parts.isRestored) parts.trace.mark('restoring_from_peers')
  }

  get isOver(): boolean {
    return this.#isOver
  }

  /** The peers whose flushes this node has not applied as far as it has to. Empty: it is restored. */
  get lacking(): readonly NodeId[] {
    return this.#isOver ? [] : this.#parts.others.filter((peer) => !this.#isTaken(peer))
  }

  /**
   * Whether this node durably applied, since its start, all that the flushes of a majority of the others named then. It
   * knows by then of every transaction that was acknowledged before the start.
   */
  get hasTakenUp(): boolean {
    const { others } = this.#parts
    const taken = others.filter((peer) => this.#isTaken(peer)).length
    return others.length === 0 || taken >= computeMajority({ length: others.length + 1 })
  }

  /** The peer has answered: its last durable flush was this one. */
  onDigested(peer: NodeId, durable: number): void {
    if (this.#targets.has(peer)) return
    assert(durable >= 0, 'LOG-19: a log without an end')
    this.#targets.set(peer, durable)
  }

  /** Called every `digestMs`, when the marks have moved. */
  look(): void {
    if (this.#isOver) return
    const { others, ask, trace, onRestored } = this.#parts
    for (const peer of others) if (!this.#targets.has(peer)) ask(peer)
    if (!this.hasTakenUp) return
    this.#isOver = true
    trace.mark('restored_from_peers')
    trace.emit({ kind: 'restored' })
    onRestored()
  }

  #isTaken(peer: NodeId): boolean {
    const target = this.#targets.get(peer)
    return target !== undefined && this.#parts.appliedThrough(peer) >= target
  }
}
