/**
 * Takes snapshots of groups from peers, where the entries that this node lacks are not to be had, or are many: some groups at
 * once, part by part. Each part goes into a sink beside the group, and the group goes on until all parts are here.
 */
import type { GroupId, NodeId, Position } from '../base/ids.ts'
import type { Limits } from '../base/limits.ts'
import type { Clock } from '../ports/clock.ts'
import type { Trace } from '../ports/trace.ts'
import type { Message, SnapshotPart, SnapshotRefused, SnapshotRow } from '../replication/message.ts'

/** Where a snapshot goes. */
export interface SnapshotSink {
  /** The next part. False: it is of no form that a store has. */
  add(rows: readonly SnapshotRow[], state: Uint8Array): Promise<boolean>
  /** All of it is here: the group becomes what it says. False: the group stays, since the checksum is another one, or the group is further. */
  finish(position: Position, crc: number): Promise<boolean>
  /** No more of it comes. Resolves when nothing of it is left: then another one of the group may begin. */
  abandon(): Promise<void>
}

export interface SnapshotTakingParts {
  readonly clock: Clock
  readonly trace: Trace
  readonly limits: Pick<Limits, 'snapshotsMax' | 'phaseTimeoutMs'>
  drawNumber(): number
  send(to: NodeId, message: Message): void
  /** A snapshot of the group is of use above this position. */
  above(group: GroupId): Position
  /** Whether a client waits for what the group lacks. */
  isAwaited(group: GroupId): boolean
  begin(group: GroupId): SnapshotSink
  onFailed(error: unknown): void
}

/** A peer has a snapshot to give. */
interface Offer {
  readonly from: NodeId
  readonly epoch: number
  readonly position: Position
}

/** A snapshot on its way here. */
interface Taking extends Offer {
  readonly group: GroupId
  readonly transfer: number
  readonly sink: SnapshotSink
  /** A client waited for it when it began. */
  readonly isAwaited: boolean
  /** The part that this node has asked for last. */
  part: number
  /** Of the snapshot, once its first part is here. */
  told: Position | undefined
  askedMs: number
  asks: number
  /** A part is being put down, or all of them go. */
  isBusy: boolean
}

/** This node asks for a part again after this many times `phaseTimeoutMs`: a peer sends many at once, at its own pace. */
const patience = 10
/** Then the snapshot is given up; the group asks anew. */
const asksMax = 4
/** Offers that wait, for each snapshot that may come at once. */
const offersPerTaking = 16

export class SnapshotTaking {
  readonly #parts: SnapshotTakingParts
  readonly #offers = new Map<GroupId, Offer>()
  readonly #taking = new Map<GroupId, Taking>()
  /** Groups that come from another replica set: the parts of both would lie under the same keys. */
  readonly #reserved = new Set<GroupId>()
  #isStopped = false
  #taken = 0

  constructor(parts: SnapshotTakingParts) {
    this.#parts = parts
  }

  /** Since the start: those that were taken whole. On their way, or waiting for their turn. */
  get figures(): { readonly groups: number; readonly open: number; readonly waiting: number } {
    return { groups: this.#taken, open: this.#taking.size, waiting: this.#offers.size }
  }

  /** Whether more groups may be gone after that may need one. */
  get hasRoom(): boolean {
    return this.#offers.size < offersPerTaking * this.#parts.limits.snapshotsMax
  }

  /** The peer has a snapshot of the group, of this position or a higher one. */
  offer(group: GroupId, offer: Offer): void {
    if (this.#isStopped || this.#taking.has(group)) return
    this.#offers.set(group, offer)
    this.go()
  }

  /** Whether a snapshot of the group is on its way, or waits for its turn. */
  isComing(group: GroupId): boolean {
    return this.#taking.has(group) || this.#offers.has(group)
  }

  /** No snapshot of the group begins until the returned call. Undefined: one is on its way. */
  reserve(group: GroupId): (() => void) | undefined {
    if (this.#taking.has(group) || this.#reserved.has(group)) return undefined
    this.#reserved.add(group)
    return () => {
      this.#reserved.delete(group)
      this.go()
    }
  }

  /** How long the group may still wait for a snapshot before it asks other peers; 0: none is on its way. */
  patienceMs(group: GroupId): number {
    return this.isComing(group) ? this.#parts.limits.phaseTimeoutMs : 0
  }

  /**
   * Begins as many as there is room for, and asks again for what did not come. Called now and then. Groups that clients
   * wait for have room of their own: they do not wait behind large groups that no client waits for.
   */
  go(): void {
    if (this.#isStopped) return
    const { clock, limits, above } = this.#parts
    const nowMs = clock.monotonicMs()
    for (const taking of this.#taking.values()) {
      const isLate = nowMs - taking.askedMs >= patience * limits.phaseTimeoutMs
      if (taking.isBusy || !isLate) continue
      if (taking.asks >= asksMax) this.#giveUp(taking)
      else this.#ask(taking)
    }
    for (const [group, offer] of this.#offers) {
      const isAwaited = this.#parts.isAwaited(group)
      if (this.#reserved.has(group) || this.#countOf(isAwaited) >= limits.snapshotsMax) continue
      this.#offers.delete(group)
      if (offer.position > above(group)) this.#begin(group, offer, isAwaited)
    }
  }

  #countOf(isAwaited: boolean): number {
    let count = 0
    for (const taking of this.#taking.values()) if (taking.isAwaited === isAwaited) count += 1
    return count
  }

  #begin(group: GroupId, offer: Offer, isAwaited: boolean): void {
    const { begin, drawNumber } = this.#parts
    const [transfer, sink] = [drawNumber(), begin(group)]
    const begun = { part: 0, told: undefined, askedMs: 0, asks: 0, isBusy: false }
    const taking = { ...offer, group, transfer, sink, isAwaited, ...begun }
    this.#taking.set(group, taking)
    this.#ask(taking)
  }

  #ask(taking: Taking): void {
    const { group, epoch, transfer, part } = taking
    taking.askedMs = this.#parts.clock.monotonicMs()
    taking.asks += 1
    const above = this.#parts.above(group)
    const kind = 'snapshot-request'
    this.#parts.send(taking.from, { kind, group, epoch, transfer, part, above })
  }

  onPart(from: NodeId, message: SnapshotPart): void {
    const taking = this.#of(from, message)
    if (taking === undefined || taking.isBusy || message.part !== taking.part) return
    const { position, rows, state, crc } = message
    taking.told ??= position
    if (taking.told !== position) return this.#giveUp(taking)
    taking.isBusy = true
    this.#add(taking, rows, state, crc).catch((error: unknown) => this.#parts.onFailed(error))
  }

  async #add(
    taking: Taking,
    rows: readonly SnapshotRow[],
    state: Uint8Array,
    crc: number | undefined,
  ): Promise<void> {
    const isWell = await taking.sink.add(rows, state)
    if (this.#isStopped || this.#taking.get(taking.group) !== taking) return
    if (!isWell) {
      taking.isBusy = false
      return this.#giveUp(taking)
    }
    if (crc === undefined) {
      taking.isBusy = false
      taking.part += 1
      taking.asks = 0
      return this.#ask(taking)
    }
    if (await taking.sink.finish(taking.told ?? 0, crc)) this.#taken += 1
    this.#taking.delete(taking.group)
    this.go()
  }

  onRefused(from: NodeId, message: SnapshotRefused): void {
    const taking = this.#of(from, message)
    if (taking !== undefined && !taking.isBusy) this.#giveUp(taking)
  }

  #of(from: NodeId, { group, transfer }: SnapshotPart | SnapshotRefused): Taking | undefined {
    const taking = this.#taking.get(group)
    return taking?.from === from && taking.transfer === transfer ? taking : undefined
  }

  /**
   * The group asks for what it lacks again, from whichever peer. The next snapshot of the group begins once the
   * sink is clear: the parts of both lie under the same keys.
   */
  #giveUp(taking: Taking): void {
    this.#parts.trace.mark('snapshot_not_taken')
    taking.isBusy = true
    taking.sink.abandon().then(
      () => {
        this.#taking.delete(taking.group)
        this.go()
      },
      (error: unknown) => this.#parts.onFailed(error),
    )
  }

  /** The peer is gone. A part that is being put down ends by itself. */
  forget(peer: NodeId): void {
    for (const [group, { from }] of this.#offers) if (from === peer) this.#offers.delete(group)
    for (const taking of this.#taking.values()) {
      if (taking.from === peer && !taking.isBusy) this.#giveUp(taking)
    }
  }

  stop(): void {
    this.#isStopped = true
    this.#offers.clear()
  }
}
