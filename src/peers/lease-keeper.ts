/**
 * This node's leases at work: carries what its peers say of them to the tables and to the groups, and
 * renews, as long as there is a group to be served. Per peer, never per group.
 */
import type { GroupId, NodeId } from '../base/ids.ts'
import type { Limits } from '../base/limits.ts'
import { Leases, type OutgoingMessage } from '../lease/leases.ts'
import type { LeaseMessage } from '../lease/message.ts'
import type { ClockReading } from '../lease/clock-reading.ts'
import type { Clock, Timer } from '../ports/clock.ts'
import type { Message } from '../replication/message.ts'

/** A few may be lost before a lease ends. */
const renewalsPerLease = 4

export interface LeaseKeeperParts {
  readonly node: NodeId
  readonly nodes: readonly NodeId[]
  readonly incarnation: number
  readonly limits: Limits
  readonly clock: Clock
  /** Of all leases that this store has given, in any incarnation. */
  readonly longestLeaseMs: number
  send(to: NodeId, message: Message): void
  /** The peer does not count this node as a holder of the group any more. */
  onRevoked(group: GroupId, peer: NodeId): void
}

export class LeaseKeeper {
  readonly leases: Leases
  #timer: Timer | undefined
  #isStopped = false
  readonly #parts: LeaseKeeperParts

  constructor(parts: LeaseKeeperParts) {
    const { node, nodes, incarnation, limits, clock, longestLeaseMs } = parts
    this.#parts = parts
    const startedMs = clock.monotonicMs()
    this.leases = new Leases({ node, nodes, incarnation, limits, longestLeaseMs, startedMs })
    this.leases.onEntered = () => this.#schedule(0)
    this.leases.onRevoking = (holder, message) => {
      if (!this.#isStopped) parts.send(holder, message)
    }
    this.leases.onGivenUp = (grantor, message) => {
      if (!this.#isStopped) parts.send(grantor, message)
    }
  }

  onMessage(from: NodeId, message: LeaseMessage): void {
    if (this.#isStopped) return
    const drop = (group: GroupId): void => this.#parts.onRevoked(group, from)
    this.#tell(this.leases.onMessage(from, message, this.#reading(), drop))
  }

  onLink(peer: NodeId, incarnation: number): void {
    if (this.#isStopped) return
    this.#tell(this.leases.onLink(peer, incarnation, this.#reading()))
  }

  /** The next message to the peer asks it to register a group: that needs a lease. */
  ask(peer: NodeId): void {
    if (this.#isStopped) return
    this.#tell(this.leases.ask(peer, this.#reading()))
  }

  /** A node that serves no group by itself has no timer for it either. */
  #schedule(delayMs: number): void {
    if (this.#isStopped || this.#timer !== undefined || this.leases.heldGroups === 0) return
    this.#timer = this.#parts.clock.setTimer(delayMs, () => {
      this.#timer = undefined
      this.#tell(this.leases.renewals(this.#reading()))
      this.#schedule(this.#parts.limits.leaseMs / renewalsPerLease)
    })
  }

  tellSlow(holder: NodeId): void {
    for (const node of this.#parts.nodes) {
      if (node !== this.#parts.node) this.#parts.send(node, { kind: 'slow', holder })
    }
  }

  /** This node serves nothing any more. */
  stop(): void {
    this.#timer?.cancel()
    this.#isStopped = true
    this.#tell(this.leases.handBack())
  }

  #tell(told: readonly OutgoingMessage[]): void {
    for (const [to, message] of told) this.#parts.send(to, message)
  }

  #reading(): ClockReading {
    const { clock } = this.#parts
    return { now: clock.monotonicMs(), wall: clock.wallMicros() }
  }
}
