/**
 * One node's table of groups: a deterministic function of events, the clock readings that come with
 * them, and the records it is handed. It holds the only references to group state.
 *
 * A group missing from memory is never taken for new: its record is fetched first, and comes as
 * present, never written (an empty state, no records), or with faulty positions. Only a quiescent
 * group, all of whose state is in the data store, may leave memory.
 */
import { assert } from '../base/assert.ts'
import { numbersFrom } from '../base/drawn-numbers.ts'
import type { GroupId, NodeId, Position, Timestamp } from '../base/ids.ts'
import type { Limits } from '../base/limits.ts'
import type { Leases } from '../lease/leases.ts'
import type { ClockReading as LeaseReading } from '../lease/clock-reading.ts'
import type { Placement, ReplicaSet } from '../placement/placement.ts'
import type { Trace } from '../ports/trace.ts'
import { jitter, type Context, type Effect } from '../replication/effect.ts'
import { openRecords, type OpenRecords } from '../replication/epoch.ts'
import { stepGroup, type GroupEvent } from '../replication/group.ts'
import { acceptedAsItLeaves } from '../replication/acceptance.ts'
import type { Accepted } from '../replication/message.ts'
import { resume } from '../replication/learn.ts'
import {
  highestKnown,
  isAwaited,
  isQuiescent,
  noDeadline,
  nextDeadline,
  restoreLog,
  takeWakes,
  type GroupLog,
  type Standing,
} from '../replication/log.ts'
import type { OwnShares } from '../placement/shares.ts'
import { findLeader } from '../replication/propose.ts'
import { isLeased, leasedPosition, readBarrier } from '../replication/read-lease.ts'
import type { GroupState } from '../replication/state.ts'
import type { GroupRecord, RecordSource } from './group-record.ts'
import { Homes } from './homes.ts'
import { findRecorded } from './intent-outcome.ts'
import type { IntentName, IntentOutcome } from '../group/replica-port.ts'

/** Readings of the world at one event. */
export interface Reading {
  readonly wall: Timestamp
  readonly now: number
  readonly stamp: Timestamp
  readonly mayPropose: boolean
  readonly isAdmitted: boolean
  readonly isRestored: boolean
}

type Writable<T> = { -readonly [K in keyof T]: T[K] }

/** A node's part in the present epoch, group by group. */
export interface EpochView {
  /** The voters of the group's bucket in the present epoch, given those of the configuration. */
  setOf(configured: ReplicaSet): ReplicaSet
  standingOf(group: GroupId): Standing
  /** The buckets that the set has given away, and got. */
  readonly shares: Pick<OwnShares, 'version' | 'of' | 'begins'>
}

export interface ReplicaOptions {
  readonly node: NodeId
  readonly incarnation: number
  readonly placement: Placement
  readonly limits: Limits
  readonly trace: Trace
  readonly source: RecordSource
  readonly leases: Leases
  /** This node's part in the present epoch. */
  readonly epochs: EpochView
  /** How long a fetch of the group's entries may still take (`../peers/fetches.ts`); 0: none is under way. */
  fetchPatienceMs(group: GroupId): number
}

/** The position up to which a group is applied, its timestamp, and the group's horizon there. */
export interface Applied {
  readonly position: Position
  readonly timestamp: Timestamp
  readonly horizon: Timestamp
  /** The group's last entry in this set is applied: its log goes on in that set. */
  readonly movedTo?: string | undefined
}

/** A group in memory. `isUsed`: since it was last looked at for eviction. */
interface Held {
  readonly log: GroupLog
  /** Only a part of what the stores hold of it was read. */
  readonly isPart: boolean
  isUsed: boolean
  /** The version of the shares by which the group has its home. */
  shares: number
}

/** The leases that a node counts on or has granted, for checkers that look at all nodes at once. */
export type ObservedLeases = Pick<Replica, 'leasedThrough' | 'eachCounted' | 'lists'>

function isAwaiting(log: GroupLog): boolean {
  const reads = log.readsWaiting.length > 0 || log.readRound !== undefined
  return reads || log.waiting.size > 0 || log.forwarded.size > 0 || log.proposal !== undefined
}

function hasNoVote(standing: Standing): boolean {
  return standing === 'sealed' || standing === 'reading'
}

function haveSameVoters({ voters }: ReplicaSet, now: ReplicaSet): boolean {
  return voters.length === now.voters.length && voters.every((one, at) => one === now.voters[at])
}

/** How many groups are looked at to find one that may leave memory. */
const evictionTries = 8

export class Replica {
  readonly #options: ReplicaOptions
  readonly #groups = new Map<GroupId, Held>()
  /** The group that is looked at for eviction next: a hand that goes round and round. */
  #hand: Iterator<[GroupId, Held]>
  readonly #suspected = new Set<NodeId>()
  /** One object for all steps: only the readings and the list of effects change. */
  readonly #context: Omit<Context, keyof Reading> & Writable<Reading>
  #drawn: number
  #effects: Effect[] = []
  readonly #homes: Homes

  constructor(options: ReplicaOptions) {
    this.#options = options
    this.#hand = this.#groups.entries()
    this.#drawn = numbersFrom(options.incarnation)
    const { node, incarnation, limits, trace, leases, placement } = options
    this.#homes = new Homes(placement, node, options.epochs.shares)
    this.#context = {
      node,
      incarnation,
      limits,
      trace,
      leases,
      wall: 0,
      now: 0,
      stamp: 0,
      mayPropose: false,
      isAdmitted: false,
      isRestored: false,
      isSuspected: (peer) => this.#suspected.has(peer),
      fetchPatienceMs: (group) => options.fetchPatienceMs(group),
      drawNumber: () => this.drawNumber(),
      emit: (effect) => this.#effects.push(effect),
    }
  }

  /** Of this incarnation: no number of an earlier or a later one is drawn again. */
  drawNumber(): number {
    this.#drawn += 1
    const end = numbersFrom(this.#options.incarnation + 1)
    assert(this.#drawn < end, 'PAX-5: the numbers of an incarnation are used up')
    return this.#drawn
  }

  get groupsInMemory(): number {
    return this.#groups.size
  }

  /** The group takes one step; its effects come back in order. */
  step(group: GroupId, event: GroupEvent, reading: Reading): readonly Effect[] {
    this.#effects = []
    const context = this.#context
    assert(reading.now >= context.now, 'LEASE-2: the monotonic clock goes back')
    assert(reading.stamp > 0, 'CLOCK-1: an entry would be stamped by no clock')
    context.wall = reading.wall
    context.now = reading.now
    context.stamp = reading.stamp
    context.mayPropose = reading.mayPropose
    context.isAdmitted = reading.isAdmitted
    assert(
      reading.isRestored || !context.isRestored,
      'LOG-19: a restored replica forgets that it is',
    )
    context.isRestored = reading.isRestored
    // Before, not after: only now have the effects of the last step reached the data store.
    this.#evict()
    const isHeld = this.#groups.has(group)
    const log = this.#open(group, context)
    this.#takeUpEpoch(log, context)
    this.#takeUpHome(log)
    // A group that has left memory since its snapshot was taken in is read as the store has it now: there is nothing to take up.
    if (isHeld || event.kind !== 'install') stepGroup(log, context, event)
    this.#scheduleWake(log, context)
    return this.#effects
  }

  /**
   * The epoch of the node becomes the group's with its next step: the change of a set's voters costs a node nothing for a group
   * that is not used.
   */
  #takeUpEpoch(log: GroupLog, context: Context): void {
    if (this.#isOfPresent(log)) return
    const { epochs, placement } = this.#options
    const set = epochs.setOf(placement.replicasOf(log.group))
    const standing = epochs.standingOf(log.group)
    const isInEpoch = standing !== 'sealed' && log.standing !== 'sealed'
    // Readers come and go without an epoch.
    if (isInEpoch && set.epoch === log.set.epoch) {
      if (haveSameVoters(log.set, set)) log.set = set
      else stepGroup(log, context, { kind: 'voters', set })
    }
    if (this.#isOfPresent(log)) return
    const isOver = standing === 'sealed' || set.epoch > log.set.epoch
    this.#endEpoch(log, context, isOver)
    // Else the transactions that wait here would be proposed in the next epoch at once, in a bucket that the epoch has closed.
    this.#takeUpHome(log)
    // A store without a vote stays outside of every epoch: all that it needs of the voters is whom to ask for entries.
    if (standing === 'sealed') {
      log.set = set
      return
    }
    if (standing === 'reading') return stepGroup(log, context, { kind: 'follow', set })
    if (set !== log.set) stepGroup(log, context, { kind: 'epoch', set })
    if (standing === 'voting' && log.standing !== 'voting')
      stepGroup(log, context, { kind: 'gate' })
    assert(set.epoch >= log.set.epoch, 'MOVE-1: the epoch of a group goes back')
    assert(log.standing === standing, 'MOVE-2: a group has another part in the epoch than its node')
  }

  /** `isOver`: the epoch is, or this node's part in it. A reader, or a node before its gate, has nothing to seal. */
  #endEpoch(log: GroupLog, context: Context, isOver: boolean): void {
    if (log.standing === 'voting') stepGroup(log, context, { kind: 'seal' })
    else if (isOver && log.standing !== 'sealed') stepGroup(log, context, { kind: 'leave' })
  }

  /** A bucket closes with an epoch: all that was under way at the open position has ended, and nothing has begun in the next one. */
  #takeUpHome(log: GroupLog): void {
    // A share is about the first entry alone.
    if (log.state.position > 0) return
    const held = this.#groups.get(log.group)
    const { version } = this.#options.epochs.shares
    if (held === undefined || held.shares === version) return
    held.shares = version
    const home = this.#homes.of(log.group)
    const isQuiet = log.proposal === undefined && log.lease === undefined
    assert(!home.isGuest || isQuiet, 'MOVE-14: a bucket closes at a node that acts in it')
    log.home = home
  }

  #isOfPresent({ group, set, standing }: GroupLog): boolean {
    const { epochs, placement } = this.#options
    return (
      standing === epochs.standingOf(group) && set === epochs.setOf(placement.replicasOf(group))
    )
  }

  /** A wake-up of the group has come. False when nothing waits for time any more. */
  isAwaitingTime(group: GroupId, now: number): boolean {
    const log = this.#groups.get(group)?.log
    return log !== undefined && takeWakes(log, now) && nextDeadline(log) !== noDeadline
  }

  /** A peer's frames stopped or came back. Returns the groups that have to act on it. */
  suspect(peer: NodeId, isSuspected: boolean): readonly GroupId[] {
    assert(peer !== this.#options.node, 'LIVE-1: a node suspects itself')
    if (!isSuspected) {
      this.#suspected.delete(peer)
      return []
    }
    this.#suspected.add(peer)
    const waiting = [...this.#groups.values()].filter(({ log }) => log.forwarded.size > 0)
    return waiting.map(({ log }) => log.group)
  }

  #toApplied({ position, timestamp, horizon, movedTo }: GroupState): Applied {
    const isElsewhere = movedTo !== undefined && movedTo !== this.#homes.set
    return { position, timestamp, horizon, movedTo: isElsewhere ? movedTo : undefined }
  }

  /** How far the group is applied here. */
  applied(group: GroupId): Applied {
    return this.#toApplied(this.#readState(group))
  }

  /** The same of a group in memory: it has taken up what it can by itself, as every step does. */
  appliedInMemory(group: GroupId): Applied | undefined {
    const held = this.#groups.get(group)
    if (held === undefined) return undefined
    held.isUsed = true
    return this.#toApplied(held.log.state)
  }

  /** Whether this node votes in the group, which is in memory, and has nothing open or damaged in it. */
  isQuiet(group: GroupId): boolean {
    const held = this.#groups.get(group)
    if (held === undefined || held.isPart) return false
    const { log } = held
    if (log.standing !== 'voting' || !this.#isOfPresent(log)) return false
    return highestKnown(log) === log.state.position
  }

  /**
   * The point that a current read may be served at without a message, at the time of the reading; undefined
   * when a peer has to be asked, or something waited for.
   */
  leased(group: GroupId, reading: LeaseReading): Applied | undefined {
    const held = this.#groups.get(group)
    const lease = held?.log.lease
    if (held === undefined || lease === undefined || !this.#isOfPresent(held.log)) return undefined
    const { position } = held.log.state
    if (leasedPosition(held.log, this.#at(reading)) !== position) return undefined
    assert(
      position >= held.log.minReadPosition,
      'LEASE-5: served alone below what an answer told of',
    )
    assert(position >= highestKnown(held.log), 'LEASE-3: served alone below what is accepted here')
    held.isUsed = true
    lease.usedMs = reading.now
    return this.#toApplied(held.log.state)
  }

  /** Whether what `leased` gave, in this very call, may still be served at a later reading. */
  isStillLeased(group: GroupId, reading: LeaseReading): boolean {
    const held = this.#groups.get(group)
    return (
      held !== undefined && this.#isOfPresent(held.log) && isLeased(held.log, this.#at(reading))
    )
  }

  /**
   * The position that such a read has to see, applied here or not; undefined: it has to ask. For observers.
   */
  leasedThrough(group: GroupId, reading: LeaseReading): Position | undefined {
    const { node, leases } = this.#options
    const log = this.#groups.get(group)?.log
    const judge = { ...reading, node, leases: { confirmHeld: leases.isHeld.bind(leases) } }
    if (log === undefined || !this.#isOfPresent(log)) return undefined
    return isLeased(log, judge) ? readBarrier(log) : undefined
  }

  #at({ now, wall }: LeaseReading): Context {
    this.#context.now = now
    this.#context.wall = wall
    return this.#context
  }

  /**
   * Calls `visit` for each group in which this node counts on a registration by the grantor, with the
   * lowest position that it may lack there; for observers.
   */
  eachCounted(
    reading: LeaseReading,
    grantor: NodeId,
    visit: (group: GroupId, position: Position) => void,
  ): void {
    const { leases } = this.#options
    for (const group of leases.entered) {
      const log = this.#groups.get(group)?.log
      const term = log?.lease?.grants.get(grantor)
      if (log === undefined || term === undefined || !this.#isOfPresent(log)) continue
      if (leases.isHeld(grantor, term, reading)) visit(group, readBarrier(log) + 1)
    }
  }

  /** Whether this node takes the peer for a holder that may lack the position; for observers. */
  lists(holder: NodeId, group: GroupId, position: Position, now: number): boolean {
    return this.#options.leases.isHolder(holder, group, position, now)
  }

  /** The acceptance as it leaves this node, at `now` of the monotonic clock. */
  accepted(effect: Effect & { readonly kind: 'send-accepted' }, now: number): Accepted {
    return acceptedAsItLeaves(effect, this.#options.leases, now)
  }

  /** The outcome of an intent in the group's applied state. */
  outcome(group: GroupId, intent: IntentName): IntentOutcome {
    return findRecorded(this.#readState(group), intent)
  }

  #readState(group: GroupId): GroupState {
    return this.#groups.get(group)?.log.state ?? this.#options.source.load(group).state
  }

  /** How far the group is applied here and what stands above that, whether or not it is in memory. */
  look(group: GroupId): OpenRecords & { readonly applied: Position } {
    const held = this.#groups.get(group)?.log
    const { state, records }: Pick<GroupRecord, 'state' | 'records'> =
      held ?? this.#options.source.load(group)
    const found = openRecords(records)
    const isAbove = found.open.every(({ position }) => position > state.position)
    assert(isAbove, 'PAX-8: an applied position is told as an open one')
    return { applied: state.position, ...found }
  }

  /** The groups in memory in which a transaction or a read waits. */
  waiting(): readonly GroupId[] {
    const found: GroupId[] = []
    for (const [group, { log }] of this.#groups) if (isAwaiting(log)) found.push(group)
    return found
  }

  /** Groups in memory that have, or may come to have, something in them. */
  known(): readonly GroupId[] {
    const found: GroupId[] = []
    for (const [group, { log }] of this.#groups) {
      if (log.catchUp !== undefined || highestKnown(log) > 0) found.push(group)
    }
    return found
  }

  /** Whether a client waits for what the group lacks. */
  isAwaited(group: GroupId): boolean {
    const log = this.#groups.get(group)?.log
    return log !== undefined && isAwaited(log)
  }

  /** The node that is to propose the open position; undefined when the group is not in memory. */
  leaderInMemory(group: GroupId): NodeId | undefined {
    const log = this.#groups.get(group)?.log
    return log === undefined ? undefined : findLeader(log).node
  }

  /** Whether the group is in memory with a part of its log. */
  holdsPart(group: GroupId): boolean {
    return this.#groups.get(group)?.isPart === true
  }

  /** Whether more of the group is decided than its last step has applied. */
  isApplying(group: GroupId): boolean {
    const log = this.#groups.get(group)?.log
    return log !== undefined && log.applyDeadline !== noDeadline
  }

  /** That part is applied and durable: the next step reads on from there. */
  forgetPart(group: GroupId): void {
    assert(this.holdsPart(group), 'LOG-7: a group is forgotten that was read whole')
    const log = this.#groups.get(group)?.log
    const isAwaited = log !== undefined && (log.waiting.size > 0 || log.lease !== undefined)
    assert(!isAwaited, 'LOG-1: a group was asked for before its log was read')
    this.#groups.delete(group)
  }

  #open(group: GroupId, context: Context): GroupLog {
    const known = this.#groups.get(group)
    if (known !== undefined) {
      known.isUsed = true
      return known.log
    }
    const { placement, limits, source, epochs } = this.#options
    const { state, records, decisions, isPart } = source.load(group)
    const set = epochs.setOf(placement.replicasOf(group))
    const isVoter = set.voters.includes(this.#options.node)
    const standing = epochs.standingOf(group)
    assert(isVoter || hasNoVote(standing), 'MOVE-7: a store votes in no group')
    assert(!isVoter || standing !== 'reading', 'RDR-1: a voter of the epoch reads in it')
    const log = restoreLog(group, set, state, records, limits, this.#homes.of(group))
    log.standing = standing
    assert(set.epoch >= 1, 'MOVE-1: a group is opened in no epoch')
    for (const [position, decision] of decisions) log.decisions.set(position, decision)
    this.#groups.set(group, { log, isPart, isUsed: true, shares: epochs.shares.version })
    resume(log, context)
    if (highestKnown(log) > log.state.position) {
      log.sweepDeadline = context.now + jitter(context, limits.sweepMs, log.state.position, 0)
    }
    return log
  }

  #scheduleWake(log: GroupLog, context: Context): void {
    const at = nextDeadline(log)
    // Those asked for before still come, and nothing takes one back: asked for again each time that an
    // earlier one has come, what a group waits long for would be asked for without end.
    if (at >= (log.wakes.at(-1) ?? noDeadline)) return
    assert(at < noDeadline, 'LIVE-1: a group asks to be woken at no time')
    log.wakes.push(at)
    context.emit({ kind: 'wake', group: log.group, at })
  }

  /**
   * Second chance: near enough to "the longest unused first", and use costs no reordering. The hand
   * is kept between steps: a new one would walk over all that left since the map was last laid out.
   */
  #evict(): void {
    const { groupsInMemoryMax } = this.#options.limits
    for (let tries = evictionTries; tries > 0 && this.#groups.size > groupsInMemoryMax; tries--) {
      const next = this.#hand.next()
      if (next.done === true) this.#hand = this.#groups.entries()
      else this.#evictUnlessUsed(...next.value)
    }
  }

  #evictUnlessUsed(group: GroupId, held: Held): void {
    const isFree = !held.isUsed && isQuiescent(held.log) && this.#options.source.isSettled(group)
    assert(!isFree || held.log.lease === undefined, 'LEASE-5: a lease is forgotten with its group')
    if (isFree) this.#groups.delete(group)
    held.isUsed = false
  }
}
