/**
 * The leases of one node, both sides, and what its groups ask of them. A lease is between two nodes;
 * a group is registered under it by a read, and taken out when it is not read any more.
 */
import { assert } from '../base/assert.ts'
import type { GroupId, NodeId, Position } from '../base/ids.ts'
import type { Limits } from '../base/limits.ts'
import { Grants, type Registering } from './grantor.ts'
import { HeldLeases } from './holder.ts'
import type { HandBack, LeaseHolder, LeaseMessage, Renew, Renewed, Slow, Term } from './message.ts'
import type { ClockReading } from './clock-reading.ts'

export interface LeasesOptions {
  readonly node: NodeId
  readonly nodes: readonly NodeId[]
  readonly incarnation: number
  readonly limits: Limits
  /** The monotonic clock as this node starts. */
  readonly startedMs: number
  /** Of all leases that this node's store has given; absent: what the limits say. */
  readonly longestLeaseMs?: number
}

/** How often a holder that does not answer is looked after in one lease time. */
export const retriesPerLease = 16

/** Holders that delay writers `slowCount` times within `slowWindowMs` get no leases for `slowPauseMs`. */
const slowCount = 3
const slowWindowMs = 10_000
/** One stop of a node makes the writers of many groups wait: that is once. */
const slowSpacingMs = 200
const slowPauseMs = 30_000

export type OutgoingMessage = readonly [to: NodeId, message: Renew | Renewed | Slow | HandBack]

/** The questions that a group's step may ask of this node's leases. */
export class Leases {
  /** A group has entered: leases are to be renewed from now on. */
  onEntered: () => void = () => undefined
  /** A holder is to hear at once of what is being revoked, which its next renewal would tell it. */
  onRevoking: (holder: NodeId, message: Renewed) => void = () => undefined
  /** A lease was given up while this node goes on; its grantor is to hear of that at once. */
  onGivenUp: (grantor: NodeId, message: HandBack) => void = () => undefined
  readonly #options: LeasesOptions
  #peers: readonly NodeId[]
  readonly #held: HeldLeases
  readonly #grants: Grants
  /** When this node last asked each holder again that has not acknowledged a revocation. */
  readonly #hurried = new Map<NodeId, number>()
  /** When holders were found slow, the last times of each. */
  readonly #slow = new Map<NodeId, number[]>()
  readonly #groups = new Set<GroupId>()
  #isEnding = false

  constructor(options: LeasesOptions) {
    const { node, nodes, incarnation, limits, startedMs } = options
    const { longestLeaseMs = limits.leaseMs } = options
    this.#options = options
    this.#peers = nodes.filter((one) => one !== node)
    this.#held = new HeldLeases(this.#peers, incarnation, limits)
    const blindMs = { startedMs, longestLeaseMs }
    this.#grants = new Grants(this.#peers, incarnation, limits, blindMs)
  }

  /**
   * Nodes were added or removed. Called when no lease counts any more that this node has given, or that it holds of a
   * node that is gone: the epoch has ended in which they were given.
   */
  setPeers(peers: readonly NodeId[]): void {
    this.#peers = [...peers]
    this.#held.setPeers(peers)
    this.#grants.setPeers(peers)
  }

  /** Groups that this node serves by itself, or tries to. */
  get heldGroups(): number {
    return this.#groups.size
  }

  /** The same groups by name, for those who look at all nodes. */
  get entered(): Iterable<GroupId> {
    return this.#groups
  }

  /** Groups that peers have registered here, each peer's counted. */
  get grantedGroups(): number {
    return this.#grants.count
  }

  /** Room for one more group? It is taken until `leave`. */
  enter(group: GroupId): boolean {
    const { leaseMs, leaseGroupsMax } = this.#options.limits
    if (leaseMs === 0 || this.#groups.size >= leaseGroupsMax) return false
    assert(!this.#groups.has(group), 'LEASE-1: a group enters its lease twice')
    this.#groups.add(group)
    this.onEntered()
    return true
  }

  leave(group: GroupId): void {
    const wasIn = this.#groups.delete(group)
    assert(wasIn, 'LEASE-1: a group leaves a lease that it is not in')
  }

  confirmHeld(peer: NodeId, term: Term, reading: ClockReading): boolean {
    return this.#held.confirmHeld(peer, term, reading)
  }

  confirmLive(peer: NodeId, reading: ClockReading): boolean {
    return this.#held.confirmLive(peer, reading)
  }

  /** `confirmHeld` without its effect. */
  isHeld(peer: NodeId, term: Term, reading: ClockReading): boolean {
    return this.#held.isHeld(peer, term, reading)
  }

  register(registering: Registering): Term | undefined {
    return this.#grants.register(registering)
  }

  release(group: GroupId, from: NodeId, attempt: number): void {
    this.#grants.release(group, from, attempt)
  }

  /**
   * This node is to seal its epoch. It gives no lease any more, and hands back those that it holds: so its peers, which are
   * to seal as well, need not wait until they run out. Called again and again: an answer on its way may begin a term.
   */
  end(): void {
    this.#isEnding = true
    this.#grants.isEnding = true
    for (const [peer, message] of this.#held.giveUp()) this.onGivenUp(peer, message)
  }

  /** This node is in the next epoch: it gives leases, and asks for them, as before. */
  begin(): void {
    this.#isEnding = false
    this.#grants.isEnding = false
  }

  /** Whether no lease counts any more that this node has given. */
  areGrantsOver(now: number): boolean {
    return this.#grants.areOver(now)
  }

  holders(group: GroupId, position: Position, now: number): readonly LeaseHolder[] {
    return this.#grants.holders(group, position, now)
  }

  isHolder(node: NodeId, group: GroupId, position: Position, now: number): boolean {
    return this.#grants.isHolder(node, group, position, now)
  }

  revoke(group: GroupId, position: Position, holder: NodeId, now: number): boolean {
    const hasEnded = this.#grants.revoke(group, position, holder, now)
    if (!hasEnded) this.#hurry(holder, now)
    return hasEnded
  }

  /** At once; then once in a sixteenth of a lease, while the holder says nothing: it names all groups. */
  #hurry(holder: NodeId, now: number): void {
    const last = this.#hurried.get(holder) ?? Number.NEGATIVE_INFINITY
    if (now - last < this.#options.limits.leaseMs / retriesPerLease) return
    const message = this.#grants.answerAgain(holder, now)
    if (message === undefined) return
    this.#hurried.set(holder, now)
    this.onRevoking(holder, message)
  }

  /** A writer had to wait for this holder. Returns whether all voters should hear of it. */
  noteSlow(holder: NodeId, now: number): boolean {
    const times = (this.#slow.get(holder) ?? []).filter((at) => now - at < slowWindowMs)
    if (now - (times.at(-1) ?? Number.NEGATIVE_INFINITY) < slowSpacingMs) return false
    times.push(now)
    const isTooOften = times.length >= slowCount
    this.#slow.set(holder, isTooOften ? [] : times)
    if (isTooOften) this.#grants.refuse(holder, now, slowPauseMs)
    return isTooOften
  }

  /** Asks a peer for a term, unless the last question has just left. */
  ask(peer: NodeId, reading: ClockReading): readonly OutgoingMessage[] {
    if (this.#isEnding) return []
    return this.#renewal(peer, reading, this.#pauseMs)
  }

  /** Called a few times in each lease. A node that serves no group by itself lets its leases end. */
  renewals(reading: ClockReading): readonly OutgoingMessage[] {
    if (this.#groups.size === 0 || this.#isEnding) return []
    return this.#peers.flatMap((peer) => this.#renewal(peer, reading, this.#pauseMs))
  }

  /** An eighth of a lease: as many renewals of one lease may be lost before it ends. */
  get #pauseMs(): number {
    return this.#options.limits.leaseMs / 8
  }

  #renewal(peer: NodeId, reading: ClockReading, pauseMs: number): readonly OutgoingMessage[] {
    const renewal = this.#held.renewal(peer, reading, pauseMs)
    if (renewal === undefined) return []
    const handBack = this.#held.handBackTo(peer)
    return [...(handBack === undefined ? [] : [[peer, handBack] as const]), [peer, renewal]]
  }

  /**
   * A link came up, and with it another term begins. The first message tells a peer that has restarted that
   * this node counts on nothing older. A peer that has not restarted forgets what is registered with it.
   */
  onLink(peer: NodeId, incarnation: number, reading: ClockReading): readonly OutgoingMessage[] {
    if (this.#options.limits.leaseMs === 0) return []
    this.#held.onLink(peer, incarnation)
    return this.#renewal(peer, reading, 0)
  }

  /** Calls `drop` with each group whose registration with `from` does not count any more. */
  onMessage(
    from: NodeId,
    message: LeaseMessage,
    reading: ClockReading,
    drop: (group: GroupId) => void,
  ): readonly OutgoingMessage[] {
    switch (message.kind) {
      case 'renew': {
        const answer = this.#grants.onRenew(from, message, reading.now)
        if (!this.#grants.isRevoking(from)) this.#hurried.delete(from)
        return answer === undefined ? [] : [[from, answer]]
      }
      case 'renewed': {
        const isAwaited = this.#held.onRenewed(from, message, reading, drop)
        return isAwaited ? this.#renewal(from, reading, 0) : []
      }
      case 'hand-back':
        this.#grants.onHandBack(from, message)
        return []
      case 'slow':
        this.#grants.refuse(message.holder, reading.now, slowPauseMs)
        return []
    }
  }

  /** This node stops: it counts on nothing any more, and says so. */
  handBack(): readonly OutgoingMessage[] {
    return this.#held.handBack()
  }
}
