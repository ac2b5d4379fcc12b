/**
 * Takes this node through the gate of its epoch: asks the voters of the epoch before for their seals, carries the
 * acceptances that these tell of, and waits until all that their flushes name has come (MOVE-3, `gate.ts`).
 *
 * A damaged record makes a seal count for nothing in its group. Where that leaves a group too few seals, the group alone
 * stays outside: it is *blocked* until a further seal comes.
 *
 * Voters that are past their gates go on meanwhile. So the part of a seal that this node has to have is laid down once: each group as the
 * voter tells it first, and all that digests name by the time that they have come to the seal. Nothing that comes after that is part of the seal.
 */
import { assert } from '../base/assert.ts'
import type { GroupId, NodeId, Position } from '../base/ids.ts'
import { computeMajority } from '../placement/placement.ts'
import { compareBallots } from '../paxos/ballot.ts'
import type { Clock } from '../ports/clock.ts'
import type { Trace } from '../ports/trace.ts'
import type { GroupEvent } from '../replication/group.ts'
import type { EpochMessage, SealedGroup, SealPage } from '../replication/message.ts'
import type { Epochs } from './epochs.ts'
import type { GroupLook } from './seal-pages.ts'

/** A voter's seal, as far as its pages have come. */
interface TakenSeal {
  /** Undefined: no page has come. */
  through: number | undefined
  /** Each as the voter told it first, but for those whose records were damaged then. */
  groups: Map<GroupId, SealedGroup>
  /** The pages that are coming; they go to `groups` when the last one is here. */
  coming: Map<GroupId, SealedGroup>
  /** The positions that this node lacked when digests had named the flushes through the seal; undefined: they have not yet. */
  owed: Map<GroupId, Position> | undefined
  /** The next page begins behind this group. */
  next: GroupId | undefined
  isWhole: boolean
  askedMs: number
  /** Everything in it is here. */
  isTaken: boolean
}

export interface GateKeeperParts {
  readonly node: NodeId
  readonly epochs: Epochs
  readonly clock: Clock
  readonly trace: Trace
  readonly log: {
    heldGroups(): Iterable<GroupId>
    /** Resolves when all that was appended or noted before is durable. */
    sync(): Promise<void>
  }
  /** Batches of the data store: a group that a batch under way brings counts as applied. */
  readonly data: { readonly lastBatch: number; readonly durableBatch: number }
  /** Whether this node knows where it has voted. */
  isSound(): boolean
  /** Whether the group takes no step now: a snapshot is taking the place of its rows. */
  isAside(group: GroupId): boolean
  look(group: GroupId): GroupLook
  /** How far the group is applied here. */
  applied(group: GroupId): Position
  step(group: GroupId, event: GroupEvent): void
  send(to: NodeId, message: EpochMessage): void
  /** Whether all that the peer's flushes through this one name is here, or `isKnown`. */
  isTakenThrough(
    peer: NodeId,
    flush: number,
    isKnown: (group: GroupId, position: Position) => boolean,
  ): boolean
  requestDigest(peer: NodeId): void
  /** Has the peer name all its groups once more in this epoch, where it has not since this node's start. */
  requireDirectory(peer: NodeId, epoch: number): void
  /** Whether it has. */
  hasNamedAll(peer: NodeId, epoch: number): boolean
  /** The node votes in its epoch, in all groups that are not blocked. */
  onPassed(): void
  onFailed(error: unknown): void
}

/** After this time the node asks again for a page, or a digest, that has not come. */
const againMs = 200
/** Groups that it goes after each time: the next ones follow when these have come. */
const namedMax = 64

export class GateKeeper {
  readonly #parts: GateKeeperParts
  #seals = new Map<NodeId, TakenSeal>()
  #epoch = 0
  #isSyncing = false
  /** The data store's last batch as enough seals were taken. */
  #batch: number | undefined

  constructor(parts: GateKeeperParts) {
    this.#parts = parts
  }

  /** Whether there is a gate to pass, or groups are left outside of it. */
  get isBusy(): boolean {
    const { own, isKept } = this.#parts.epochs
    const isOutside = own.gated < own.epoch || own.blocked.length > 0
    return own.isMember && !own.isDoubted && isKept && own.epoch > 1 && isOutside
  }

  /** Goes on. Called every now and then as long as it is busy. */
  go(): void {
    if (!this.isBusy) return
    const { epochs, node } = this.#parts
    if (this.#epoch !== epochs.own.epoch) {
      this.#epoch = epochs.own.epoch
      this.#seals = new Map()
      this.#batch = undefined
    }
    for (const voter of epochs.before) if (voter !== node) this.#askFor(voter)
    this.#check()
  }

  #askFor(voter: NodeId): void {
    const { clock, send, requestDigest } = this.#parts
    const seal = this.#seals.get(voter) ?? emptySeal()
    this.#seals.set(voter, seal)
    const now = clock.monotonicMs()
    if (seal.isTaken || now - seal.askedMs < againMs) return
    seal.askedMs = now
    const owed = this.#owed(voter, seal)
    if (seal.isWhole && owed === undefined) return requestDigest(voter)
    if (owed !== undefined) this.#goAfterNamed(voter, seal, owed)
    // A voter that is past its gate accepts in this epoch, and digests name that. Pages of now tell it apart.
    const after = seal.next === undefined ? {} : { after: seal.next }
    send(voter, { kind: 'seal-request', epoch: this.#epoch, ...after })
  }

  /** The voter has sealed the epoch before: it may have had no seal when the question came to it. */
  onSealed(voter: NodeId): void {
    const seal = this.#seals.get(voter)
    if (seal?.isWhole === false) seal.askedMs = -againMs
    this.go()
  }

  onPage(from: NodeId, page: SealPage): void {
    const { trace } = this.#parts
    const seal = this.#seals.get(from)
    if (!this.isBusy || seal === undefined || seal.isTaken || page.epoch !== this.#epoch) return
    if (page.after !== seal.next) return
    if (!page.groups.every((told) => isCredible(told, page.epoch))) {
      return trace.mark('seal_with_acceptances_of_its_epoch')
    }
    for (const told of page.groups) {
      seal.coming.set(told.group, told)
      this.#goAfter(from, told)
      this.#carry(told)
    }
    // Of the first page: all that was accepted before the seal is in flushes through there.
    if (seal.through === undefined) seal.through = page.through
    seal.next = page.next
    if (page.next !== undefined) {
      seal.askedMs = -againMs
      return this.go()
    }
    for (const [group, { open }] of seal.groups) if (open === undefined) seal.groups.delete(group)
    for (const [group, told] of seal.coming)
      if (!seal.groups.has(group)) seal.groups.set(group, told)
    seal.coming = new Map()
    if (!seal.isWhole) seal.askedMs = -againMs
    seal.isWhole = true
    trace.mark('seal_taken')
    this.go()
  }

  /** The voter has applied what the notice may have been lost of, and what digests name late. */
  #goAfter(informer: NodeId, { group, applied: position }: SealedGroup): void {
    const { step, look } = this.#parts
    if (!this.#takesUp(group) || position <= look(group).applied) return
    step(group, { kind: 'exists', position, informer })
  }

  /**
   * The voter has applied the other positions that its flushes name. Groups ask the voters of this epoch for these anyway, and a voter
   * that leaves may be the one node that has them.
   */
  #goAfterNamed(voter: NodeId, { groups }: TakenSeal, owed: ReadonlyMap<GroupId, Position>): void {
    const { epochs, applied, step } = this.#parts
    if (epochs.voters.includes(voter)) return
    let left = namedMax
    for (const [group, position] of owed) {
      if (groups.has(group) || applied(group) >= position) continue
      if (this.#takesUp(group)) step(group, { kind: 'exists', position, informer: voter })
      left -= 1
      if (left === 0) return
    }
  }

  /**
   * The positions that this node lacked when digests had named the flushes through the seal, perhaps with some of later flushes; undefined:
   * they have not yet.
   */
  #owed(voter: NodeId, seal: TakenSeal): ReadonlyMap<GroupId, Position> | undefined {
    if (!seal.isWhole || seal.owed !== undefined) return seal.owed
    const { isTakenThrough } = this.#parts
    const lacking = new Map<GroupId, Position>()
    const isNamed = isTakenThrough(voter, seal.through ?? 0, (group, position) => {
      lacking.set(group, Math.max(position, lacking.get(group) ?? 0))
      return true
    })
    if (isNamed) seal.owed = lacking
    return seal.owed
  }

  /** Where the group is aside, an event would wait until it is back, which may be behind the gate. */
  #takesUp(group: GroupId): boolean {
    const { epochs, isAside } = this.#parts
    return epochs.standingOf(group) === 'before-gate' && !isAside(group)
  }

  #carry({ group, open = [] }: SealedGroup): void {
    const { step, look } = this.#parts
    if (!this.#takesUp(group)) return
    const { applied } = look(group)
    const acceptances = open.filter(({ position }) => position > applied)
    if (acceptances.length > 0) step(group, { kind: 'carry', acceptances })
  }

  #check(): void {
    for (const [voter, seal] of this.#seals) {
      if (!seal.isWhole || seal.isTaken) continue
      seal.isTaken = this.#hasNamedAll(voter) && this.#isTaken(voter, seal)
    }
    const { epochs, log, data, onFailed } = this.#parts
    if (this.#countSound() < computeMajority(epochs.before) || this.#isSyncing) return
    this.#batch ??= data.lastBatch
    // A snapshot stands in no flush: it is here for good with its batch.
    if (data.durableBatch < this.#batch) return
    const { own } = epochs
    const isFirst = own.gated < own.epoch
    // A group that is past the gate has voted: no damage that is found later takes that back.
    const blocked = this.#blockedBy(this.#sound()).filter(
      (one) => isFirst || own.blocked.includes(one),
    )
    const isNews = isFirst || blocked.length < own.blocked.length
    if (!isNews) return
    this.#isSyncing = true
    const epoch = this.#epoch
    log
      .sync()
      .then(() => {
        this.#isSyncing = false
        if (epoch === epochs.own.epoch) this.#pass(blocked)
      })
      .catch(onFailed)
  }

  #pass(blocked: readonly GroupId[]): void {
    const { epochs, trace, onPassed } = this.#parts
    // The node found out meanwhile that it has no part in the epoch.
    if (!this.isBusy) return
    const isMajority = this.#countSound() >= computeMajority(epochs.before)
    assert(isMajority, 'MOVE-3: a gate is passed without the seals of a majority')
    trace.mark(blocked.length === 0 ? 'gate_passed' : 'gate_passed_with_blocked_groups')
    if (blocked.length === 0) this.#seals = new Map()
    epochs.pass(blocked, onPassed)
  }

  /**
   * A snapshot stands in no flush, and the voter may have had groups by snapshots alone as it passed the gate of the epoch
   * before. A node that passed that gate as well has them. Any other one needs the voter's directory, of after its seal.
   */
  #hasNamedAll(voter: NodeId): boolean {
    const { requireDirectory, hasNamedAll } = this.#parts
    if (this.#countsOwn) return true
    requireDirectory(voter, this.#epoch)
    return hasNamedAll(voter, this.#epoch)
  }

  /** Everything that its flushes name is applied here, or its open acceptances are carried. */
  #isTaken(voter: NodeId, seal: TakenSeal): boolean {
    const { look, applied } = this.#parts
    const owed = this.#owed(voter, seal)
    let isAll = owed !== undefined
    for (const told of seal.groups.values()) {
      if (isHere(told, look(told.group))) continue
      isAll = false
      // Not carried: the group was put aside, or its page came before its epoch.
      this.#carry(told)
    }
    for (const [group, position] of owed ?? []) {
      isAll &&= seal.groups.has(group) || applied(group) >= position
    }
    return isAll
  }

  #countSound(): number {
    const taken = [...this.#seals.values()].filter(({ isTaken }) => isTaken)
    return taken.length + (this.#countsOwn ? 1 : 0)
  }

  get #countsOwn(): boolean {
    const { epochs, isSound } = this.#parts
    const { soundFor, epoch } = epochs.own
    return soundFor === epoch && isSound()
  }

  /** The groups in which each seal that counts is unsound, this node's own among them. */
  #sound(): readonly ReadonlySet<GroupId>[] {
    const taken = [...this.#seals.values()].filter(({ isTaken }) => isTaken)
    const others = taken.map(({ groups }) => {
      return new Set([...groups.values()].filter(({ open }) => open === undefined).map(groupOf))
    })
    return this.#countsOwn ? [...others, this.#ownUnsound()] : others
  }

  #ownUnsound(): ReadonlySet<GroupId> {
    const { log, look, epochs } = this.#parts
    const damaged = [...log.heldGroups()].filter((group) => look(group).damaged.length > 0)
    return new Set([...epochs.own.unsound, ...damaged])
  }

  #blockedBy(seals: readonly ReadonlySet<GroupId>[]): readonly GroupId[] {
    const majority = computeMajority(this.#parts.epochs.before)
    const doubtful = new Set(seals.flatMap((unsound) => [...unsound]))
    return [...doubtful].filter((group) => {
      return seals.filter((unsound) => !unsound.has(group)).length < majority
    })
  }
}

function emptySeal(): TakenSeal {
  const [groups, coming] = [new Map<GroupId, SealedGroup>(), new Map<GroupId, SealedGroup>()]
  const nothing = { through: undefined, groups, coming, next: undefined }
  return { ...nothing, isWhole: false, askedMs: -againMs, isTaken: false, owed: undefined }
}

function groupOf({ group }: SealedGroup): GroupId {
  return group
}

function isCredible({ open = [] }: SealedGroup, epoch: number): boolean {
  return open.every(({ ballot }) => ballot.epoch < epoch)
}

/** Whether this node has all that the voter had of the group, applied or accepted. */
function isHere(told: SealedGroup, { applied, open, damaged }: GroupLook): boolean {
  if (applied < told.applied) return false
  return (told.open ?? []).every(({ position, ballot }) => {
    // Where this node's own record is damaged it has no vote, and keeps nothing of others.
    if (position <= applied || damaged.includes(position)) return true
    const kept = open.find((one) => one.position === position)
    return kept !== undefined && compareBallots(kept.ballot, ballot) >= 0
  })
}
