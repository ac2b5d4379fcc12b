/**
 * A data store that was made anew from a log which had given up flushes. The votes in these are lost, and the peers
 * have the rows: their digests and directories name the groups, whose entries and snapshots then come as they come to any
 * node that is behind.
 *
 * LOG-19  Such a node is not restored before it durably applied all that the flushes of a majority of the *others* name,
 *         as of a moment after its start, and its data store durably says that it is restored. Until then it gives no vote,
 *         answers no read round, counts itself in none, holds no lease, and names its groups to no peer.
 *
 * A flush is given up when all that it names is applied, so what is lost are votes for chosen values. Such a value was
 * accepted by a majority before, and in any majority of the others one node accepted it. Marks of LOG-18 say when all that
 * the flushes of a peer name is applied here: from then on this node knows what was chosen wherever it has forgotten a vote.
 *
 * The set may begin an epoch with a newcomer as soon as that one has told that it is restored. Were a start to take that back,
 * the new voter would wait for a majority of the others once more, and one of them may be lost by then.
 */
import { assert } from '../base/assert.ts'
import type { NodeId } from '../base/ids.ts'
import type { SetNodes } from '../placement/set-nodes.ts'
import type { Trace } from '../ports/trace.ts'

export interface RestoringParts {
  readonly trace: Trace
  readonly nodes: Pick<SetNodes, 'otherVoters' | 'majority'>
  /** As the data store says at the start. */
  readonly isRestored: boolean
  /** Asks the peer how far its log goes; `onDigested` brings the answer. */
  ask(peer: NodeId): unknown
  /** Everything that the peer's flushes through here name is durably applied (LOG-18). */
  appliedThrough(peer: NodeId): number
  /**
   * Whether the peer's digests name all that it has. A snapshot stands in no flush: behind the first epoch its directory
   * does, and all of that has to be durably applied.
   */
  hasNamedAll(peer: NodeId): boolean
  /** Moves that on as far as the data store allows. */
  advanceMarks(): void
  /** Resolves when everything committed before the call is durable. Rejects where the store fails, which ends the node, or stops. */
  drain(): Promise<void>
  /** Has the data store say that it is restored. Resolves when that is durable; rejects as `drain` does. */
  keep(): Promise<void>
  onRestored(): void
  onFailed(error: unknown): void
}

export class Restoring {
  readonly #parts: RestoringParts
  /** By peer, how far its log went when it first answered. */
  readonly #targets = new Map<NodeId, number>()
  #isOver: boolean
  #isDraining = false
  #isKeeping = false

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
    return this.#isOver ? [] : this.#parts.nodes.otherVoters.filter((peer) => !this.#isTaken(peer))
  }

  /**
   * Whether this node durably applied, since its start, all that the flushes of a majority of the others named then. It
   * knows by then of every transaction that was acknowledged before the start.
   */
  get hasTakenUp(): boolean {
    const { otherVoters, majority } = this.#parts.nodes
    const taken = otherVoters.filter((peer) => this.#isTaken(peer)).length
    return otherVoters.length === 0 || taken >= majority
  }

  /** The peer has answered: its last durable flush was this one. */
  onDigested(peer: NodeId, durable: number): void {
    if (this.#targets.has(peer)) return
    assert(durable >= 0, 'LOG-19: a log without an end')
    this.#targets.set(peer, durable)
  }

  /** Called every `digestMs`. */
  look(): void {
    if (this.#isOver) return
    const { nodes, ask } = this.#parts
    for (const peer of nodes.otherVoters) if (!this.#targets.has(peer)) ask(peer)
    this.#check()
  }

  /**
   * Called every `heartbeatMs`, and with each durable batch. The peers wait for a node that is not restored: it leaves no
   * entry to the checkpoint of its group, and goes by each batch, not by the round of digests that comes next.
   */
  goOn(): void {
    if (this.#isOver || this.#isKeeping) return
    const { advanceMarks, drain } = this.#parts
    advanceMarks()
    this.#check()
    if (this.#isKeeping || this.#isDraining) return
    this.#isDraining = true
    drain()
      .catch(() => undefined)
      .finally(() => (this.#isDraining = false))
  }

  #check(): void {
    if (this.#isOver || this.#isKeeping || !this.hasTakenUp) return
    const { keep, onFailed } = this.#parts
    this.#isKeeping = true
    keep()
      .then(
        () => this.#end(),
        () => undefined,
      )
      .catch(onFailed)
  }

  #end(): void {
    const { trace, onRestored } = this.#parts
    this.#isOver = true
    trace.mark('restored_from_peers')
    trace.emit({ kind: 'restored' })
    onRestored()
  }

  #isTaken(peer: NodeId): boolean {
    const target = this.#targets.get(peer)
    const { appliedThrough, hasNamedAll } = this.#parts
    return target !== undefined && appliedThrough(peer) >= target && hasNamedAll(peer)
  }
}
