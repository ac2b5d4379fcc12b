/**
 * How far this node knows the flushes of a peer: for good in its own log (LOG-9), and durably in its data store
 * (LOG-18). Digests move both; where they cannot, the peer's directory of groups does.
 *
 * LOG-18  This node tells the peer how much of its log it durably applied. Everything that the peer's flushes
 *         through there name is in the data store, durably.
 *
 * The mark of LOG-9 does not do for that: an acceptance that loses counts as known there, and the node that rests on
 * the peer's flush may need the value that was chosen.
 */
import { assert } from '../base/assert.ts'
import { pack, unpack } from '../base/pack.ts'
import type { GroupId, NodeId, Position } from '../base/ids.ts'
import type { Digest, Directory } from '../replication/message.ts'
import type { MetaStore } from './admission.ts'
import { PeerDigestCursor, type OwnLog } from './peer-digest-cursor.ts'
import { PeerRounds } from './peer-rounds.ts'

export interface PeerMarksParts {
  readonly node: NodeId
  /** The peer's store whose flushes these are; undefined: none is known. */
  readonly peerStore: string | undefined
  /** The store has come just now: no mark of it was kept. */
  readonly isNewStore: boolean
  /** Marks may have been kept by builds that kept no store with them: there was one alone under each name. */
  readonly areOld: boolean
  /** This node's log, its data store looked at in the same way, batches for flushes, and the id of its store. */
  readonly log: OwnLog
  readonly applied: OwnLog
  readonly storeId: string
  readonly meta: MetaStore
  onNamed(group: GroupId, position: Position): void
}

type Named = readonly (readonly [GroupId, Position])[]

/** A directory of which pages have come. */
interface Pages {
  readonly through: number
  /** The last group so far; undefined: the first page is being taken up. */
  readonly after: GroupId | undefined
}

export class PeerMarks {
  /** The peer's store whose flushes these are; undefined: it has not been met. */
  peerStore: string | undefined
  /** All groups of the peer's flushes through here were named to this node, of those that it can read. */
  digestedThrough: number
  /** The same of all of its flushes through here: none of them was damaged when the peer answered. */
  knownThrough: number
  /** The last epoch in which this node asked for a directory of the peer, which had sealed the one before; 0: none. */
  directedIn = 0
  /** The same of a peer that was past the gate of that epoch. */
  directedPastGateIn = 0
  /** A mark has moved, and the data store does not have that yet. */
  isUnsaved: boolean
  /** As of which moments this node has the peer's writes. */
  readonly rounds: PeerRounds
  readonly #parts: PeerMarksParts
  #known: PeerDigestCursor
  #applied: PeerDigestCursor
  #pages: Pages | undefined
  /** The peer could not name all of its flushes: its directory can. */
  #lacksFlushes = false
  /** A first page counts as an answer to a later question than this one. */
  #directedBy = 0
  /** The lot of the last page of the directory. */
  #directoryLot = 0

  constructor(parts: PeerMarksParts) {
    this.#parts = parts
    const { node, log, applied, storeId: ownStore, meta, isNewStore, areOld } = parts
    this.peerStore = parts.peerStore
    const read = (name: string): readonly unknown[] => {
      const fields = unpack(meta.meta(name) ?? new Uint8Array())
      if (!Array.isArray(fields) || isNewStore) return []
      const store: unknown = fields[3]
      // A node that has lost its memory of peers finds out with the next link whose marks these are.
      if (typeof store === 'string') this.peerStore ??= store
      const isOfStore = typeof store === 'string' ? store === this.peerStore : areOld
      return isOfStore ? fields : []
    }
    const digest = read(`digest/${node}`)
    const known = readMark(digest, log, ownStore)
    const durable = readMark(read(`applied/${node}`), applied, ownStore)
    this.#known = new PeerDigestCursor(log, known)
    this.#applied = new PeerDigestCursor(applied, durable)
    // The lower of the two: what one of them lacks a digest has to name again.
    this.digestedThrough = Math.min(known, durable)
    this.knownThrough = this.digestedThrough
    assert(durable >= this.digestedThrough, 'LOG-18: flushes behind the mark are not named again')
    // One that is refused goes with the next batch: the log may come to be as long as it was.
    this.rounds = new PeerRounds((group) => applied.highest(group))
    this.isUnsaved = isNewStore || (digest.length > 0 && known === 0)
  }

  /** Everything that the peer's flushes through here name is durably applied. */
  get appliedThrough(): number {
    return this.#applied.through
  }

  /**
   * Whether everything that the peer's flushes through this one name is `isKnown`, or durably applied here. False as long as
   * something of it was not named.
   */
  isTakenThrough(flush: number, isKnown: (group: GroupId, position: Position) => boolean): boolean {
    if (this.digestedThrough < flush || this.#lacksFlushes || this.#pages !== undefined)
      return false
    return this.#applied.isTaken(isKnown)
  }

  /**
   * Whether the peer's directory, asked for in this epoch or later, is here whole, and all that it and the digests before it
   * named is durably applied. Groups that go on meanwhile are named again and again: that holds nothing up.
   */
  hasAppliedAll(epoch: number): boolean {
    return this.hasNamedAll(epoch) && this.#applied.hasEnded(this.#directoryLot)
  }

  /** Whether the peer's directory, asked for in this epoch or later, is here whole. */
  hasNamedAll(epoch: number): boolean {
    return this.directedIn >= epoch && this.nextPage === undefined
  }

  /** The same of one that this node asked for when the peer was past the gate of the epoch (STALE-4). */
  hasNamedAllPastGate(epoch: number): boolean {
    return this.directedPastGateIn >= epoch && this.nextPage === undefined
  }

  /** The page of the peer's directory to ask for next; undefined: digests do. */
  get nextPage(): { readonly through: number; readonly after?: GroupId } | undefined {
    const pages = this.#pages
    if (pages?.after !== undefined) return { through: pages.through, after: pages.after }
    return this.#lacksFlushes || pages !== undefined ? { through: 0 } : undefined
  }

  /** Whether `max` or more of what was named are still on their way. */
  isFull(max: number): boolean {
    return this.#known.isFull(max)
  }

  /** Moves on as far as this node's stores allow. */
  advance(): void {
    const isKnownFurther = this.#known.advance()
    const isAppliedFurther = this.#applied.advance()
    this.isUnsaved ||= isKnownFurther || isAppliedFurther
  }

  /** Has the marks go along with the data store's next batch, where they have moved. */
  save(): void {
    if (!this.isUnsaved) return
    this.isUnsaved = false
    const { meta, node, storeId: ownStore, log, applied } = this.#parts
    assert(this.#known.coveredByFlush <= log.durableFlush, 'LOG-9: a mark goes before its flush')
    assert(
      this.#applied.coveredByFlush <= applied.durableFlush,
      'LOG-18: a mark goes before the batch that holds what it is about',
    )
    const keep = (name: string, { coveredByFlush, through }: PeerDigestCursor): void =>
      meta.setMeta(`${name}/${node}`, pack([ownStore, coveredByFlush, through, this.peerStore]))
    keep('digest', this.#known)
    keep('applied', this.#applied)
  }

  /** Takes up the digest that comes next. Yields as a piece of work does. */
  *takeDigest({ after, through, isWhole, groups }: Digest): Generator<number, void> {
    yield* this.#take(through, groups, isWhole)
    this.#lacksFlushes ||= !isWhole
    this.digestedThrough = through
    // Perhaps no other peer knows the groups that the digest left out: from there on this peer counts for
    // no list of groups.
    const needsDirectory = this.#lacksFlushes || this.#pages !== undefined
    if (!needsDirectory && this.knownThrough === after) this.knownThrough = through
  }

  /**
   * Nothing that was named so far makes the peer known any more: a directory does that this node asks for from now on. A snapshot
   * stands in no flush, so digests say nothing of groups that the peer's store took over from the voters of an earlier epoch. `asked`:
   * the highest number of a question so far. `isPastGate`: the peer is past the gate of the epoch.
   */
  requireDirectory(epoch: number, asked: number, isPastGate: boolean): void {
    const before = isPastGate ? this.directedPastGateIn : this.directedIn
    assert(epoch > before, 'LOG-8: a node asks a peer for a second directory in one epoch')
    this.directedIn = Math.max(epoch, this.directedIn)
    if (isPastGate) this.directedPastGateIn = epoch
    this.#lacksFlushes = true
    this.#pages = undefined
    this.#directedBy = asked
    this.knownThrough = 0
  }

  /** Whether the page is the one that comes next, or the first of a directory that is needed. */
  isNextPage({ asked, through, after }: Directory): boolean {
    if (after !== undefined) return this.#pages?.through === through && this.#pages.after === after
    return asked > this.#directedBy && this.#pages?.after === undefined
  }

  /**
   * Takes up the page that comes next. `asked`: the highest number of a question so far. Only the last page lets the
   * marks move on: before it, groups are missing that the peer's flushes name.
   */
  *takePage(page: Directory, asked: number): Generator<number, void> {
    if (page.after === undefined) this.#begin(page)
    const { groups, through, next } = page
    const pages = this.#pages
    yield* this.#take(next === undefined ? through : 0, groups, true)
    // Another directory is needed since.
    if (this.#pages !== pages) return
    if (next !== undefined) {
      this.#pages = { through, after: next }
      return
    }
    this.#pages = undefined
    this.#directoryLot = this.#applied.lastLot
    this.#directedBy = asked
    this.digestedThrough = through
    this.knownThrough = through
  }

  #begin({ through }: Directory): void {
    const { log, applied } = this.#parts
    // The directory names again all that this node still lacks of earlier digests.
    this.#known = new PeerDigestCursor(log, this.#known.through)
    this.#applied = new PeerDigestCursor(applied, this.#applied.through)
    this.#pages = { through, after: undefined }
    this.#lacksFlushes = false
  }

  *#take(through: number, groups: Named, isWhole: boolean): Generator<number, void> {
    const { log, applied, onNamed } = this.#parts
    const coming: (readonly [GroupId, Position])[] = []
    const pending: (readonly [GroupId, Position])[] = []
    for (const named of groups) {
      const [group, position] = named
      // A look at a group that is not in memory reads its record.
      yield 0
      if (applied.highest(group) >= position) continue
      this.rounds.name(group, position)
      if (log.highest(group) >= position) pending.push(named)
      else coming.push(named)
    }
    this.#known.take(through, coming, isWhole)
    this.#applied.take(through, [...coming, ...pending], isWhole)
    for (const [group, position] of coming) onNamed(group, position)
  }
}

/** How far digests need not be asked for: what another store knew, or a longer one, this one does not. */
function readMark(
  [inStore, coveredByFlush, through]: readonly unknown[],
  log: OwnLog,
  ownStore: string,
): number {
  const isOfThisLog = inStore === ownStore && Number(coveredByFlush) <= log.durableFlush
  return isOfThisLog && typeof through === 'number' ? through : 0
}
