/**
 * This node's leases at work: carries what its peers say of them to the tables and to the groups, and
 * renews, as long as there is a group to be served. Per peer, never per group.
 */
import type { GroupId, NodeId } from '../base/ids.ts'
import type { Limits } from '../base/limits.ts'
import { Leases, type Told } from '../lease/leases.ts'
import type { LeaseMessage } from '../lease/message.ts'
import type { Reading } from '../lease/reading.ts'
import type { Clock } from '../ports/clock.ts'
import type { Message } from '../replication/message.ts'

export interface LeaseKeeperParts {
  readonly node: NodeId
  readonly nodes: readonly NodeId[]
  readonly incarnation: number
  readonly limits: Limits
  readonly clock: Clock
  send(to: NodeId, message: Message): void
  /** The peer does not count this node as a holder of the group any more. */
  onRevoked(group: GroupId, peer: NodeId): void
}

export class LeaseKeeper {
  readonly leases: Leases
  readonly #parts: LeaseKeeperParts

  constructor(parts: LeaseKeeperParts) {
    const { node, nodes, incarnation, limits, clock } = parts
    this.#parts = parts
    const startedMs = clock.monotonicMs()
    this.leases = new Leases({ node, nodes, incarnation, limits, startedMs })
  }

  onMessage(from: NodeId, message: LeaseMessage): void {
    const drop = (group: GroupId): void => this.#parts.onRevoked(group, from)
    this.#tell(this.leases.onMessage(from, message, this.#reading(), drop))
  }

  onLink(peer: NodeId, incarnation: number): void {
    this.#tell(this.leases.onLink(peer, incarnation, this.#reading()))
  }

  /** What goes to the peer next asks to register a group: that needs a lease. */
  ask(peer: NodeId): void {
    this.#tell(this.leases.ask(peer, this.#reading()))
  }

  /** How often `renew` is to be called. */
  get periodMs(): number {
    return Math.max(1, this.#parts.limits.leaseMs / 4)
  }

  renew(): void {
    this.#tell(this.leases.renewals(this.#reading()))
  }

  tellSlow(holder: NodeId): void {
    for (const node of this.#parts.nodes) {
      if (node !== this.#parts.node) this.#parts.send(node, { kind: 'slow', holder })
    }
  }

  /** This node serves nothing any more. */
  handBack(): void {
    this.#tell(this.leases.handBack())
  }

  #tell(told: readonly Told[]): void {
    for (const [to, message] of told) this.#parts.send(to, message)
  }

  #reading(): Reading {
    const { clock } = this.#parts
    return { now: clock.monotonicMs(), wall: clock.wallMicros() }
  }
}
