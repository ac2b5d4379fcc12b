/**
 * Groups whose rows at this node are wrong. Such a group is put aside until a snapshot of a peer has taken its place; the rest
 * is served.
 *
 * HEAL-4  A group that is put aside takes no step: it gives no vote, answers no read round, proposes nothing and holds no
 *         lease. None of its rows is shown. That lasts over restarts. Peers that ask still get entries out of its log.
 * HEAL-5  A snapshot of the position that the group has takes its place only while the group is aside, and only where its
 *         rows have the hash that was found to be right. None of a lower position does.
 */
import { assert } from '../base/assert.ts'
import type { GroupId, NodeId, Position } from '../base/ids.ts'
import { pack } from '../base/pack.ts'
import type { Finding } from '../peers/differences.ts'
import type { Question } from '../peers/replies.ts'
import type { Trace } from '../ports/trace.ts'
import type { GroupEvent } from '../replication/group.ts'
import type { DataStore } from '../store/data-store.ts'
import type { GroupHash } from '../store/group-hash.ts'
import { allAsides, asideKey, groupInAside } from '../store/row-format.ts'
import type { Replica } from './replica.ts'

export interface HealingParts {
  readonly trace: Trace
  readonly data: Pick<DataStore, 'setRow' | 'dropRow' | 'wantBatch' | 'scanStored'>
  readonly replica: Pick<Replica, 'applied' | 'appliedInMemory'>
  /** All nodes of the replica set but this one. */
  readonly others: readonly NodeId[]
  readonly epochOf: (group: GroupId) => number
  step(group: GroupId, event: GroupEvent): void
  /** Answers a peer out of the log. */
  answer(question: Question): void
  /** The peer may have a snapshot of the group, of this position or a higher one. */
  offer(
    group: GroupId,
    offer: { readonly from: NodeId; readonly epoch: number; readonly position: Position },
  ): void
  isComing(group: GroupId): boolean
}

interface Ill {
  readonly finding: Finding
  readonly events: GroupEvent[]
  /** How many times it has asked a source. */
  asked: number
}

/** Messages of peers that wait for a group; those beyond are as if lost on the way. */
const messagesMax = 1_000
/** Of the record that says that a group is aside. */
const asideFormat = 1

export class Healing {
  readonly #parts: HealingParts
  readonly #ill = new Map<GroupId, Ill>()
  #mended = 0

  constructor(parts: HealingParts) {
    this.#parts = parts
  }

  /** Groups that are aside. */
  get asides(): readonly GroupId[] {
    return [...this.#ill.keys()]
  }

  /** Groups that a snapshot has mended since the start. */
  get mended(): number {
    return this.#mended
  }

  isAside(group: GroupId): boolean {
    return this.#ill.has(group)
  }

  /** Groups that were aside when the last run ended; before the log is replayed. */
  async resume(): Promise<void> {
    const sources = this.#parts.others
    assert(this.#ill.size === 0, 'HEAL-4: a group is aside before the node has started')
    for await (const rows of this.#parts.data.scanStored(allAsides)) {
      for (const { key } of rows) {
        this.#ill.set(groupInAside(key), {
          ...{ finding: { cause: 'rows', sources }, events: [], asked: 0 },
        })
      }
    }
    for (const group of this.#ill.keys()) this.#tell(group)
  }

  /** The group's rows are wrong here. */
  putAside(group: GroupId, finding: Finding): void {
    const { data, replica, step, trace } = this.#parts
    if (this.#ill.has(group)) return
    assert(finding.sources.length > 0, 'HEAL-3: no peer can mend a group that is put aside')
    // The last step: it counts on no lease any more, and the others need not wait for it.
    if (replica.appliedInMemory(group) !== undefined) step(group, { kind: 'aside' })
    this.#ill.set(group, { finding, events: [], asked: 0 })
    trace.mark(`group_aside_${finding.cause}`)
    this.#tell(group)
    // The batch that is being put together takes the record along: that batch may supersede the damaged row.
    data.setRow(asideKey(group), pack([asideFormat]))
    data.wantBatch()
    this.#ask(group)
  }

  #tell(group: GroupId): void {
    const { position } = this.#parts.replica.applied(group)
    this.#parts.trace.emit({ kind: 'ill', group, position })
  }

  /** Now and then: asks for snapshots that do not come. */
  go(): void {
    for (const group of this.#ill.keys()) this.#ask(group)
  }

  #ask(group: GroupId): void {
    const { offer, isComing, replica, epochOf } = this.#parts
    const ill = this.#ill.get(group)
    if (ill === undefined || isComing(group)) return
    const { sources } = ill.finding
    const from = sources[ill.asked % sources.length]
    ill.asked += 1
    const { position } = replica.applied(group)
    if (from !== undefined) offer(group, { from, epoch: epochOf(group), position })
  }

  /** Whether the event waits for the group. */
  keep(group: GroupId, event: GroupEvent): boolean {
    const ill = this.#ill.get(group)
    if (ill === undefined || event.kind === 'install') return false
    if (event.kind === 'message' && event.message.kind === 'fetch') this.#supply(group, event)
    else if (!isToBeKept(ill.events, event)) this.#parts.trace.mark('message_lost_beside_healing')
    else ill.events.push(event)
    return true
  }

  /** The log is sound: a peer that lacks an entry may have it. */
  #supply(group: GroupId, { from: to, message }: GroupEvent & { readonly kind: 'message' }): void {
    if (message.kind !== 'fetch') return
    const { from, through, isAwaited, epoch } = message
    const committed = this.#parts.replica.applied(group).position
    const known = Math.min(through, committed)
    assert(from >= 1, 'LOG-1: a peer asks for a position before the first one')
    const question = { to, group, epoch, from, through: known, committed, isAwaited }
    this.#parts.answer({ kind: 'send-entries', ...question })
  }

  /** A snapshot is of use above this position. */
  above(group: GroupId, applied: Position): Position {
    return this.#ill.has(group) ? applied - 1 : applied
  }

  /** Whether a snapshot of a position at or above that of the group may take its place. */
  mayTake(group: GroupId, position: Position, hash: GroupHash): boolean {
    const ill = this.#ill.get(group)
    if (ill === undefined) return false
    const { right } = ill.finding
    assert(position > 0, 'HEAL-5: a snapshot of nothing')
    return right?.position !== position || right.hash === hash
  }

  /** A snapshot has taken the place of the group's rows. Gives the events that have waited for that. */
  mend(group: GroupId): readonly GroupEvent[] {
    const ill = this.#ill.get(group)
    if (ill === undefined) return []
    const { data, trace } = this.#parts
    this.#ill.delete(group)
    this.#mended += 1
    trace.mark('group_mended')
    trace.emit({ kind: 'mended', group })
    data.dropRow(asideKey(group))
    data.wantBatch()
    return ill.events
  }
}

/** Of those that come again and again one is enough. */
function isToBeKept(events: readonly GroupEvent[], event: GroupEvent): boolean {
  if (event.kind === 'wake') return !events.some(({ kind }) => kind === 'wake')
  const mayBeLost = event.kind === 'message' || event.kind === 'exists'
  return !mayBeLost || events.length < messagesMax
}
