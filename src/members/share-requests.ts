/**
 * A node's requests for the buckets of its set: each is a transaction in the set's own group (`shares-row.ts`), may be asked for
 * again, and by any node. The order of them is that of the phases; `../node/bucket-mover.ts` keeps to it.
 */
import { assert } from '../base/assert.ts'
import { StoreError } from '../base/errors.ts'
import type { GroupId } from '../base/ids.ts'
import type { Share, SharesRow } from '../placement/shares.ts'
import { beginRenew } from './change.ts'
import type { Epochs } from './epochs.ts'
import type { Mover } from './mover.ts'
import type { SetWriter } from './set-writer.ts'
import {
  beginLeaving,
  close,
  encodeShares,
  finish,
  giveUpLeaving,
  receive,
  settle,
  sharesKey,
  type Gift,
} from './shares-row.ts'

export interface SharesPort {
  /** As this node has it. */
  readonly row: SharesRow
  /** The share of the group's bucket; undefined: the bucket has not gone from set to set. */
  of(group: GroupId): Share | undefined
  /**
   * The buckets are to leave for another set: groups begin here still. Rejects with `invalid` where other buckets are on their way,
   * and for a bucket that the set does not have.
   */
  leave(gift: Gift): Promise<void>
  /** The buckets stay. Rejects with `invalid` from *closed* on. */
  stay(): Promise<void>
  /** Ends an epoch, so that no group of the buckets begins here any more. Rejects with `invalid` while the set's voters change. */
  close(): Promise<void>
  /**
   * Says which groups may have begun before. Rejects with `unavailable` before this node has a vote in the epoch that closed the
   * buckets, and with `invalid` where there are too many.
   */
  settle(): Promise<void>
  /** Whether this node has a vote in that epoch, or in a later one. */
  isBehindGate(epoch: number): boolean
  /** The other set has the buckets. */
  finish(): Promise<void>
  /** Buckets have come from another set, in that term. */
  receive(gift: Gift, term: number): Promise<void>
}

export interface ShareRequestsParts {
  readonly epochs: Epochs
  readonly mover: Pick<Mover, 'request'>
  readonly writer: Pick<SetWriter, 'commit'>
  readonly log: {
    /** The groups with positions that the data store may not hold durably. */
    heldGroups(): Iterable<GroupId>
  }
  /** As it is applied here. */
  read(): SharesRow
  applied(group: GroupId): number
  /** Whether the configuration gives the bucket to this set. */
  isOfName(bucket: number): boolean
}

/** Of groups whose first entry is under way as a bucket closes: as many as are written at once. */
const beganMax = 1_000

type Next = (row: SharesRow) => SharesRow

export class ShareRequests implements SharesPort {
  readonly #parts: ShareRequestsParts

  constructor(parts: ShareRequestsParts) {
    this.#parts = parts
  }

  get row(): SharesRow {
    return this.#parts.epochs.shares.row
  }

  of(group: GroupId): Share | undefined {
    return this.#parts.epochs.shares.of(group)
  }

  leave(gift: Gift): Promise<void> {
    const isGoing = (one: Share): boolean => {
      const isSame = one.set === gift.set && one.buckets.length === gift.buckets.length
      return one.phase === 'leaving' && isSame && one.buckets.every((b) => gift.buckets.includes(b))
    }
    return this.#write((row) => {
      return row.some(isGoing) ? row : beginLeaving(row, gift, this.#parts.isOfName)
    })
  }

  stay(): Promise<void> {
    return this.#write(giveUpLeaving)
  }

  async close(): Promise<void> {
    const { mover, read } = this.#parts
    await mover.request(
      (row, now) => (has(read(), 'leaving') ? beginRenew(row, now) : undefined),
      ({ epoch }) => [{ key: sharesKey, value: encodeShares(close(read(), epoch)) }],
    )
  }

  settle(): Promise<void> {
    return this.#write((row) => {
      const share = row.find(({ phase }) => phase === 'closed')
      return share === undefined ? row : settle(row, this.#listBegun(share))
    })
  }

  /**
   * MOVE-3: behind its gate this node has all that was chosen before the epoch, and carries what may have been. A value that no
   * seal tells is of a group with acceptances of the new epoch, and there is none in these buckets (MOVE-14).
   */
  #listBegun(share: Share): readonly GroupId[] {
    const { epochs, log, applied } = this.#parts
    const { own } = epochs
    if (!this.isBehindGate(share.epoch)) {
      throw new StoreError('unavailable', 'This node is not past the gate of its epoch yet.')
    }
    const may = new Set([...log.heldGroups(), ...own.blocked])
    const began = [...may].filter((group) => {
      const of = epochs.shares.of(group)
      return of?.term === share.term && of.set === share.set && applied(group) === 0
    })
    if (began.length <= beganMax) return began
    throw new StoreError('invalid', `More than ${beganMax} groups of these buckets may have begun.`)
  }

  isBehindGate(epoch: number): boolean {
    const { own, isVoting } = this.#parts.epochs
    return isVoting && own.epoch >= epoch
  }

  finish(): Promise<void> {
    return this.#write((row) => (has(row, 'settled') ? finish(row) : row))
  }

  receive(gift: Gift, term: number): Promise<void> {
    assert(term > 0, 'MOVE-14: a bucket comes in no term')
    return this.#write((row) => receive(row, gift, term))
  }

  async #write(next: Next): Promise<void> {
    const { writer, read } = this.#parts
    await writer.commit(() => {
      const row = read()
      const after = next(row)
      return after === row ? undefined : [{ key: sharesKey, value: encodeShares(after) }]
    })
  }
}

function has(row: SharesRow, phase: Share['phase']): boolean {
  return row.some((share) => share.phase === phase)
}
