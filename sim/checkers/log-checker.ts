/**
 * The log and the state it makes, at each replica.
 *
 * LOG-1  Entries are applied in order, and only chosen ones.
 * LOG-2  Equal applied position, equal rows: with every other replica and with the model.
 * LOG-4  A commit answered as committed is chosen, at that position.
 * LIVE-3 A started node has applied all that its own log says is chosen, without a hole.
 * LOG-6  On the data disk, the applied position and the rows are of one batch, always.
 * HASH-1 The hash in a state record is that of the rows beside it, and the same at each replica of that position.
 * MVCC-1 The readable past is on the data disk, and reads show it as it was.
 * SNAP-1 A snapshot takes a replica on, and never back.
 * SNAP-4 A replica goes on from a snapshot once all of that is on its disk, and takes no step of the group before.
 * HEAL-4 A group whose rows a node knows to be wrong takes no step there, and nothing of it is served.
 * MOVE-13 A node clears a group that has left its set only once the next set has taken it up.
 * MVCC-2 No snapshot is served beyond what is applied: a later commit would be in it.
 */
import { crc32, equalBytes, latin1 } from '../../src/base/bytes.ts'
import { decodeEntry } from '../../src/replication/entry.ts'
import { hashOfNothing } from '../../src/store/group-hash.ts'
import type { LogModel, PastRow } from './log-model.ts'
import type { ChangedGroup } from './data-disks.ts'
import { describePlace, type PositionBook } from './position-book.ts'
import { PastSum } from './past-sum.ts'
import type { Referee } from './referee.ts'
import { RowSum } from './row-sum.ts'

export interface LogCheckerParts {
  readonly book: PositionBook
  readonly referee: Referee
  readonly model: LogModel
  /** How far a group is applied on a node's data disk. */
  durablePosition(node: string, group: string): number
}

const ofNoRows = new RowSum().digest()
const ofNoVersions = new PastSum().digest()

export class LogChecker {
  readonly #parts: LogCheckerParts
  /** Applied positions in memory, by node and group. */
  readonly #applied = new Map<string, Map<string, number>>()
  /** Groups that a snapshot is taking over, by node: they take no step. */
  readonly #aside = new Map<string, Set<string>>()
  /** Groups whose rows are wrong at a node, which knows it, by node. */
  readonly #ill = new Map<string, Set<string>>()
  readonly #stateHash = new Map<string, string>()
  readonly #rowsHash = new Map<string, string>()
  /** The highest position that any node has applied since the run began, by group. */
  readonly #visible = new Map<string, number>()

  constructor(parts: LogCheckerParts) {
    this.#parts = parts
  }

  /** The node's memory is gone: it goes on from its data disk. */
  onStart(node: string): void {
    this.#applied.set(node, new Map())
    this.#aside.delete(node)
    this.#ill.delete(node)
  }

  /** The node knows that the group's rows are wrong there: it puts the group aside. */
  onIll(node: string, group: string): void {
    const ill = this.#ill.get(node) ?? new Set<string>()
    this.#ill.set(node, ill.add(group))
  }

  onMended(node: string, group: string): void {
    this.#ill.get(node)?.delete(group)
  }

  isIll(node: string, group: string): boolean {
    return this.#ill.get(node)?.has(group) === true
  }

  #onUse(node: string, group: string, position: number): void {
    const { book, referee } = this.#parts
    referee.check(
      !this.isIll(node, group),
      'HEAL-4',
      'A group takes a step, or is served, at a node that knows its rows to be wrong.',
      () => describePlace(book.of(group, position), node),
    )
  }

  /** The node is open: it took up what its log holds beyond its data disk. */
  onOpen(node: string): void {
    const { book, referee } = this.#parts
    for (const group of book.groups) {
      // It takes up what its log holds when a peer has mended it.
      if (this.isIll(node, group)) continue
      const applied = this.appliedPosition(node, group)
      const next = book.of(group, applied + 1)
      referee.check(
        next.acceptors.get(node)?.hasChosen !== true,
        'LIVE-3',
        'A node has started without what its own log knows to be chosen.',
        () => ({ ...describePlace(next, node), applied }),
      )
    }
  }

  appliedPosition(node: string, group: string): number {
    const known = this.#applied.get(node)?.get(group)
    return known ?? this.#parts.durablePosition(node, group)
  }

  /** The node promises or accepts: see PAX-8. */
  onVoted(node: string, group: string, position: number): void {
    const { book, referee } = this.#parts
    const applied = this.appliedPosition(node, group)
    referee.check(
      position > applied,
      'PAX-8',
      'A node votes at a position that it has applied.',
      () => ({ ...describePlace(book.of(group, position), node), applied }),
    )
    this.#onStep(node, group, position)
  }

  /** The group is put aside at the node: a snapshot takes its place. */
  onAside(node: string, group: string): void {
    const aside = this.#aside.get(node) ?? new Set<string>()
    this.#aside.set(node, aside.add(group))
  }

  #onStep(node: string, group: string, position: number): void {
    const { book, referee } = this.#parts
    referee.check(
      this.#aside.get(node)?.has(group) !== true,
      'SNAP-4',
      'A group takes a step while a snapshot takes its place.',
      () => describePlace(book.of(group, position), node),
    )
    this.#onUse(node, group, position)
  }

  onApplied(node: string, group: string, position: number, value: Uint8Array): void {
    const { book, referee } = this.#parts
    const view = book.of(group, position)
    const before = this.appliedPosition(node, group)
    this.#onStep(node, group, position)
    referee.check(position === before + 1, 'LOG-1', 'Applied out of order, past a hole.', () => ({
      ...describePlace(view, node),
      appliedBefore: before,
    }))
    referee.check(
      view.chosen !== undefined && equalBytes(view.chosen.value, value),
      'LOG-1',
      'An entry was applied that is not chosen.',
      () => describePlace(view, node, view.chosen?.ballot),
    )
    const applied = this.#applied.get(node) ?? new Map<string, number>()
    this.#applied.set(node, applied.set(group, position))
    this.#visible.set(group, Math.max(this.#visible.get(group) ?? 0, position))
  }

  /** The node has put a snapshot of a peer in the place of the group's rows. */
  onInstalled(node: string, group: string, position: number): void {
    const { book, referee, durablePosition } = this.#parts
    const view = book.of(group, position)
    const before = this.#applied.get(node)?.get(group) ?? 0
    this.#aside.get(node)?.delete(group)
    const isForward = position > before || (position === before && this.isIll(node, group))
    referee.check(isForward, 'SNAP-1', 'A snapshot took a replica back.', () => ({
      ...describePlace(view, node),
      appliedBefore: before,
    }))
    const durable = durablePosition(node, group)
    referee.check(
      durable === position && view.chosen !== undefined,
      'SNAP-4',
      'A replica goes on from a snapshot that is not on its disk, or is of no chosen position.',
      () => ({ ...describePlace(view, node), durable }),
    )
    const applied = this.#applied.get(node) ?? new Map<string, number>()
    this.#applied.set(node, applied.set(group, position))
    this.#visible.set(group, Math.max(this.#visible.get(group) ?? 0, position))
  }

  /** A node serves a current read at `position` without asking another node. */
  onServedAlone(node: string, group: string, position: number): void {
    const { book, referee } = this.#parts
    const visible = this.#visible.get(group) ?? 0
    referee.check(
      position >= visible,
      'LEASE-1',
      'A read was served under a lease, without what was visible elsewhere.',
      () => ({ ...describePlace(book.of(group, position), node), visible }),
    )
  }

  /** An entry is visible now. `through` is the position that another node would serve by itself. */
  onLeaseSeen(node: string, group: string, position: number, through: number): void {
    const { book, referee } = this.#parts
    // A node of another set shows nothing once it has the last entry of its own.
    if (!book.voters.isOfSet(node, { group, position })) {
      const last = book.voters.leftAt(node, { group, position })
      if (last === undefined || through >= last) return
    }
    referee.check(
      through >= book.voters.neededAt(node, { group, position }),
      'LEASE-2',
      'An entry became visible while a lease holder could serve reads without it.',
      () => ({ ...describePlace(book.of(group, position), node), through }),
    )
  }

  /**
   * A node counts on a registration, lacks the position perhaps, and its grantor does not know of
   * it.
   */
  onUnlistedSeen(node: string, grantor: string, group: string, position: number): void {
    const { book, referee } = this.#parts
    referee.check(
      false,
      'LEASE-2',
      'A node counts on a registration that its grantor takes for ended.',
      () => ({ ...describePlace(book.of(group, position), node), grantor }),
    )
  }

  /** A node tells a caller that attempt `attempt` of its transaction committed at `position`. */
  onCommitAnswered(node: string, group: string, position: number, attempt: number): void {
    const { book, referee } = this.#parts
    const view = book.of(group, position)
    const { chosen } = view
    const entry = chosen === undefined ? undefined : decodeEntry(chosen.value)
    referee.check(
      entry?.transactions.some((one) => one.attempt === attempt) === true,
      'LOG-4',
      'A commit was answered that is not chosen at that position.',
      () => ({ ...describePlace(view, node), attempt }),
    )
  }

  /** A read is served at `position`: everything up to there is chosen and applied at this node. */
  onServed(node: string, group: string, position: number, timestamp: number | undefined): void {
    const { book, referee, model } = this.#parts
    this.#onUse(node, group, position)
    const applied = this.appliedPosition(node, group)
    referee.check(
      position <= applied,
      'LEASE-3',
      'A read was served at a position that is not applied.',
      () => ({ ...describePlace(book.of(group, position), node), applied }),
    )
    const ofEntry = model.of(group).timestamps[position] ?? 0
    referee.check(
      timestamp === undefined || timestamp <= ofEntry,
      'MVCC-2',
      'A snapshot was served at a timestamp that a later commit may have.',
      () => ({ ...describePlace(book.of(group, position), node), timestamp, ofEntry }),
    )
  }

  /** Some rows of a group as a replica shows them at a timestamp of the past. */
  onPastSeen(
    node: string,
    group: string,
    at: number,
    expected: readonly (PastRow | undefined)[],
    seen: readonly (PastRow | undefined)[],
  ): void {
    const { book, referee, model } = this.#parts
    const { position } = model.of(group)
    const [told, known] = [seen.map(describeRow), expected.map(describeRow)]
    referee.check(
      told.join() === known.join(),
      'MVCC-1',
      'A read of the past does not show what was committed up to then.',
      () => ({ ...describePlace(book.of(group, position), node), at, expected: known, seen: told }),
    )
  }

  /** All rows of a group as a replica shows them while it is applied up to `position`. */
  onRowsSeen(node: string, group: string, position: number, sum: RowSum): void {
    const { book, referee, model } = this.#parts
    const expected = model.of(group).digests[position]
    referee.check(
      expected === sum.digest(),
      'LOG-2',
      "A replica's rows are not what its applied position says.",
      () => ({ ...describePlace(book.of(group, position), node), expected, seen: sum.digest() }),
    )
  }

  /** A batch became durable on a data disk. */
  onDurableRows(node: string, changed: ChangedGroup): void {
    const { book, referee, model } = this.#parts
    const { group, position, rowsDigest: digest, pastDigest } = changed
    // Until a snapshot mends the group, its batches add to wrong rows: their hash says nothing.
    if (this.isIll(node, group)) return
    if (this.#isCleared(node, changed)) return
    const { digests, pastDigests, horizons } = model.of(group)
    const expected = digests[position]
    referee.check(
      expected === digest,
      'LOG-6',
      'The rows on a data disk are not those of the applied position on it.',
      () => ({ ...describePlace(book.of(group, position), node), expected, durable: digest }),
    )
    referee.check(
      pastDigests[position] === pastDigest,
      'MVCC-1',
      'The versions on a data disk that may still be read are not those of its applied position.',
      () => ({ ...describePlace(book.of(group, position), node), horizon: horizons[position] }),
    )
    if (changed.stateHash !== undefined) this.#checkHash(node, changed)
  }

  /** The group has left the node's set, and the node has deleted its rows. */
  #isCleared(node: string, changed: ChangedGroup): boolean {
    const { group, position, rowsDigest, pastDigest } = changed
    const { book, referee, model } = this.#parts
    const isEmpty = rowsDigest === ofNoRows && pastDigest === ofNoVersions
    if (!isEmpty || !book.voters.isLastOf(node, { group, position })) return false
    // The entry that makes the group leave writes a row.
    referee.check(
      model.of(group).position > position,
      'MOVE-13',
      'A node has cleared a group that the next set has not taken up.',
      () => describePlace(book.of(group, position), node),
    )
    const { toldHash, countedHash } = changed
    referee.check(
      toldHash === countedHash && countedHash === hashOfNothing,
      'HASH-1',
      'The hash of a group that is cleared is not that of no rows.',
      () => describePlace(book.of(group, position), node),
    )
    return true
  }

  #checkHash(node: string, { group, position, toldHash, countedHash }: ChangedGroup): void {
    const { book, referee } = this.#parts
    const key = `${group}@${position}`
    const known = this.#rowsHash.get(key) ?? toldHash ?? ''
    this.#rowsHash.set(key, known)
    referee.check(
      toldHash === countedHash && toldHash === known,
      'HASH-1',
      'The hash in a state record is not that of the rows beside it, or another one than at another replica.',
      () => ({
        ...describePlace(book.of(group, position), node),
        told: toldHash && toHex(toldHash),
        ...{ counted: toHex(countedHash), known: toHex(known) },
      }),
    )
  }

  /** The state record beside the rows: equal bytes at equal positions on all replicas. */
  onDurableState(node: string, group: string, position: number, hash: string): void {
    const { book, referee } = this.#parts
    const key = `${group}@${position}`
    const known = this.#stateHash.get(key)
    if (known === undefined) this.#stateHash.set(key, hash)
    referee.check(
      known === undefined || known === hash,
      'LOG-2',
      'Two replicas at one applied position hold different state records.',
      () => describePlace(book.of(group, position), node),
    )
  }
}

function toHex(hash: string): string {
  return Buffer.from(hash, 'latin1').toString('hex')
}

function describeRow(row: PastRow | undefined): string {
  if (row === undefined) return '-'
  return `${latin1(row.key)}=${crc32(row.value).toString(16)}@${row.timestamp}`
}
