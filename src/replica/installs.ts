/**
 * Puts snapshots of groups in the place of what this node has of them. While a snapshot comes, its group goes on as before. For
 * the switch itself the group is put aside: it takes no step, and no read looks at its rows. Its events and reads wait.
 *
 * SNAP-1  Only a higher position takes the place of a lower one; HEAL-5 has the one exception.
 * SNAP-4  No step and no read sees rows of one position beside the state of another.
 */
import { assert } from '../base/assert.ts'
import { crc32 } from '../base/bytes.ts'
import { StoreError } from '../base/errors.ts'
import type { GroupId, Position } from '../base/ids.ts'
import type { Limits } from '../base/limits.ts'
import type { PeerWorkParts } from '../peers/peer-work.ts'
import type { SnapshotSink } from '../peers/snapshot-taking.ts'
import type { Trace } from '../ports/trace.ts'
import type { GroupEvent } from '../replication/group.ts'
import type { SnapshotRow } from '../replication/message.ts'
import { decodeState, type GroupState } from '../replication/state.ts'
import type { DataStore } from '../store/data-store.ts'
import { crcOfRows, isWellFormed } from '../store/group-snapshot.ts'
import type { GroupHash } from '../store/group-hash.ts'
import { resumeSwitches, SnapshotIntake, type Taken } from '../store/snapshot-intake.ts'
import type { Comparing } from './comparing.ts'
import type { Healing } from './healing.ts'
import type { ObservedLeases, Replica } from './replica.ts'

export interface InstallsParts {
  readonly trace: Trace
  readonly limits: Pick<Limits, 'snapshotBatchBytesMax'>
  readonly data: Pick<
    DataStore,
    'writeAlong' | 'install' | 'scanStored' | 'replace' | 'hasPending' | 'drain' | 'openSnapshot'
  >
  readonly replica: Pick<Replica, 'applied' | 'appliedInMemory'>
  step(group: GroupId, event: GroupEvent): void
  /** Groups whose rows are wrong here. */
  readonly healing: Pick<Healing, 'isAside' | 'mayTake' | 'mend'>
  /** The group is at this position now. */
  onInstalled(group: GroupId, position: Position): void
}

/** The parts of the store and the core that the work with peers needs for snapshots. These two are made later. */
export function snapshotPorts(
  data: DataStore,
  replica: () => Replica,
  installs: () => Installs,
  comparing: () => Comparing,
): PeerWorkParts['snapshots'] {
  return {
    // Rows that are wrong here go to no peer.
    durable: (group) => (comparing().healing.isAside(group) ? 0 : data.applied(group).position),
    open: (group) => (comparing().healing.isAside(group) ? undefined : data.openSnapshot(group)),
    onDamaged: (group) => void comparing().onDamaged(group),
    begin: (group) => installs().begin(group),
    above: (group) => comparing().healing.above(group, replica().applied(group).position),
    drawNumber: () => replica().drawNumber(),
  }
}

/** A group that takes no step. */
interface Aside {
  readonly events: GroupEvent[]
  readonly back: Promise<void>
  readonly end: () => void
  readonly fail: (error: Error) => void
}

/** Messages of peers that wait for a group; those beyond are as if lost on the way. */
const messagesMax = 1_000

export class Installs {
  readonly #parts: InstallsParts
  readonly #aside = new Map<GroupId, Aside>()

  constructor(parts: InstallsParts) {
    this.#parts = parts
  }

  /** Resolves when the group may be read again; undefined: it may. Rejects when the node ends before. */
  whenBack(group: GroupId): Promise<void> | undefined {
    return this.#aside.get(group)?.back
  }

  /** Whether the event waits for the group. */
  keep(group: GroupId, event: GroupEvent): boolean {
    const aside = this.#aside.get(group)
    if (aside === undefined) return false
    const isLost = event.kind === 'message' && aside.events.length >= messagesMax
    if (isLost) this.#parts.trace.mark('message_lost_beside_snapshot')
    else aside.events.push(event)
    return true
  }

  /** No read is served of a group that is aside: what the node hears of its leases meanwhile waits as other events do. */
  observe(replica: ObservedLeases): ObservedLeases {
    const isAside = (group: GroupId): boolean =>
      this.#aside.has(group) || this.#parts.healing.isAside(group)
    return {
      leasedThrough: (group, reading) =>
        isAside(group) ? undefined : replica.leasedThrough(group, reading),
      eachCounted: (reading, grantor, visit) =>
        replica.eachCounted(reading, grantor, (group, position) => {
          if (!isAside(group)) visit(group, position)
        }),
      lists: replica.lists.bind(replica),
    }
  }

  /** Ends what the last run did not end; before the log is replayed. */
  async resume(): Promise<void> {
    const { data, trace } = this.#parts
    assert(this.#aside.size === 0, 'SNAP-4: a group is aside before the node has started')
    for (const group of await resumeSwitches(data)) {
      trace.mark('snapshot_switch_resumed')
      trace.emit({
        kind: 'installed',
        group,
        position: this.#parts.replica.applied(group).position,
      })
    }
  }

  /** For a snapshot of the group. */
  begin(group: GroupId): SnapshotSink {
    const { data, limits } = this.#parts
    const intake = new SnapshotIntake(data, group, limits.snapshotBatchBytesMax)
    let crc = 0
    const pieces: Uint8Array[] = []
    return {
      add: async (rows: readonly SnapshotRow[], state: Uint8Array): Promise<boolean> => {
        if (!rows.every(isWellFormed) || (pieces.length > 0 && rows.length > 0)) return false
        crc = crcOfRows(rows, crc)
        if (state.length > 0) pieces.push(Uint8Array.prototype.slice.call(state))
        await intake.add(rows)
        return true
      },
      finish: async (position, told) => {
        const bytes = Buffer.concat(pieces)
        const state = crc32(bytes, crc) === told ? decodeState(bytes) : undefined
        const isTold = state?.position === position
        const taken = isTold ? this.#fits(group, state, bytes, intake.hash) : undefined
        if (state === undefined || taken === undefined) {
          await intake.abandon()
          return false
        }
        await this.#switch(group, state, () => intake.switchTo(taken))
        await intake.clean()
        return true
      },
      abandon: () => intake.abandon(),
    }
  }

  /**
   * Deletes the rows and versions of a group that has left the set by the entry at that position; its state record stays. False: the
   * group is aside, has gone on since, or not all of it is durable.
   */
  async clear(group: GroupId, position: Position): Promise<boolean> {
    const { data, replica, limits } = this.#parts
    if (this.#aside.has(group) || this.#parts.healing.isAside(group)) return false
    const snapshot = data.openSnapshot(group)
    await snapshot?.close()
    const { position: applied, horizon } = replica.applied(group)
    if (snapshot?.position !== position || applied !== position) return false
    // The disk may have a batch whose end this node has not heard of.
    if (this.#aside.has(group) || data.hasPending(group)) return false
    const intake = new SnapshotIntake(data, group, limits.snapshotBatchBytesMax)
    const aside = newAside()
    this.#aside.set(group, aside)
    const { state } = snapshot
    await data.replace(group, () =>
      intake.switchTo({ position, state, horizonBefore: horizon, horizon }),
    )
    assert(!data.hasPending(group), 'SNAP-4: a group comes back before it is cleared durably')
    assert(
      replica.applied(group).position === position,
      'MOVE-13: a group went on while it was cleared',
    )
    this.#aside.delete(group)
    aside.end()
    // At once: an event that comes while the rest is cleaned up must not overtake one that waits.
    for (const event of aside.events) this.#parts.step(group, event)
    await intake.clean()
    return true
  }

  /** Undefined: the group is as far, or what the snapshot says does not go with what the group has. */
  #fits(group: GroupId, state: GroupState, bytes: Uint8Array, hash: GroupHash): Taken | undefined {
    const { position, timestamp, horizon } = state
    const { healing, trace, replica } = this.#parts
    const here = replica.applied(group)
    const isRepair = healing.isAside(group)
    const isSame = isRepair && position === here.position
    if (position <= here.position && !isSame) {
      trace.mark('snapshot_came_late')
      return undefined
    }
    const isLater = timestamp > here.timestamp || (isSame && timestamp === here.timestamp)
    const isRight = !isRepair || healing.mayTake(group, position, hash)
    if (!isLater || horizon < here.horizon || !isRight) {
      trace.mark(isRight ? 'snapshot_does_not_fit' : 'snapshot_has_a_wrong_hash')
      return undefined
    }
    assert(horizon <= timestamp, 'MVCC-1: the newest state is behind the horizon')
    return { position, state: bytes, horizonBefore: here.horizon, horizon }
  }

  async #switch(group: GroupId, state: GroupState, put: () => Promise<void>): Promise<void> {
    const { data, replica, trace, step, healing, onInstalled } = this.#parts
    const { position } = state
    assert(!this.#aside.has(group), 'SNAP-4: a group is put aside twice')
    const aside = newAside()
    this.#aside.set(group, aside)
    trace.emit({ kind: 'aside', group, position })
    // Entries that are applied here become durable first: then no batch has rows of the group beside the snapshot's.
    if (data.hasPending(group)) await data.drain()
    const isRepair = healing.isAside(group)
    const lowest = isRepair ? position : position - 1
    const isAhead = replica.applied(group).position > lowest
    const isEqual = replica.applied(group).position === position
    assert(!isEqual || isRepair, 'HEAL-5: a group that is not aside is put where it is')
    assert(!isAhead, 'SNAP-1: a group went on while it was aside')
    await data.replace(group, put)
    assert(!data.hasPending(group), 'SNAP-4: a group comes back before its snapshot is durable')
    this.#aside.delete(group)
    trace.mark('snapshot_installed')
    trace.emit({ kind: 'installed', group, position })
    // Before the step, which may serve reads.
    const waited = healing.mend(group)
    assert(!healing.isAside(group), 'HEAL-4: a group with wrong rows comes back')
    // A group that is not in memory is read from the store as it is now.
    const event = { kind: 'install', state } as const
    if (replica.appliedInMemory(group) !== undefined) {
      step(group, isRepair ? { ...event, isRepair } : event)
    }
    for (const event of waited) step(group, event)
    onInstalled(group, position)
    aside.end()
    for (const event of aside.events) step(group, event)
  }

  /** The node ends: reads that wait for a group hear of it. */
  stop(): void {
    const closed = new StoreError('closed', 'this node is stopping; ask another one')
    for (const { fail } of this.#aside.values()) fail(closed)
  }
}

function newAside(): Aside {
  let end = noEnd
  let fail: (error: Error) => void = noEnd
  const back = new Promise<void>((resolve, reject) => {
    end = resolve
    fail = reject
  })
  // There may be no read that waits.
  back.catch(noEnd)
  return { events: [], back, end, fail }
}

function noEnd(): void {
  // Replaced, or of no matter.
}
