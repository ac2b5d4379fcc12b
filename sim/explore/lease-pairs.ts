/**
 * One node's leases as the search knows them: the real tables of `src/lease`, one for each pair of
 * a grantor and a holder. Each pair has a clock of its own that stands still until the search moves
 * it.
 *
 * A lease lasts a fixed number of ticks of either clock. The holder's clock may move at any time.
 * The grantor's follows. A message that arrived a lease time ago left at least a lease time ago. So
 * the grantor's clock moves only when the holder's has moved that far since that request left
 * (LEASE-2, and no more than that).
 */
import { present } from '../../src/base/assert.ts'
import type { GroupId, NodeId, Position } from '../../src/base/ids.ts'
import { suspensionMs } from '../../src/base/limits.ts'
import { Grants, type GrantsState, type Registering } from '../../src/lease/grantor.ts'
import { HeldLeases, type HeldState } from '../../src/lease/holder.ts'
import { Leases } from '../../src/lease/leases.ts'
import type { LeaseHolder, LeaseMessage, Term } from '../../src/lease/message.ts'
import type { ClockReading } from '../../src/lease/clock-reading.ts'
import type { Setting } from './setting.ts'

/** A request for a lease, as its grantor's clock stood when it came. */
interface Received {
  readonly at: number
  /** Of the holder, and its clock when the request left. */
  readonly incarnation: number
  readonly sent: number
}

/** The leases that this node has granted to one peer. */
export interface Lent {
  readonly grants: GrantsState
  readonly now: number
  /** The latest that came at each tick of the last lease time. */
  readonly received: readonly Received[]
}

/** The lease that one peer has granted to this node. */
export interface Borrowed {
  readonly held: HeldState
  readonly now: number
}

export interface LeasePairs {
  readonly lent: ReadonlyMap<NodeId, Lent>
  readonly borrowed: ReadonlyMap<NodeId, Borrowed>
}

/**
 * Longer than what a holder takes off its leases: it counts on one through the last tick, and no
 * further.
 */
export const tickMs: number = 2 * suspensionMs

type Blind = ConstructorParameters<typeof Grants>[3]

export type LeaseTold = readonly [to: NodeId, message: LeaseMessage]

function buildLimits({ limits, scope }: Setting): Setting['limits'] {
  return { ...limits, leaseMs: (scope.leases?.ticks ?? 0) * tickMs, clockDriftPpm: 0 }
}

/** Until this moment any possible holder of an earlier grant counts as a holder. */
function blindFrom(startedMs: number, { leaseMs }: Setting['limits']): Blind {
  return { startedMs, longestLeaseMs: leaseMs }
}

/** No lease yet, and no peer that could hold one of an earlier life. */
export function newLeasePairs(setting: Setting, node: number): LeasePairs {
  const { names, scope } = setting
  const limits = buildLimits(setting)
  const lent = new Map<NodeId, Lent>()
  const borrowed = new Map<NodeId, Borrowed>()
  for (const [from, to] of scope.leases?.pairs ?? []) {
    const [grantor, holder] = [names[from], names[to]]
    if (grantor === undefined || holder === undefined) continue
    if (from === node) {
      const { state } = new Grants([holder], 1, limits, blindFrom(-limits.leaseMs, limits))
      lent.set(holder, { grants: state, now: 0, received: [] })
    }
    if (to === node) {
      borrowed.set(grantor, { held: new HeldLeases([grantor], 1, limits).state, now: 0 })
    }
  }
  return { lent, borrowed }
}

/** After a restart: nothing is held, and every peer may hold what was granted before. */
export function restartedPairs(
  setting: Setting,
  { lent, borrowed }: LeasePairs,
  incarnation: number,
): LeasePairs {
  const limits = buildLimits(setting)
  return {
    lent: new Map(
      [...lent].map(([peer, { now, received }]) => {
        const { state } = new Grants([peer], incarnation, limits, blindFrom(now, limits))
        return [peer, { grants: state, now, received: latestAt(received, now) }]
      }),
    ),
    borrowed: new Map(
      [...borrowed.keys()].map((peer) => [
        peer,
        { held: new HeldLeases([peer], incarnation, limits).state, now: 0 },
      ]),
    ),
  }
}

function latestAt(received: readonly Received[], at: number): readonly Received[] {
  const last = [...received].sort((a, b) => a.incarnation - b.incarnation || a.sent - b.sent).at(-1)
  return last === undefined ? [] : [{ ...last, at }]
}

/** The holder's clock may move: something is held, or may be by an answer on its way. */
export function mayLapse({ held, now }: Borrowed, ticks: number): boolean {
  return [...held.values()].some(({ askedMs }) => askedMs + ticks * tickMs > now)
}

/** The grantor's clock may move as far as this pair alone can say. */
export function mayExpire({ grants, now }: Lent): boolean {
  return [...grants.peers.values()].some(
    ({ grant, blindUntilMs }) => blindUntilMs > now || (grant !== undefined && grant.untilMs > now),
  )
}

/** Whether the holder no longer counts on any request sent a lease time before the next tick. */
export function isExpiryDue(
  { now, received }: Lent,
  ticks: number,
  holder: { readonly incarnation: number; readonly now: number },
): boolean {
  const leaseMs = ticks * tickMs
  return received.every(
    ({ at, incarnation, sent }) =>
      at + leaseMs > now + tickMs ||
      holder.incarnation > incarnation ||
      holder.now >= sent + leaseMs,
  )
}

/** The real tables during one step. What `Leases` does for a node is done here for each pair. */
export class PairedLeases extends Leases {
  readonly #leaseMs: number
  readonly #isEnding: boolean
  readonly #lent: Map<NodeId, { grants: Grants; now: number; received: readonly Received[] }>
  readonly #borrowed: Map<NodeId, { held: HeldLeases; now: number }>

  /** `isEnding`: the node grants none any more, and asks for none, since its voters change. */
  constructor(
    setting: Setting,
    node: NodeId,
    incarnation: number,
    pairs: LeasePairs,
    isEnding = false,
  ) {
    const limits = buildLimits(setting)
    super({ node, nodes: [], incarnation, limits, startedMs: 0 })
    this.#leaseMs = limits.leaseMs
    this.#isEnding = isEnding
    this.#lent = new Map(
      [...pairs.lent].map(([peer, { grants: state, now, received }]) => {
        const grants = new Grants([peer], incarnation, limits, blindFrom(now, limits))
        grants.state = state
        return [peer, { grants, now, received }]
      }),
    )
    this.#borrowed = new Map(
      [...pairs.borrowed].map(([peer, { held: state, now }]) => {
        const held = new HeldLeases([peer], incarnation, limits)
        held.state = state
        return [peer, { held, now }]
      }),
    )
  }

  get pairs(): LeasePairs {
    return {
      lent: new Map(
        [...this.#lent].map(([peer, { grants, now, received }]) => [
          peer,
          { grants: grants.state, now, received },
        ]),
      ),
      borrowed: new Map(
        [...this.#borrowed].map(([peer, { held, now }]) => [peer, { held: held.state, now }]),
      ),
    }
  }

  override enter(): boolean {
    return this.#borrowed.size > 0
  }

  override leave(): void {
    return undefined
  }

  override confirmHeld(peer: NodeId, term: Term): boolean {
    const found = this.#borrowed.get(peer)
    return found?.held.confirmHeld(peer, term, readingAt(found.now)) === true
  }

  override confirmLive(peer: NodeId): boolean {
    const found = this.#borrowed.get(peer)
    return found?.held.confirmLive(peer, readingAt(found.now)) === true
  }

  override register(registering: Registering): Term | undefined {
    if (this.#isEnding) return undefined
    const found = this.#lent.get(registering.from)
    return found?.grants.register({ ...registering, now: found.now })
  }

  override release(group: GroupId, from: NodeId, attempt: number): void {
    this.#lent.get(from)?.grants.release(group, from, attempt)
  }

  override holders(group: GroupId, position: Position): readonly LeaseHolder[] {
    return [...this.#lent.values()].flatMap(({ grants, now }) =>
      grants.holders(group, position, now),
    )
  }

  override revoke(group: GroupId, position: Position, holder: NodeId): boolean {
    const found = this.#lent.get(holder)
    return found === undefined || found.grants.revoke(group, position, holder, found.now)
  }

  override noteSlow(): boolean {
    return false
  }

  override ask(peer: NodeId): readonly LeaseToldRenew[] {
    if (this.#isEnding) return []
    const found = this.#borrowed.get(peer)
    const renewal = found?.held.renewal(peer, readingAt(found.now))
    return renewal === undefined ? [] : [[peer, renewal]]
  }

  take(from: NodeId, message: LeaseMessage, drop: (group: GroupId) => void): readonly LeaseTold[] {
    if (message.kind === 'renew') {
      const found = this.#lent.get(from)
      if (found === undefined || this.#isEnding) return []
      const { incarnation, sentAt } = message.asked
      const { now } = found
      const answer = found.grants.onRenew(from, message, now)
      const here = found.received.filter(({ at }) => at === now)
      const earlier = found.received.filter(({ at }) => at !== now)
      const received = { at: now, incarnation, sent: sentAt / 1000 }
      found.received = [...earlier, ...latestAt([...here, received], now)]
      return answer === undefined ? [] : [[from, answer]]
    }
    if (message.kind === 'renewed') {
      const { held, now } = present(this.#borrowed.get(from), 'explore: a lease of no pair')
      return held.onRenewed(from, message, readingAt(now), drop) ? this.ask(from) : []
    }
    if (message.kind === 'hand-back') this.#lent.get(from)?.grants.onHandBack(from, message)
    return []
  }

  /** The node hears that its voters change: what `Leases.end` does with the leases that it holds. */
  giveUp(): readonly LeaseTold[] {
    return [...this.#borrowed.values()].flatMap(({ held }) => held.giveUp())
  }

  /** One tick passes for the holder. */
  lapse(peer: NodeId): void {
    const found = this.#borrowed.get(peer)
    if (found !== undefined) found.now += tickMs
  }

  /** One tick passes for the grantor. */
  expire(peer: NodeId): void {
    const found = this.#lent.get(peer)
    if (found === undefined) return
    found.now += tickMs
    found.received = found.received.filter(({ at }) => at + this.#leaseMs > found.now)
  }
}

type LeaseToldRenew = ReturnType<Leases['ask']>[number]

/**
 * The wall clock stands still: it could only end leases earlier, and no rule may rest on it here.
 */
function readingAt(now: number): ClockReading {
  return { now, wall: 0 }
}
