/**
 * A node's requests for the buckets of its set: each is a transaction in the set's own group (`shares-row.ts`), may be asked for
 * again, and by any node. The order of them is that of the phases.
 */
import { assert } from '../base/assert.ts'
import { StoreError } from '../base/errors.ts'
import type { GroupId, NodeId } from '../base/ids.ts'
import type { OwnEpochs } from '../log/own-epochs.ts'
import type { Share, SharesRow } from '../placement/shares.ts'
import type { GroupEvent } from '../replication/group.ts'
import { beginRenew } from './change.ts'
import type { Epochs } from './epochs.ts'
import type { Mover } from './mover.ts'
import type { VersionGate } from './version-gate.ts'
import type { GroupLook } from './seal-pages.ts'
import { SetWriter, type SetWriterParts } from './set-writer.ts'
import { SharesReader, type SharesReaderParts } from './shares-reader.ts'
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
  /** Whether this node has a vote in that epoch, or in a later one, and knows where it has voted. */
  isBehindGate(epoch: number): boolean
  /**
   * Whether this set has begun nothing of the group, whose bucket is settled with that share. False where this node cannot tell: it has no
   * vote, or may have accepted an entry of the group.
   */
  isVoid(group: GroupId, share: Share): boolean
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
   * Says which groups may have begun before, as far as this node knows: a majority of the voters has to. Rejects with `unavailable`
   * before this node has a vote in the epoch that closed the buckets and is restored, and with `invalid` where there are too many.
   */
  settle(): Promise<void>
  /** The other set has the buckets. */
  finish(): Promise<void>
  /** Throws `unavailable` where the cluster version in force here allows no buckets that go from set to set. */
  checkVersion(): void
  /** Buckets have come from another set, in that term. */
  receive(gift: Gift, term: number): Promise<void>
}

export interface ShareRequestsParts extends SharesReaderParts, SetWriterParts {
  readonly node: NodeId
  readonly epochs: Epochs
  readonly gate: VersionGate
  readonly mover: Pick<Mover, 'request'>
  readonly log: {
    /** The groups with positions that the data store may not hold durably. */
    heldGroups(): Iterable<GroupId>
    /** Resolves when all that was given to the log is durable. */
    sync(): Promise<void>
  }
  applied(group: GroupId): number
  look(group: GroupId): GroupLook
  /** Whether this node has all that it was ever given (LOG-19). */
  isRestored(): boolean
  /** The event goes to each group in which a transaction or a read waits. */
  stepWaiting(event: GroupEvent): void
  /** Whether the configuration gives the bucket to this set. */
  isOfName(bucket: number): boolean
}

/** Of groups whose first entry is under way as a bucket closes: as many as are written at once. */
const beganMax = 1_000

type Next = (row: SharesRow) => SharesRow

export class ShareRequests implements SharesPort {
  readonly #parts: ShareRequestsParts
  readonly #reader: SharesReader
  readonly #writer: SetWriter

  constructor(parts: ShareRequestsParts) {
    this.#parts = parts
    this.#reader = new SharesReader(parts)
    this.#writer = new SetWriter(parts)
  }

  /** Takes up the row as it is applied here now, beside a row of the voters that names this epoch. Throws while the group is aside. */
  follow(rowEpoch: number): void {
    const { epochs, stepWaiting } = this.#parts
    const { version } = epochs.shares
    epochs.shares.take(this.#reader.read(), rowEpoch)
    // Transactions and reads wait where it was not known in which set their groups begin.
    if (epochs.shares.version > version) stepWaiting({ kind: 'wake' })
  }

  get row(): SharesRow {
    return this.#parts.epochs.shares.row
  }

  of(group: GroupId): Share | undefined {
    return this.#parts.epochs.shares.of(group)
  }

  isBehindGate(epoch: number): boolean {
    const { epochs, isRestored } = this.#parts
    return epochs.isVoting && epochs.own.epoch >= epoch && isRestored()
  }

  isVoid(group: GroupId, { phase, epoch, began }: Share): boolean {
    if (phase !== 'settled' || !this.isBehindGate(epoch) || began.includes(group)) return false
    const { applied, open, damaged } = this.#parts.look(group)
    const hasNothing = applied === 0 && open.length === 0 && damaged.length === 0
    return hasNothing && !this.#parts.epochs.own.blocked.includes(group)
  }

  checkVersion(): void {
    const { gate } = this.#parts
    if (gate.allows('given-buckets')) return
    const message = `cluster version ${gate.inForce} is in force in this replica set, which knows no buckets that move: run trilithon upgrade finalize first`
    throw new StoreError('unavailable', message)
  }

  async leave(gift: Gift): Promise<void> {
    this.checkVersion()
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
    const read = (): SharesRow => this.#reader.read()
    await this.#parts.mover.request(
      (row, now) => (has(read(), 'leaving') ? beginRenew(row, now) : undefined),
      ({ epoch }) => [{ key: sharesKey, value: encodeShares(close(read(), epoch)) }],
    )
  }

  async settle(): Promise<void> {
    const { node, epochs, log } = this.#parts
    const share = this.#reader.read().find(({ phase }) => phase === 'closed')
    if (share === undefined) return
    // Its data store was made anew, and may lack groups that have an entry: they would be on no list.
    if (!this.#parts.isRestored()) throw notYet('This node takes up what it has lost.')
    const began = listBegun(share, this.#parts)
    // A group that is not on the list has an entry here, or nothing. The entry is to be here after a restart, too.
    await log.sync()
    await this.#write((row) => settle(row, { node, epoch: share.epoch, began }, epochs.voters))
  }

  finish(): Promise<void> {
    return this.#write((row) => (has(row, 'settled') ? finish(row) : row))
  }

  async receive(gift: Gift, term: number): Promise<void> {
    assert(term > 0, 'MOVE-14: a bucket comes in no term')
    this.checkVersion()
    return this.#write((row) => receive(row, gift, term))
  }

  async #write(next: Next): Promise<void> {
    await this.#writer.commit(() => {
      const row = this.#reader.read()
      const after = next(row)
      if (after === row) return undefined
      this.#parts.gate.use('given-buckets')
      return [{ key: sharesKey, value: encodeShares(after) }]
    })
  }
}

/** A node as it lists the groups that may have begun. */
export interface Lister extends Pick<ShareRequestsParts, 'applied'> {
  readonly log: Pick<ShareRequestsParts['log'], 'heldGroups'>
  readonly epochs: Pick<Epochs, 'isVoting' | 'shares'> & {
    readonly own: Pick<OwnEpochs, 'epoch' | 'blocked'>
  }
}

/**
 * MOVE-3: behind its gate this node has all that was chosen before the epoch, and carries what may have been. A value that no
 * seal tells is of a group with acceptances of the new epoch, and there is none in these buckets (MOVE-14).
 */
export function listBegun(share: Share, { epochs, log, applied }: Lister): readonly GroupId[] {
  const { own, isVoting } = epochs
  if (!isVoting || own.epoch < share.epoch) {
    throw notYet('This node is not past the gate of its epoch yet.')
  }
  const may = new Set([...log.heldGroups(), ...own.blocked])
  const began = [...may].filter((group) => {
    const of = epochs.shares.of(group)
    return of?.term === share.term && of.set === share.set && applied(group) === 0
  })
  if (began.length <= beganMax) return began
  throw new StoreError('invalid', `More than ${beganMax} groups of these buckets may have begun.`)
}

function notYet(why: string): StoreError {
  return new StoreError('unavailable', why)
}

function has(row: SharesRow, phase: Share['phase']): boolean {
  return row.some((share) => share.phase === phase)
}
