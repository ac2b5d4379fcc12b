/**
 * The holder's side: what this node may still count on of the leases that its peers have given it.
 *
 * LEASE-2  It stops counting on a lease before its grantor does: time runs from when the request
 *          left, on this node's monotonic clock, and is shortened by what clocks may drift, and by
 *          what that clock may have stood still unnoticed.
 *
 * A wall clock that outruns the monotonic one tells of a machine that was suspended: nothing is
 * held any more. It may shorten a lease in this way, and never lengthens one. A suspension that is too
 * short to be told from drift may have come in any lease: its length is taken off all of them.
 */
import { assert } from '../base/assert.ts'
import type { GroupId, NodeId } from '../base/ids.ts'
import { heldMs, suspensionMs } from '../base/limits.ts'
import { isSameTerm, type HandBack, type Renew, type Renewed, type Term } from './message.ts'
import type { LeaseLimits, ClockReading } from './clock-reading.ts'

interface Held {
  /** The grantor's highest incarnation heard of: terms of older ones are dropped. */
  grantor: number
  term: Term | undefined
  /** The last that was given up: neither it nor an earlier one counts again, whichever message names it. */
  givenUp: Term | undefined
  untilMs: number
  /** When the request left that the lease counts from, on both clocks. */
  sentAtMs: number
  sentWall: number
  /** The highest revocation of the term that is carried out. */
  serial: number
  /** When this node asked for a renewal last. */
  askedMs: number
}

/** All that a holder remembers, by grantor. */
export type HeldState = ReadonlyMap<NodeId, Held>

export class HeldLeases {
  readonly #incarnation: number
  readonly #limits: LeaseLimits
  #held: Map<NodeId, Held>

  constructor(peers: readonly NodeId[], incarnation: number, limits: LeaseLimits) {
    this.#incarnation = incarnation
    this.#limits = limits
    this.#held = new Map(peers.map((peer) => [peer, nothing()]))
  }

  /** Exactly these peers may grant leases from now on. */
  setPeers(nodes: readonly NodeId[]): void {
    for (const node of this.#held.keys()) if (!nodes.includes(node)) this.#held.delete(node)
    for (const node of nodes) if (!this.#held.has(node)) this.#held.set(node, nothing())
  }

  /** A copy, for a search that comes back to it. */
  get state(): HeldState {
    return structuredClone(this.#held)
  }

  set state(state: HeldState) {
    this.#held = new Map(structuredClone(state))
  }

  /**
   * Whether this node may count on what is registered under this term of the peer's, now. Where it finds that
   * this node was suspended, it drops all terms first.
   */
  confirmHeld(peer: NodeId, term: Term, reading: ClockReading): boolean {
    const held = this.#held.get(peer)
    return isOf(held, term) && this.#confirmLive(held, reading)
  }

  /** Whether there is a term of the peer's at all under which something could be registered. */
  confirmLive(peer: NodeId, reading: ClockReading): boolean {
    const held = this.#held.get(peer)
    return held?.term !== undefined && this.#confirmLive(held, reading)
  }

  /**
   * The answer that `confirmHeld` would give. It changes nothing: it drops no term where it finds a
   * suspension.
   */
  isHeld(peer: NodeId, term: Term, reading: ClockReading): boolean {
    const held = this.#held.get(peer)
    return isOf(held, term) && reading.now < held.untilMs && !this.#hasStoodStill(held, reading)
  }

  #confirmLive(held: Held, reading: ClockReading): boolean {
    if (reading.now >= held.untilMs) return false
    if (!this.#hasStoodStill(held, reading)) return true
    for (const one of this.#held.values()) one.term = undefined
    return false
  }

  /** Whether the wall clock has outrun the monotonic one by more than drift explains. */
  #hasStoodStill({ sentAtMs, sentWall }: Held, { now, wall }: ClockReading): boolean {
    const passedMicros = (now - sentAtMs) * 1000
    const drift = (passedMicros * this.#limits.clockDriftPpm) / 1_000_000
    return wall - sentWall > passedMicros + drift + suspensionMs * 1000
  }

  /**
   * A link came up: whatever an earlier incarnation of the peer has granted is not counted on. Nor is
   * what this one has: it may list groups that were given up in words that the last link has lost,
   * and forgets them all with the term.
   */
  onLink(peer: NodeId, incarnation: number): void {
    const held = this.#held.get(peer)
    if (held === undefined) return
    if (incarnation <= held.grantor) held.givenUp = held.term ?? held.givenUp
    held.grantor = Math.max(held.grantor, incarnation)
    held.term = undefined
  }

  /** The hand-back to send before a renewal, until the peer names another term: the last one may be lost. */
  handBackTo(peer: NodeId): HandBack | undefined {
    const { grantor, term, givenUp } = this.#held.get(peer) ?? nothing()
    if (term !== undefined || givenUp?.incarnation !== grantor) return undefined
    return { kind: 'hand-back', term: givenUp }
  }

  /** Asks for a term, or for more of it; undefined when it asked a moment ago. */
  renewal(peer: NodeId, { now, wall }: ClockReading, pauseMs = 0): Renew | undefined {
    const held = this.#held.get(peer)
    if (held === undefined || now - held.askedMs < pauseMs) return undefined
    assert(now >= held.askedMs, 'LEASE-2: the clock of a lease goes back')
    held.askedMs = now
    const { term, grantor, serial } = held
    const asked = { incarnation: this.#incarnation, sentAt: Math.floor(now * 1000), sentWall: wall }
    if (term === undefined) return { kind: 'renew', asked, grantor, serial: 0 }
    return { kind: 'renew', asked, grantor, serial, term }
  }

  /**
   * The peer's answer. `drop` is called with each group that it has newly revoked, before the lease is
   * extended: a registration there, or one still on its way, counts no more. Returns whether the
   * peer waits to hear that this is done.
   */
  onRenewed(
    peer: NodeId,
    message: Renewed,
    reading: ClockReading,
    drop: (group: GroupId) => void,
  ): boolean {
    const held = this.#held.get(peer)
    if (held === undefined || isOlder(message.term, held)) return false
    // Of an earlier life: its clock was another one.
    if (message.asked.incarnation !== this.#incarnation) return false
    if (!isOf(held, message.term)) begin(held, message.term)
    const hasNews = message.serial > held.serial
    // Groups that an earlier answer named were dropped then, and may have been registered anew since.
    if (hasNews) for (const group of message.revoked) drop(group)
    held.serial = Math.max(held.serial, message.serial)
    this.#extend(held, message, reading)
    return hasNews && message.revoked.length > 0
  }

  #extend(held: Held, { asked, leaseMs }: Renewed, { now }: ClockReading): void {
    const sentAtMs = asked.sentAt / 1000
    const untilMs = sentAtMs + heldMs(leaseMs, this.#limits.clockDriftPpm)
    if (sentAtMs > now || untilMs <= held.untilMs) return
    assert(untilMs <= sentAtMs + leaseMs, 'LEASE-2: a lease is held for longer than it was granted')
    assert(held.term !== undefined, 'LEASE-2: a lease without a term is extended')
    held.untilMs = untilMs
    held.sentAtMs = sentAtMs
    held.sentWall = asked.sentWall
  }

  /** Counts on no term that there is, for good; the messages that tell the peers so. */
  giveUp(): readonly (readonly [NodeId, HandBack])[] {
    const messages: (readonly [NodeId, HandBack])[] = []
    for (const [peer, held] of this.#held) {
      const { term } = held
      if (term === undefined) continue
      messages.push([peer, { kind: 'hand-back', term }])
      held.givenUp = term
      held.term = undefined
    }
    return messages
  }

  /** The same, and none begins any more. */
  handBack(): readonly (readonly [NodeId, HandBack])[] {
    const messages = this.giveUp()
    // Messages that still come are of a term that is over.
    for (const held of this.#held.values()) held.grantor = Number.MAX_SAFE_INTEGER
    return messages
  }
}

function nothing(): Held {
  return {
    grantor: 0,
    term: undefined,
    givenUp: undefined,
    untilMs: 0,
    sentAtMs: 0,
    sentWall: 0,
    serial: 0,
    askedMs: Number.NEGATIVE_INFINITY,
  }
}

function isOf(held: Held | undefined, term: Term): held is Held {
  return held?.term !== undefined && isSameTerm(held.term, term)
}

function isAfter(term: Term, other: Term | undefined): boolean {
  if (other === undefined || term.incarnation > other.incarnation) return true
  return term.incarnation === other.incarnation && term.number > other.number
}

function isOlder(term: Term, { grantor, term: own, givenUp }: Held): boolean {
  if (term.incarnation !== grantor) return term.incarnation < grantor
  if (givenUp?.incarnation === grantor && term.number <= givenUp.number) return true
  return own !== undefined && own.incarnation === grantor && term.number < own.number
}

/** A term never lives again: each that begins is of a later life of the grantor, or has a higher number. */
function begin(held: Held, term: Term): void {
  const { grantor, term: own, givenUp } = held
  assert(term.incarnation >= grantor, 'LEASE-2: a term of an earlier life of its grantor begins')
  assert(isAfter(term, own), 'LEASE-2: a term lives again at its holder')
  assert(isAfter(term, givenUp), 'LEASE-2: a term that was given up lives again')
  held.grantor = term.incarnation
  held.term = term
  held.untilMs = 0
  held.serial = 0
}
