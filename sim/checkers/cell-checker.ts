/**
 * The clients' answers, against the promises of cells. Operations are ordered by ticks drawn at
 * their start and end, so that "before it began" is exact.
 *
 * CELL-1  A cell never changes: one triple, one body, one added id; only bodies that a client
 *         wrote.
 * CELL-2  Newest is the highest ref key.
 * CELL-3  Added ids have no gaps but those of purged cells, and rise in the order in which cells can be
 *         seen.
 * CELL-4  An answer to a put is true: created or not, and surely without effect.
 * CELL-5  A session that names a position is shown no earlier one.
 * CELL-7  A purged cell is gone for good.
 * CELL-8  A purge removes what it names and nothing else.
 * TTL-3   A cell that expires is shown until then, and no longer.
 * TTL-4   It is removed when it has expired, and never before.
 * HOLD-1  No cell of a row goes that is held at that place of the log.
 * LEASE-3 A current read sees all that was acknowledged, or shown to any read, before it began.
 */
import { ExpiryBook } from './expiry-book.ts'
import { HoldBook } from './hold-book.ts'
import type { LogModel, RowWrite } from './log-model.ts'
import { PurgeBook, type Purge, type PurgeAsked } from './purge-book.ts'
import type { Referee } from './referee.ts'

export interface CellName {
  readonly shard: number
  readonly row: string
  readonly column: string
  readonly refKey: number
}

export interface SeenCell extends CellName {
  readonly addedId: number
  /** The entry's timestamp, as the interface gives it: text or number, but always the same. */
  readonly createdAt: string
  /** In a canonical form. */
  readonly body: string
}

/** The reader, the beginning of the read, and whether it promised to be current. */
export interface ReadInfo {
  readonly client: string
  readonly startTick: number
  readonly isCurrent: boolean
}

interface Fact {
  readonly name: CellName
  /** Every body that was sent, with the puts of it that have, or may have had, an effect. */
  readonly sent: Map<string, number>
  /** As it was first acknowledged or read; `sinceTick` is the end of that operation. */
  seen: { readonly cell: SeenCell; readonly sinceTick: number } | undefined
  createdCount: number
  /** Puts of it, whatever became of them. */
  sentCount: number
}

interface ShardFacts {
  highest: number
  readonly names: Map<number, string>
  /** The highest added id acknowledged as created up to each tick, rising in both. */
  readonly acknowledged: { readonly tick: number; readonly highest: number }[]
  /** The latest time of a cell in any answer up to each tick, rising in both. */
  readonly times: { readonly tick: number; readonly createdAt: number }[]
}

export class CellChecker {
  readonly #referee: Referee
  readonly #facts = new Map<string, Fact>()
  readonly #columns = new Map<string, Map<number, Fact>>()
  readonly #shards = new Map<number, ShardFacts>()
  readonly #buffered: { readonly name: CellName; readonly body: string }[] = []
  readonly #purges = new PurgeBook()
  readonly #holds = new HoldBook()
  /** When purges of cells, by their names, were acknowledged. */
  readonly #erased = new Map<string, number>()
  #expiry: ExpiryBook | undefined
  #tick = 0

  constructor(referee: Referee) {
    this.#referee = referee
  }

  /** Cells of the run expire, and no shard is purged. Called behind all who hear of moments. */
  expectExpiry(model: Pick<LogModel, 'onMoment'>): void {
    const expiry = new ExpiryBook()
    const { onMoment } = model
    model.onMoment = (moment) => {
      onMoment(moment)
      expiry.onMoment(moment)
    }
    this.#expiry = expiry
  }

  onWrite(write: RowWrite): void {
    if (this.#expiry === undefined) return
    const isRight = this.#expiry.onWrite(write)
    this.#check(isRight, 'TTL-4', 'A cell was removed that had not expired.', { write })
    const mayGo = this.#holds.onWrite(write)
    this.#check(mayGo, 'HOLD-1', 'A cell was removed whose row is held.', { write })
  }

  /** A purge of one cell begins. */
  onEraseAsked = (name: CellName): void => this.#expiry?.ask(name)
  /** It has removed the cell. */
  onErased(name: CellName): void {
    this.#erased.set(formatName(name), this.begin())
  }

  /** The moment an operation begins. */
  begin(): number {
    return (this.#tick += 1)
  }

  /** The highest added id of a shard in any answer. */
  highestAddedId(shard: number): number {
    return this.#ensureShard(shard).highest
  }

  /** The moment right after the cell of an added id; undefined when no answer showed that cell. */
  timeAfter(shard: number, addedId: number): number | undefined {
    const name = this.#ensureShard(shard).names.get(addedId)
    const seen = name === undefined ? undefined : this.#facts.get(name)?.seen
    return seen && Number(seen.cell.createdAt) + 1
  }

  onPurgeSent(asked: PurgeAsked): Purge {
    return this.#purges.begin(asked, this.begin())
  }

  /** To the end of the shard's log. */
  onPurgeAcknowledged(purge: Purge): void {
    purge.ackTick = this.begin()
  }

  /** Called once for each put, and again when a client sends it again as another put. */
  onPutSent(name: CellName, body: string): void {
    const fact = this.#ensureFact(name)
    fact.sent.set(body, (fact.sent.get(body) ?? 0) + 1)
    fact.sentCount += 1
  }

  onPutAcknowledged(cell: SeenCell, startTick: number, isCreated: boolean): void {
    const fact = this.#see(cell)
    if (!isCreated) {
      const sentence = 'A put is told that its cell was there, and nobody else put it.'
      return this.#check(fact.sentCount > 1, 'CELL-4', sentence, { cell })
    }
    fact.createdCount += 1
    this.#check(fact.createdCount === 1, 'LOG-3', 'A cell was created twice.', { cell })
    const { acknowledged } = this.#ensureShard(cell.shard)
    const before = acknowledged.findLast((one) => one.tick < startTick)?.highest ?? 0
    this.#check(
      cell.addedId > before,
      'CELL-3',
      'A cell got a smaller added id than one acknowledged before it was sent.',
      { cell, before },
    )
    const highest = Math.max(acknowledged.at(-1)?.highest ?? 0, cell.addedId)
    acknowledged.push({ tick: this.#tick, highest })
  }

  /** The put was acknowledged as durable elsewhere, on its way to its shard. */
  onPutBuffered(name: CellName, body: string): void {
    this.#buffered.push({ name, body })
  }

  /**
   * All buffers are drained and all shards were read. Each buffered cell is in its shard, or
   * another body is there. `isRejected` tells of the cells that buffers keep for good.
   */
  onDrained(isRejected: (name: CellName, body: string) => boolean): void {
    for (const { name, body } of this.#buffered) {
      // It may have come, and been removed for good.
      if (this.#purges.hasAny(name.shard, name.column) || this.#mayExpire(name)) continue
      const { seen } = this.#ensureFact(name)
      const there = seen?.cell.body
      this.#check(
        seen === undefined || this.#ensureShard(name.shard).names.has(seen.cell.addedId),
        'BUF-3',
        "A cell that was buffered is in no place of its shard's log.",
        { name },
      )
      this.#check(
        there === body || (there !== undefined && isRejected(name, body)),
        'BUF-1',
        'A cell that was said to be buffered is not in its shard, and not rejected for another one.',
        { name, body, there },
      )
    }
  }

  /** A put's answer was that it surely has no effect, then or later. */
  onPutFailed(name: CellName, body: string): void {
    const fact = this.#ensureFact(name)
    fact.sent.set(body, (fact.sent.get(body) ?? 0) - 1)
    if (fact.seen !== undefined) this.#mustBeSent(fact, fact.seen.cell)
  }

  /**
   * The triple was refused because another body stands there, or it, or a later one, was purged.
   */
  onPutRefused(name: CellName, body: string): void {
    if (this.#purges.hasAny(name.shard, name.column) || this.#mayExpire(name)) return
    const fact = this.#ensureFact(name)
    const { seen } = fact
    const isOther = seen === undefined ? fact.sent.size > 1 : seen.cell.body !== body
    this.#check(isOther, 'CELL-1', 'A cell was refused although no other body is there.', {
      name,
      body,
    })
  }

  onGot(name: CellName, found: SeenCell | undefined, info: ReadInfo): void {
    const known = this.#ensureFact(name).seen
    if (found !== undefined) {
      this.#check(isSameName(found, name), 'CELL-1', 'Another cell was answered.', { name, found })
      this.#read(found, info)
    } else if (info.isCurrent) {
      this.#mustKnow(known, info)
    }
  }

  onLatest(
    row: string,
    column: string,
    shard: number,
    found: SeenCell | undefined,
    info: ReadInfo,
  ): void {
    const known = [...this.#ensureColumn({ shard, row, column }).values()]
    if (found !== undefined) this.#read(found, info)
    const floor = found?.refKey ?? -1
    for (const { seen } of known) {
      if (seen === undefined || seen.cell.refKey <= floor) continue
      if (info.isCurrent) this.#mustKnow(seen, info)
    }
  }

  /** A session named its position in a shard, and its answer carried another position. */
  onPosition(client: string, shard: number, asked: number, told: number): void {
    const sentence = 'A session is shown an earlier position than it had been told of.'
    this.#check(told >= asked, 'CELL-5', sentence, { client, shard, asked, told })
  }

  /** Versions of a column in `[from, …]`, rising or falling, at most `limit`. */
  onVersions(
    asked: { readonly row: string; readonly column: string; readonly shard: number },
    range: { readonly from: number; readonly limit: number; readonly reverse: boolean },
    found: readonly SeenCell[],
    info: ReadInfo,
  ): void {
    const known = [...this.#ensureColumn(asked).values()]
    for (const cell of found) this.#read(cell, info)
    const keys = found.map((cell) => cell.refKey)
    const sign = range.reverse ? -1 : 1
    const isOrdered = keys.every((key, i) => i === 0 || (key - (keys[i - 1] ?? 0)) * sign > 0)
    this.#check(isOrdered, 'CELL-2', 'Versions came out of the order of their ref keys.', { keys })
    if (!info.isCurrent) return
    const last = keys.length < range.limit ? undefined : keys.at(-1)
    for (const { seen } of known) {
      if (seen === undefined || keys.includes(seen.cell.refKey)) continue
      const { refKey } = seen.cell
      const isPast = (refKey - range.from) * sign < 0
      const isBeyond = last !== undefined && (refKey - last) * sign > 0
      if (!isPast && !isBeyond) this.#mustKnow(seen, info)
    }
  }

  /** Where the next page begins, of one of at most `limit` columns or versions. */
  onCursor(next: string | number, found: readonly SeenCell[], limit: number): void {
    const shown = found.map(({ column, refKey }) => (typeof next === 'string' ? column : refKey))
    const sentence = 'A cursor does not lead on: its page is empty, too long, or shows that place.'
    const isSound = found.length > 0 && found.length <= limit
    this.#check(isSound && !shown.includes(next), 'CELL-2', sentence, { next, shown, limit })
  }

  /**
   * A log from a time on begins with the first cell of that time or a later one; `next` of an empty
   * one is the last cell before it. Exact: cells are stamped in the order of their added ids.
   */
  onLogSince(
    shard: number,
    time: number,
    { next, first }: { readonly next: number; readonly first: SeenCell | undefined },
    { client }: ReadInfo,
  ): void {
    const isLate = first === undefined || Number(first.createdAt) >= time
    const early = 'A log since a time begins with a cell of before.'
    this.#check(isLate, 'CELL-3', early, { client, shard, time, first })
    const upTo = first === undefined ? next : first.addedId - 1
    for (const [addedId, name] of this.#ensureShard(shard).names) {
      const fact = this.#facts.get(name)
      if (fact?.seen === undefined || addedId > upTo) continue
      if (Number(fact.seen.cell.createdAt) < time || this.#mayBeGone(fact)) continue
      const late = 'A log since a time leaves out a cell of that time or a later one.'
      this.#check(false, 'CELL-3', late, { client, shard, time, upTo, missing: fact.seen.cell })
    }
  }

  /** A shard's cells after an added id; `next`: up to where the page has looked. */
  onShardRead(
    shard: number,
    range: { readonly after: number; readonly limit: number; readonly next?: number },
    found: readonly SeenCell[],
    info: ReadInfo,
  ): void {
    const { names } = this.#ensureShard(shard)
    const known = [...names].filter(([, name]) => this.#facts.get(name)?.seen !== undefined)
    for (const cell of found) this.#read(cell, info)
    const ids = found.map((cell) => cell.addedId)
    const isInOrder = ids.every((id, i) => id > (ids[i - 1] ?? range.after))
    const { after } = range
    this.#check(isInOrder, 'CELL-3', 'A shard log is out of order.', { shard, after, ids })
    this.#checkGaps(shard, range.after, ids)
    if (!info.isCurrent || found.length >= range.limit) return
    // A page passes over expired cells, and has looked at their places.
    const upTo = this.#expiry?.hasAny(shard) === true ? (range.next ?? Infinity) : Infinity
    for (const [addedId, name] of known) {
      const isBehind = addedId > (ids.at(-1) ?? range.after) && addedId <= upTo
      if (isBehind) this.#mustKnow(this.#facts.get(name)?.seen, info)
    }
  }

  /** A missing added id was purged: no answer ever showed it, or a purge named it. */
  #checkGaps(shard: number, after: number, ids: readonly number[]): void {
    const { names } = this.#ensureShard(shard)
    const isPurged = this.#purges.hasAny(shard) || this.#expiry?.hasAny(shard) === true
    let expected = after + 1
    for (const id of ids) {
      for (; expected < id; expected++) {
        const fact = this.#facts.get(names.get(expected) ?? '')
        const mayBeGone = isPurged && (fact === undefined || this.#mayBeGone(fact))
        const sentence = 'A shard log is not dense from where it was read.'
        this.#check(mayBeGone, 'CELL-3', sentence, { shard, after, ids, missing: expected })
      }
      expected = id + 1
    }
  }

  #mayBeGone({ name, seen }: Fact): boolean {
    if (seen === undefined || this.#expiry?.mayBeGone(name) === true) return true
    return this.#purges.mayBeGone(seen, this.#ensureColumn(name).keys())
  }

  /** Whether a cell of the column has expired, or may have. */
  #mayExpire(name: CellName): boolean {
    const expiry = this.#expiry
    if (expiry === undefined) return false
    return [...this.#ensureColumn(name).values()].some((fact) => expiry.mayBeGone(fact.name))
  }

  /** A cell of that time or later was in an answer before the read began. */
  #mustHaveExpired(name: CellName, { startTick, isCurrent }: ReadInfo): boolean {
    const moment = isCurrent ? this.#expiry?.momentOf(name) : undefined
    if (moment === undefined) return false
    const { times } = this.#ensureShard(name.shard)
    const told = times.findLast(({ tick }) => tick < startTick)
    return told !== undefined && told.createdAt >= moment
  }

  /** A cell that a read shows: not one that was purged before the read began. */
  #read(cell: SeenCell, info: ReadInfo): void {
    const { name, seen } = this.#see(cell)
    this.#check(
      !this.#mustHaveExpired(cell, info),
      'TTL-3',
      'A current read shows a cell that had expired by an answer of before it began.',
      { client: info.client, cell },
    )
    const isErased = (this.#erased.get(formatName(cell)) ?? Infinity) < info.startTick
    const shown = 'A current read shows a cell that was purged before it began.'
    this.#check(!(info.isCurrent && isErased), 'CELL-7', shown, { client: info.client, cell })
    if (!info.isCurrent || seen === undefined || !this.#purges.hasAny(cell.shard)) return
    const column = [...this.#ensureColumn(name).values()].flatMap((one) => one.seen ?? [])
    this.#check(
      !this.#purges.mustBeGone(seen, column, info.startTick),
      'CELL-7',
      'A current read shows a cell that was purged before it began.',
      { client: info.client, cell },
    )
  }

  /** The answer should have shown a cell that was known before the read began. */
  #mustKnow(seen: Fact['seen'], info: ReadInfo): void {
    if (seen === undefined) return
    const { cell } = seen
    if (this.#expiry?.mayBeGone(cell) === true) return
    const isPurged = this.#purges.hasAny(cell.shard)
    if (isPurged && this.#purges.mayBeGone(seen, this.#ensureColumn(cell).keys())) return
    this.#check(
      seen.sinceTick >= info.startTick,
      isPurged ? 'CELL-8' : 'LEASE-3',
      'A current read misses a cell that was acknowledged or shown before it began.',
      { client: info.client, missing: cell },
    )
  }

  #see(cell: SeenCell): Fact {
    const fact = this.#ensureFact(cell)
    this.#check(fact.sent.has(cell.body), 'CELL-1', 'A cell was shown that nobody wrote.', { cell })
    this.#mustBeSent(fact, cell)
    const known = fact.seen
    if (known === undefined) fact.seen = { cell, sinceTick: this.begin() }
    else {
      const isSame =
        known.cell.body === cell.body &&
        known.cell.addedId === cell.addedId &&
        known.cell.createdAt === cell.createdAt
      this.#check(isSame, 'CELL-1', 'A cell has changed.', { before: known.cell, now: cell })
    }
    const shard = this.#ensureShard(cell.shard)
    const { names, times } = shard
    const createdAt = Number(cell.createdAt)
    if (createdAt > (times.at(-1)?.createdAt ?? 0)) times.push({ tick: this.begin(), createdAt })
    shard.highest = Math.max(shard.highest, cell.addedId)
    const name = formatName(cell)
    const other = names.get(cell.addedId)
    this.#check(
      other === undefined || other === name,
      'CELL-3',
      'Two cells of a shard have one added id.',
      { cell, other },
    )
    names.set(cell.addedId, name)
    return fact
  }

  #mustBeSent({ sent }: Fact, cell: SeenCell): void {
    this.#check(
      sent.get(cell.body) !== 0,
      'CELL-4',
      'A cell is there, and every put of it was told that nothing was written.',
      { cell },
    )
  }

  #ensureFact(name: CellName): Fact {
    const key = formatName(name)
    let fact = this.#facts.get(key)
    if (fact === undefined) {
      const { shard, row, column, refKey } = name
      fact = {
        name: { shard, row, column, refKey },
        sent: new Map(),
        seen: undefined,
        createdCount: 0,
        sentCount: 0,
      }
      this.#facts.set(key, fact)
      this.#ensureColumn(name).set(refKey, fact)
    }
    return fact
  }

  #ensureColumn(of: {
    readonly shard: number
    readonly row: string
    readonly column: string
  }): Map<number, Fact> {
    const key = `${of.shard}/${of.row}/${of.column}`
    let column = this.#columns.get(key)
    if (column === undefined) {
      column = new Map<number, Fact>()
      this.#columns.set(key, column)
    }
    return column
  }

  #ensureShard(shard: number): ShardFacts {
    let facts = this.#shards.get(shard)
    if (facts === undefined) {
      facts = { highest: 0, names: new Map(), acknowledged: [], times: [] }
      this.#shards.set(shard, facts)
    }
    return facts
  }

  #check(
    holds: boolean,
    rule: string,
    sentence: string,
    detail: Readonly<Record<string, unknown>>,
  ): void {
    this.#referee.check(holds, rule, sentence, () => detail)
  }
}

function formatName({ shard, row, column, refKey }: CellName): string {
  return `${shard}/${row}/${column}/${refKey}`
}

function isSameName(a: CellName, b: CellName): boolean {
  return formatName(a) === formatName(b)
}
