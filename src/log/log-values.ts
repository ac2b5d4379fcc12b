/**
 * The values in the log: of a position where it is known which one counts, out of what waits for its flush or from
 * the disk. Damage costs the position whose value is damaged, and no other.
 */
import type { GroupId, Position } from '../base/ids.ts'
import type { Ballot } from '../paxos/ballot.ts'
import type { Clock, Timer } from '../ports/clock.ts'
import type { Trace } from '../ports/trace.ts'
import { ChosenPlaces } from './chosen-places.ts'
import type { NamedGroup, RecordHeader } from './flush.ts'
import { searchChosen, type SearchedFlush } from './flush-chain.ts'
import type { FlushReader } from './flush-reader.ts'
import type { LogIndex } from './log-index.ts'
import type { Place, SettledPositions } from './settled.ts'

export interface LogValuesParts {
  readonly index: LogIndex
  readonly rows: SettledPositions
  readonly reader: FlushReader
  readonly clock: Pick<Clock, 'setTimer'>
  readonly trace: Trace
  /** A value in a flush that is not durable yet, and the groups that such a flush names. */
  pending(place: Place): Uint8Array | undefined
  pendingGroups(flush: number): readonly NamedGroup[] | undefined
  durableFlush(): number
  /** The log has given up the flushes before this one. */
  firstFlush(): number
}

/**
 * A peer that was away asks for many values, and the node keeps up to 66 MiB of what it has read for them. It drops them
 * when no peer has asked for this long, or for twice as long: peers are seldom away.
 */
export const unaskedMs = 30_000

export class LogValues {
  readonly #parts: LogValuesParts
  readonly #places = new ChosenPlaces()
  /** Since the timer was set. */
  #isAsked = false
  #timer: Timer | undefined
  #isStopped = false

  constructor(parts: LogValuesParts) {
    this.#parts = parts
  }

  /**
   * The value chosen at a position; undefined where it is not known, or damaged. For a peer, at once: the
   * value is a view, and keeps all of its flush in memory.
   */
  chosen(
    group: GroupId,
    position: Position,
  ): { readonly ballot: Ballot; readonly value: Uint8Array } | undefined {
    this.#onAsked()
    const { index, reader, pending, firstFlush } = this.#parts
    const held = this.#places.find(group, position) ?? index.chosen(group, position)
    const found = held ?? this.#search(group, position)
    const { ballot, place } = found ?? {}
    if (ballot === undefined || place === undefined || place === 'faulty') return undefined
    if (place.flush < firstFlush()) return undefined
    const value = pending(place) ?? reader.view(place)
    if (value === undefined) {
      this.#noteDamage(group, position)
      return undefined
    }
    this.#notePlaces(place.flush)
    return { ballot, value }
  }

  /** The value that a peer gets next stands beside it, as a rule. */
  #notePlaces(flush: number): void {
    if (flush > this.#parts.durableFlush() || this.#places.has(flush)) return
    this.#read(flush)
  }

  /** Keeps what the flush says: a peer that was away asks for much of it. */
  #read(flush: number): SearchedFlush | undefined {
    const groups = this.#parts.pendingGroups(flush)
    // Nothing in it is of a position that is settled.
    if (groups !== undefined) return { number: flush, groups, records: [] }
    const header = this.#parts.reader.header(flush)
    if (header !== undefined && !this.#places.has(flush)) this.#places.add(flush, header.records)
    return header
  }

  /** Of a position that is settled, and not held any more. */
  #search(
    group: GroupId,
    position: Position,
  ):
    | { readonly ballot: Ballot | undefined; readonly place: Place | 'faulty' | undefined }
    | undefined {
    const { index, rows, trace, firstFlush } = this.#parts
    const from = index.searchFrom(group, position, firstFlush() > 1)
    const search = searchChosen(group, position, from, firstFlush(), (flush) => this.#read(flush))
    for (const flush of search.damaged) {
      trace.mark('damaged_flush_found_by_search')
      trace.emit({ kind: 'unreadable', flush })
    }
    if (search.chosen !== undefined) return search.chosen
    const row = rows.row(group, position)
    return row && { ballot: row.chosen, place: row.place }
  }

  /** The decided value where one is known, else the accepted one. `faulty`: the disk damaged it. */
  value(group: GroupId, position: Position): Uint8Array | 'faulty' | undefined {
    const { index, reader, pending } = this.#parts
    const place = index.place(group, position)
    if (place === undefined || place === 'faulty') return place
    this.#onAsked()
    const value = pending(place) ?? reader.read(place)
    if (value !== undefined) return value
    this.#noteDamage(group, position)
    return 'faulty'
  }

  #noteDamage(group: GroupId, position: Position): void {
    const { index, trace } = this.#parts
    index.damage(group, position)
    trace.mark('damaged_value_found_by_read')
    trace.emit({ kind: 'faulty', group, position })
  }

  /** The checksum of the flush before a durable one, as that one names it; undefined where the disk lost that. */
  previousCrc(flush: number): number | undefined {
    this.#onAsked()
    return this.#parts.reader.header(flush)?.previousCrc
  }

  /** The records that a durable flush wrote; undefined where the disk no longer gives them. */
  records(flush: number): readonly RecordHeader[] | undefined {
    this.#onAsked()
    return this.#parts.reader.header(flush)?.records
  }

  #onAsked(): void {
    this.#isAsked = true
    if (this.#timer === undefined && !this.#isStopped) this.#setTimer()
  }

  #setTimer(): void {
    this.#isAsked = false
    this.#timer = this.#parts.clock.setTimer(unaskedMs, () => {
      if (this.#isAsked) return this.#setTimer()
      this.#timer = undefined
      this.#places.clear()
      this.#parts.reader.clear()
    })
  }

  stop(): void {
    this.#isStopped = true
    this.#timer?.cancel()
  }
}
