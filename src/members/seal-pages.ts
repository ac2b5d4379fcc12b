/**
 * Tells this node's seal to those who ask for it, page by page: how far its flushes go, and the groups with positions above what it
 * has applied, with all that it had accepted there.
 *
 * It is put together anew for each question. This node accepts nothing in the epoch before any more. Its acceptances of the
 * present epoch are left out; the entries that it has applied since the seal are in its log as chosen.
 */
import { assert } from '../base/assert.ts'
import { compareText } from '../base/bytes.ts'
import type { GroupId, NodeId, Position } from '../base/ids.ts'
import type { Limits } from '../base/limits.ts'
import type { Work } from '../peers/slices.ts'
import type { Trace } from '../ports/trace.ts'
import type { OpenRecords } from '../replication/epoch.ts'
import type { SealedGroup, SealPage, SealRequest } from '../replication/message.ts'
import type { Epochs } from './epochs.ts'

/** A group's log as it is at this node. */
export interface GroupLook extends OpenRecords {
  readonly applied: Position
}

export interface SealPagesParts {
  readonly epochs: Epochs
  readonly trace: Trace
  readonly limits: Pick<Limits, 'catchUpBytesMax'>
  readonly log: {
    readonly durableFlush: number
    /** The groups with positions that the data store may not hold durably. */
    heldGroups(): Iterable<GroupId>
  }
  /** Whether the node knows where it has voted: it is restored, and its log is replayed. */
  isSound(): boolean
  look(group: GroupId): GroupLook
  later(lane: string, work: Work): void
  send(to: NodeId, message: SealPage): void
}

/** Of a group in a page, beside its acceptances. */
const groupBytes = 64
/**
 * The acceptances of one group in a page, bytes: a frame takes no more. A group has one open position as a rule, and its
 * entry is smaller. Of a group with more the seal tells as of a damaged one.
 */
const openBytesMax = 12 * 1024 * 1024

export class SealPages {
  readonly #parts: SealPagesParts

  constructor(parts: SealPagesParts) {
    this.#parts = parts
  }

  ask(from: NodeId, request: SealRequest): void {
    const { later, trace } = this.#parts
    if (!this.#hasSeal(request.epoch)) return trace.mark('seal_asked_of_node_without_one')
    later(`seal for ${from}`, { name: 'seal', pieces: this.#tell(from, request) })
  }

  #hasSeal(epoch: number): boolean {
    const { epochs, isSound } = this.#parts
    const { own } = epochs
    return own.epoch === epoch && own.soundFor === epoch && epochs.isSealDurable && isSound()
  }

  *#tell(to: NodeId, { epoch, after }: SealRequest): Generator<number, void> {
    const { log, look, limits, send } = this.#parts
    // Before the groups are looked at: all that was accepted before the seal is durable by now.
    const through = log.durableFlush
    const unsound = new Set(this.#parts.epochs.own.unsound)
    const names = [...new Set([...log.heldGroups(), ...unsound])].filter(
      (group) => after === undefined || compareText(group, after) > 0,
    )
    const groups: SealedGroup[] = []
    let bytes = 0
    let yielded = 0
    let last: GroupId | undefined
    for (const group of names.sort(compareText)) {
      yield bytes - yielded
      yielded = bytes
      if (bytes >= limits.catchUpBytesMax) break
      last = group
      const found = sealedGroup(group, epoch, look(group), unsound.has(group))
      if (found === undefined) continue
      groups.push(found)
      bytes += groupBytes + sizeOf(found)
    }
    if (!this.#hasSeal(epoch)) return
    assert(through <= log.durableFlush, 'MOVE-2: a seal tells of flushes that are not durable')
    const next = last === names.at(-1) ? undefined : last
    send(to, {
      ...{ kind: 'seal-page', epoch, through, groups },
      ...(after !== undefined && { after }),
      ...(next !== undefined && { next }),
    })
  }
}

/** Undefined: all that the flushes name of it is applied. */
function sealedGroup(
  group: GroupId,
  epoch: number,
  { applied, open: all, damaged }: GroupLook,
  isUnsound: boolean,
): SealedGroup | undefined {
  if (isUnsound || damaged.length > 0) return { group, applied, open: undefined }
  if (all.length === 0) return undefined
  const found = { group, applied, open: all.filter(({ ballot }) => ballot.epoch < epoch) }
  return sizeOf(found) > openBytesMax ? { group, applied, open: undefined } : found
}

function sizeOf({ open = [] }: SealedGroup): number {
  return open.reduce((sum, { value }) => sum + value.length + groupBytes, 0)
}
