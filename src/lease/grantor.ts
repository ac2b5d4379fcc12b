/**
 * The grantor's side: the leases that this node has given to its peers, and the groups that each has
 * registered under its lease. Memory only: after a restart every peer counts as holding everything
 * until it has shown that it counts on nothing older, or until one lease time is over (R13).
 *
 * LEASE-2  A lease ends here later than at its holder: time runs from when the request came, and is
 *          lengthened by what clocks may drift. A registration that is revoked ends when the holder
 *          has said so, or when its lease as it stood at the revocation has run out.
 */
import { assert } from '../base/assert.ts'
import type { GroupId, NodeId, Position } from '../base/ids.ts'
import { heldMs } from '../base/limits.ts'
import {
  isSameTerm,
  type Asked,
  type HandBack,
  type LeaseHolder,
  type Renew,
  type Renewed,
  type Term,
} from './message.ts'
import type { LeaseLimits } from './clock-reading.ts'

interface Revocation {
  readonly serial: number
  /** The end of the lease as it stood then. */
  readonly endsMs: number
}

/** A group that a peer serves by itself. */
interface Registration {
  /** The highest that came: of lower ones the holder counts no answer any more. */
  readonly attempt: number
  /** The lowest that an answer to this attempt told of: the holder shows nothing below. */
  readonly position: Position
}

/** A peer asks to be registered; the same answer tells it of `position`. */
export interface Registering extends Registration {
  readonly group: GroupId
  readonly from: NodeId
  readonly now: number
}

interface Grant {
  /** Of the holder. */
  incarnation: number
  term: Term
  untilMs: number
  /** By the last request that was answered. */
  asked: Asked
  readonly groups: Map<GroupId, Registration>
  /** Not acknowledged yet: such a group is named in every answer of this term. */
  readonly revocations: Map<GroupId, Revocation>
  serial: number
}

interface Peer {
  readonly node: NodeId
  grant: Grant | undefined
  /** Until then it may hold what an earlier incarnation of this node has granted. */
  blindUntilMs: number
  /** Found slow: nothing is granted to it before then. */
  refusedUntilMs: number
}

const nobody: readonly LeaseHolder[] = []

/** All that a grantor remembers. */
export interface GrantsState {
  readonly peers: ReadonlyMap<NodeId, Peer>
  readonly terms: number
}

export class Grants {
  /** The epoch is to be sealed here: no lease is granted or made longer, and no group registered. */
  isEnding = false
  readonly #incarnation: number
  readonly #limits: LeaseLimits
  #peers: Map<NodeId, Peer>
  /** Leases of earlier runs may last until then. */
  readonly #blindUntilMs: number
  /** All terms so far, of all peers. */
  #terms = 0

  constructor(
    peers: readonly NodeId[],
    incarnation: number,
    limits: LeaseLimits,
    { startedMs, longestLeaseMs }: { readonly startedMs: number; readonly longestLeaseMs: number },
  ) {
    const { leaseMs, clockDriftPpm } = limits
    assert(incarnation >= 1, 'LEASE-2: a grantor without an incarnation')
    assert(heldMs(leaseMs, clockDriftPpm) <= leaseMs, 'LEASE-2: a holder outlives its grantor')
    this.#incarnation = incarnation
    this.#limits = limits
    const blindUntilMs = this.#computeEnd(startedMs, longestLeaseMs)
    this.#blindUntilMs = blindUntilMs
    this.#peers = new Map(
      peers.map((node) => [node, { node, grant: undefined, blindUntilMs, refusedUntilMs: 0 }]),
    )
  }

  /** Exactly these peers may hold leases from now on. The one that is gone counts on none; an earlier run may have granted one to the new. */
  setPeers(nodes: readonly NodeId[]): void {
    for (const node of this.#peers.keys()) if (!nodes.includes(node)) this.#peers.delete(node)
    for (const node of nodes) {
      if (this.#peers.has(node)) continue
      const blindUntilMs = this.#blindUntilMs
      this.#peers.set(node, { node, grant: undefined, blindUntilMs, refusedUntilMs: 0 })
    }
  }

  /** A copy, for a search that comes back to it. */
  get state(): GrantsState {
    return structuredClone({ peers: this.#peers, terms: this.#terms })
  }

  set state(state: GrantsState) {
    const { peers, terms } = structuredClone(state)
    this.#peers = new Map(peers)
    this.#terms = terms
  }

  #computeEnd(now: number, ms: number): number {
    return now + ms * (1 + this.#limits.clockDriftPpm / 1_000_000)
  }

  /** Undefined: it gets no lease. */
  onRenew(from: NodeId, message: Renew, now: number): Renewed | undefined {
    const peer = this.#peers.get(from)
    if (peer === undefined || this.#limits.leaseMs === 0) return undefined
    // It knows this incarnation, so it counts on nothing of an earlier one.
    if (message.grantor === this.#incarnation) peer.blindUntilMs = 0
    const { asked, term } = message
    if (asked.incarnation < (peer.grant?.incarnation ?? 0)) return undefined
    if (peer.grant !== undefined && term !== undefined && isSameTerm(term, peer.grant.term)) {
      acknowledge(peer.grant, message.serial)
    }
    if (this.isEnding || now < peer.refusedUntilMs) return undefined
    const grant = this.#grantFor(peer, asked, now)
    grant.untilMs = Math.max(grant.untilMs, this.#computeEnd(now, this.#limits.leaseMs))
    // Its holder counts no more than `leaseMs` from a moment before this one.
    assert(grant.untilMs >= now + this.#limits.leaseMs, 'LEASE-2: a grant ends before its holder')
    grant.asked = asked
    return this.#answer(grant)
  }

  #answer({ asked, term, serial, revocations }: Grant): Renewed {
    const revoked = [...revocations.keys()]
    const { leaseMs } = this.#limits
    return { kind: 'renewed', asked, leaseMs, term, serial, revoked }
  }

  /**
   * The last answer once more, with what has been revoked since, and without more time: what a
   * copy of that request would get, were it not refused. Undefined: nothing is being revoked.
   */
  answerAgain(holder: NodeId, now: number): Renewed | undefined {
    const grant = this.#live(holder, now)
    return grant === undefined || grant.revocations.size === 0 ? undefined : this.#answer(grant)
  }

  /** Whether this holder has to hear of something that is being revoked. */
  isRevoking(holder: NodeId): boolean {
    return (this.#peers.get(holder)?.grant?.revocations.size ?? 0) > 0
  }

  /** The live grant; else another term, in which nothing is registered. */
  #grantFor(peer: Peer, asked: Asked, now: number): Grant {
    const { grant } = peer
    const { incarnation } = asked
    if (grant !== undefined && now < grant.untilMs && grant.incarnation === incarnation)
      return grant
    this.#terms += 1
    const term = { incarnation: this.#incarnation, number: this.#terms }
    const isOver = grant === undefined || now >= grant.untilMs || grant.incarnation < incarnation
    assert(isOver, 'LEASE-2: a term ends while its holder counts on it')
    assert((grant?.term.number ?? 0) < term.number, 'LEASE-2: a term lives again at its grantor')
    peer.grant = {
      incarnation,
      term,
      untilMs: 0,
      asked,
      serial: 0,
      groups: new Map(),
      revocations: new Map(),
    }
    return peer.grant
  }

  #live(node: NodeId, now: number): Grant | undefined {
    const grant = this.#peers.get(node)?.grant
    return grant !== undefined && now < grant.untilMs ? grant : undefined
  }

  /** Notes that `from` will serve the group; the term it is noted under, or undefined when it is not. */
  register({ group, from, attempt, position, now }: Registering): Term | undefined {
    const grant = this.#live(from, now)
    if (this.isEnding) return undefined
    if (grant === undefined || now < (this.#peers.get(from)?.refusedUntilMs ?? 0)) return undefined
    // A new registration cancels no revocation: what the holder is to drop, it may not hold anew.
    if (grant.revocations.has(group)) return undefined
    const before = grant.groups.get(group)
    if (before === undefined && grant.groups.size >= this.#limits.leaseGroupsMax) return undefined
    if (before === undefined || before.attempt < attempt) {
      grant.groups.set(group, { attempt, position })
    } else if (before.attempt === attempt && position < before.position) {
      grant.groups.set(group, { attempt, position })
    }
    const noted = grant.groups.get(group)
    assert((noted?.attempt ?? 0) >= attempt, 'LEASE-2: attempts of a registration fall')
    assert(grant.groups.size <= this.#limits.leaseGroupsMax, 'LEASE-1: too many registrations')
    return grant.term
  }

  /** Its holder has stopped serving the group by attempts up to this one. */
  release(group: GroupId, from: NodeId, attempt: number): void {
    const groups = this.#peers.get(from)?.grant?.groups
    const registered = groups?.get(group)
    if (registered !== undefined && registered.attempt <= attempt) groups?.delete(group)
  }

  onHandBack(from: NodeId, { term }: HandBack): void {
    const peer = this.#peers.get(from)
    if (peer?.grant !== undefined && isSameTerm(peer.grant.term, term)) peer.grant = undefined
  }

  /** The holders that may serve the group by themselves without this position, as far as this node knows. */
  holders(group: GroupId, position: Position, now: number): readonly LeaseHolder[] {
    let found: LeaseHolder[] | undefined
    for (const peer of this.#peers.values()) {
      if (!this.#isHolder(peer, group, position, now)) continue
      found ??= []
      found.push({ node: peer.node, incarnation: peer.grant?.incarnation ?? 1 })
    }
    return found ?? nobody
  }

  /** Whether that one is among them. */
  isHolder(node: NodeId, group: GroupId, position: Position, now: number): boolean {
    const peer = this.#peers.get(node)
    return peer !== undefined && this.#isHolder(peer, group, position, now)
  }

  #isHolder(peer: Peer, group: GroupId, position: Position, now: number): boolean {
    if (now < peer.blindUntilMs) return true
    const { grant } = peer
    const registration = grant?.groups.get(group)
    if (grant === undefined || registration === undefined || now >= grant.untilMs) return false
    // Told of it when it was registered: it serves nothing older.
    if (registration.position >= position) return false
    const revocation = grant.revocations.get(group)
    return revocation === undefined || now < revocation.endsMs
  }

  /** Whether no peer can count on a registration here any more, given in whichever incarnation. */
  areOver(now: number): boolean {
    for (const { blindUntilMs, grant } of this.#peers.values()) {
      if (now < blindUntilMs) return false
      if (grant !== undefined && now < grant.untilMs && grant.groups.size > 0) return false
    }
    return true
  }

  /** Begins to end that registration, or goes on. Returns whether it has ended. */
  revoke(group: GroupId, position: Position, holder: NodeId, now: number): boolean {
    const peer = this.#peers.get(holder)
    if (peer === undefined || !this.#isHolder(peer, group, position, now)) return true
    const { grant } = peer
    assert(now < peer.blindUntilMs || grant !== undefined, 'LEASE-1: a holder without a grant')
    if (grant?.groups.has(group) === true && !grant.revocations.has(group)) {
      grant.serial += 1
      grant.revocations.set(group, { serial: grant.serial, endsMs: grant.untilMs })
    }
    return false
  }

  /** It made writers wait too often: its lease runs out, and it gets none for `ms`. */
  refuse(holder: NodeId, now: number, ms: number): void {
    const peer = this.#peers.get(holder)
    if (peer !== undefined) peer.refusedUntilMs = Math.max(peer.refusedUntilMs, now + ms)
  }

  /** Registrations by peers, live or not. */
  get count(): number {
    let count = 0
    for (const { grant } of this.#peers.values()) count += grant?.groups.size ?? 0
    return count
  }
}

/** The holder has carried out every revocation up to `serial`. */
function acknowledge(grant: Grant, serial: number): void {
  for (const [group, revocation] of grant.revocations) {
    if (revocation.serial > serial) continue
    grant.revocations.delete(group)
    grant.groups.delete(group)
  }
}
