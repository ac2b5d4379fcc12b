/**
 * Before groups are listed: asks the other nodes for what their logs were given that this one has not
 * heard of (digests), until it knows of every group that a majority knew of when the list was requested.
 *
 * LOG-8  A list of groups names each that has a commit which was acknowledged before.
 *
 * Before a commit is acknowledged, flushes of a majority hold it; of any majority that answers, one node
 * has it, if not applied then accepted. A digest names groups by what is accepted, and a group that was
 * named stays in memory until its position is applied (`../replication/catch-up.ts`). So a node that lacks
 * much is not named all of it at once (`peers.ts`): it can list groups when it has caught up, and says that
 * it cannot when that takes too long. A peer that has lost a flush, and cannot tell what was in it, is not
 * known any more from there on: a majority has to be found among the others.
 */
import type { NodeId } from '../base/ids.ts'
import type { SetNodes } from '../placement/set-nodes.ts'
import type { Clock, Timer } from '../ports/clock.ts'

export interface GroupDiscoveryPorts {
  readonly clock: Clock
  readonly nodes: Pick<SetNodes, 'node' | 'otherVoters' | 'majority' | 'isVoter'>
  /** A peer that has not answered gets the question again after this time. */
  readonly againMs: number
  /** Whether this node knows all that it was ever given (LOG-19). */
  isRestored(): boolean
  /**
   * The epoch in which directories are needed; 0: digests do. A voter has passed its gate, and so has all of the epochs before. A
   * read-only member has not, and a store that replaced another one may have such groups by snapshots alone.
   */
  readonly epochs: { readonly directoriesOf: number }
  /** Asks for a digest, and gives the number of the question: a higher one than all before. */
  ask(node: NodeId): number
}

/** How far the digest of a peer has come. */
export interface Digested {
  /** The question that it answers. */
  readonly asked: number
  /** All of the peer's flushes through here are known. */
  readonly through: number
  /** The last one that the peer is known to have. */
  readonly durable: number
  /** The epoch in which this node asked for a directory of the peer, which was past its gate; 0: it did not. */
  readonly directedIn: number
}

interface Call {
  /** By node, the first question of this call. */
  readonly firstAsked: Map<NodeId, number>
  /** By node, how far its flushes have to be known. */
  readonly targets: Map<NodeId, number>
  readonly known: Set<NodeId>
  again: Timer | undefined
  end(isKnown: boolean): void
}

export class GroupDiscovery {
  readonly #ports: GroupDiscoveryPorts
  readonly #calls = new Set<Call>()

  constructor(ports: GroupDiscoveryPorts) {
    this.#ports = ports
  }

  /** False when too few answered in time. */
  refresh(timeoutMs: number): Promise<boolean> {
    const { clock, nodes } = this.#ports
    if (nodes.otherVoters.length === 0) return Promise.resolve(true)
    return new Promise((resolve) => {
      const call: Call = {
        firstAsked: new Map(),
        targets: new Map(),
        known: new Set(),
        again: undefined,
        end: (isKnown) => {
          timer.cancel()
          call.again?.cancel()
          this.#calls.delete(call)
          resolve(isKnown)
        },
      }
      const timer = clock.setTimer(timeoutMs, () => call.end(false))
      this.#calls.add(call)
      this.#askFor(call)
    })
  }

  #askFor(call: Call): void {
    const { clock, nodes, againMs, ask } = this.#ports
    for (const node of nodes.otherVoters.filter((one) => !call.known.has(one))) {
      const asked = ask(node)
      if (!call.firstAsked.has(node)) call.firstAsked.set(node, asked)
    }
    call.again = clock.setTimer(againMs, () => this.#askFor(call))
  }

  /** A digest of this peer was taken up. */
  onDigest(from: NodeId, { asked, through, durable, directedIn }: Digested): void {
    const { nodes, isRestored, epochs } = this.#ports
    if (directedIn < epochs.directoriesOf) return
    // A node without a vote may have missed what a majority of the voters has.
    const own = isRestored() && nodes.isVoter(nodes.node) ? 1 : 0
    for (const call of [...this.#calls]) {
      // A digest that answers an older question may lack what was acknowledged since.
      if (asked < (call.firstAsked.get(from) ?? Infinity)) continue
      const target = call.targets.get(from) ?? durable
      call.targets.set(from, target)
      if (through < target) continue
      call.known.add(from)
      const known = nodes.otherVoters.filter((node) => call.known.has(node)).length
      // This node knows what it has itself.
      if (known + own >= nodes.majority) call.end(true)
    }
  }

  /** No call gets an answer any more. */
  stop(): void {
    for (const call of [...this.#calls]) call.end(false)
  }
}
