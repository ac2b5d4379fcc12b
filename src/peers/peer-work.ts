/**
 * Work between this node and its peers that hardly a client waits for: slices (LIVE-6), and the work in
 * them; and the scrub, which gives way to clients and peers, too.
 */
import type { GroupId, NodeId, Position } from '../base/ids.ts'
import type { Limits } from '../base/limits.ts'
import type { Clock } from '../ports/clock.ts'
import type { Journal } from '../ports/journal.ts'
import type { OrderedStore } from '../ports/storage.ts'
import type { Trace } from '../ports/trace.ts'
import type { GroupEvent } from '../replication/group.ts'
import type { Entries, Message, SnapshotMessage } from '../replication/message.ts'
import { Fetches } from './fetches.ts'
import type { Backpressure } from './backpressure.ts'
import { Scrubber } from '../log/scrubber.ts'
import { Returning } from './returning.ts'
import { Slices } from './slices.ts'
import { CatchUpReplies, type ReadableLog, type SnapshotSource } from './replies.ts'
import { SnapshotSupply, type ReadSnapshot } from './snapshot-supply.ts'
import { SnapshotTaking, type SnapshotSink } from './snapshot-taking.ts'

export interface PeerWorkParts {
  readonly limits: Limits
  readonly clock: Clock
  readonly trace: Trace
  readonly log: ReadableLog
  /** The two that are scrubbed. */
  readonly stores: { readonly data: OrderedStore; readonly log: Journal }
  onLogDamaged(what: string): void
  readonly backpressure: Pick<Backpressure, 'mayFetch' | 'admits'>
  send(to: NodeId, message: Message): void
  hasRoomFor(to: NodeId): boolean
  /** Snapshots of groups: those that this node can send, and the place for those of peers. */
  readonly snapshots: SnapshotSource & {
    open(group: GroupId): ReadSnapshot | undefined
    /** A snapshot of the group was found damaged as it was read. */
    onDamaged(group: GroupId): void
    begin(group: GroupId): SnapshotSink
    /** A snapshot of the group is of use above this position. */
    above(group: GroupId): Position
    drawNumber(): number
  }
  /** How far the group is applied, if it is in memory. */
  applied(group: GroupId): Position | undefined
  /** Whether a client waits for what the group lacks. */
  isAwaited(group: GroupId): boolean
  /** Whether the nodes beside this one that are alive are a majority. */
  areOthersEnough(): boolean
  step(group: GroupId, event: GroupEvent): void
  onFailed(error: unknown): void
}

export class PeerWork {
  readonly slices: Slices
  readonly fetches: Fetches
  readonly replies: CatchUpReplies
  readonly scrubber: Scrubber
  readonly returning: Returning
  readonly supply: SnapshotSupply
  readonly taking: SnapshotTaking
  readonly #parts: PeerWorkParts
  #foreground = 0

  constructor(parts: PeerWorkParts) {
    this.#parts = parts
    const { limits, clock, trace, log, backpressure, send, hasRoomFor, step } = parts
    const { applied, isAwaited } = parts
    const foreground = (): number => this.#foreground
    this.slices = new Slices({ clock, trace, limits, foreground, onFailed: parts.onFailed })
    const { slices } = this
    this.fetches = new Fetches({
      ...{ limits, clock, trace, slices, send, applied, isAwaited },
      hasRoom: () => backpressure.mayFetch && this.taking.hasRoom,
      onTurn: (group, position, informer) => step(group, { kind: 'exists', position, informer }),
    })
    const { areOthersEnough } = parts
    const lacking = (): number => this.fetches.lacking
    this.returning = new Returning({ clock, trace, limits, lacking, areOthersEnough })
    const { stores, onLogDamaged, onFailed, snapshots } = parts
    this.replies = new CatchUpReplies({ log, snapshots, limits, trace, slices, send, hasRoomFor })
    const common = { clock, trace, limits, send, onFailed }
    this.supply = new SnapshotSupply({
      ...common,
      open: (group) => snapshots.open(group),
      onDamaged: (group) => snapshots.onDamaged(group),
    })
    this.taking = new SnapshotTaking({ ...common, ...snapshots, isAwaited })
    this.scrubber = new Scrubber({
      ...{ store: stores.data, log: stores.log, clock, trace, limits, foreground },
      ...{ onLogDamaged, onFailed },
    })
  }

  /** Something was done for a client, or for a node that waits. */
  noteForeground(): void {
    this.#foreground += 1
  }

  /** How long a peer may still take for what the group lacks; 0: nothing is on its way. */
  patienceMs(group: GroupId): number {
    return Math.max(this.fetches.patienceMs(group), this.taking.patienceMs(group))
  }

  /** The peer is gone: another one has to send its part. */
  forget(peer: NodeId): void {
    this.fetches.forget(peer)
    this.supply.forget(peer)
    this.taking.forget(peer)
  }

  /** Now and then: goes on with what waits. */
  go(): void {
    this.fetches.go()
    this.taking.go()
    this.supply.look()
  }

  stop(): void {
    this.scrubber.stop()
    this.supply.stop()
    this.taking.stop()
    this.slices.stop()
  }

  onSnapshot(from: NodeId, message: SnapshotMessage): void {
    switch (message.kind) {
      case 'snapshot-request':
        return this.supply.ask(from, message)
      case 'snapshot-part':
        return this.taking.onPart(from, message)
      case 'snapshot-refused':
        return this.taking.onRefused(from, message)
    }
  }

  /**
   * The entries that this node asked the peer for. It keeps no more than that: the rest it asks for again.
   */
  onEntries(from: NodeId, message: Entries): void {
    const { limits, trace, step, isAwaited } = this.#parts
    if (message.entries.length === 0) {
      // Nothing to take up, and it must not come after the notice that makes the group ask anew.
      this.fetches.answered(from, message.group)
      const { group, epoch, snapshot: position } = message
      if (position !== undefined) this.taking.offer(group, { from, epoch, position })
      return step(message.group, { kind: 'message', from, message })
    }
    const lane = `entries of ${from}`
    if (this.slices.waiting(lane) >= 3 * limits.fetchesMax) {
      return trace.mark('unrequested_entries')
    }
    const pieces = this.#take(from, message)
    this.slices.add(lane, { name: 'entries', pieces }, isAwaited(message.group))
  }

  *#take(from: NodeId, message: Entries): Generator<number, void> {
    const { backpressure, trace, step } = this.#parts
    const { group, entries } = message
    // First: what the group asks for next waits for its turn.
    this.fetches.answered(from, group)
    if (!backpressure.admits(message)) return trace.mark('no_room_to_take_more')
    step(group, { kind: 'message', from, message })
    let bytes = 0
    for (const { value } of entries) bytes += value.length
    yield bytes
  }
}
