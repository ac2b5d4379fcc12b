/** Group records out of the two stores: applied state from the data, the rest from the log. */
import { assert, present } from '../base/assert.ts'
import type { GroupId, Position } from '../base/ids.ts'
import type { Acceptor } from '../paxos/acceptor.ts'
import { compareBallots, equalBallots, type Ballot } from '../paxos/ballot.ts'
import type { Decision, PositionRecord } from '../replication/log.ts'
import { decodeState, emptyState, type GroupState } from '../replication/state.ts'
import { corruptData } from '../store/damage.ts'
import type { DataStore } from '../store/data-store.ts'
import type { GroupRecord, RecordSource } from './group-record.ts'
import type { LogStore, PositionHeader } from '../log/log-store.ts'

/** Committed entries that one load reads. */
interface Part {
  readonly entries: number
  readonly bytes: number
}

interface Ahead {
  readonly group: GroupId
  readonly record: GroupRecord
  /** Of the log, when the reading began. */
  readonly changes: number
}

type LookedUp =
  | { readonly kind: 'absent' }
  | { readonly kind: 'present'; readonly acceptor: Acceptor; readonly chosen: boolean }
  | { readonly kind: 'faulty' }

/** In the place of what is not read yet: neither a vote nor "nothing accepted", as after damage. */
const unread: PositionRecord = { kind: 'faulty' }

export class StoredRecords implements RecordSource {
  /**
   * The part of the committed entries that one load reads; absent: all. A data store that is made anew takes
   * in whole logs, whose groups may be larger than memory.
   */
  partMax: Part | undefined
  readonly #log: LogStore
  readonly #data: DataStore
  /** Read in slices, and given to the next load, where the stores still say the same. */
  #ahead: Ahead | undefined

  constructor(log: LogStore, data: DataStore) {
    this.#log = log
    this.#data = data
  }

  load(group: GroupId): GroupRecord {
    const ahead = this.#ahead
    this.#ahead = undefined
    if (ahead?.group === group && this.#isCurrent(ahead)) return ahead.record
    const reading = this.#reading(group)
    for (;;) {
      const { done, value } = reading.next()
      if (done === true) return value
    }
  }

  /**
   * Reads what the next load of the group gives, position by position. `partMax` bounds only what can be
   * applied: behind a hole, which damage makes, everything is read.
   */
  *readAhead(group: GroupId): Generator<undefined, void> {
    const { changes } = this.#log
    const record = yield* this.#reading(group)
    this.#ahead = { group, record, changes }
  }

  /** Nothing was written, nor applied, while it was read. */
  #isCurrent({ group, record, changes }: Ahead): boolean {
    return changes === this.#log.changes && record.state.position === this.#state(group).position
  }

  *#reading(group: GroupId): Generator<undefined, GroupRecord> {
    const state = this.#state(group)
    this.#checkNewest(group, state.position)
    const records = new Map<Position, PositionRecord>()
    const decisions = new Map<Position, Decision>()
    // From the applied position on, without a hole: what a step can apply at once.
    const next = { entries: 0, bytes: 0 }
    for (const header of this.#log.positions(group, state.position)) {
      const { position } = header
      const isNext = position === state.position + next.entries + 1
      if (isNext && header.chosen !== undefined && this.#isEnough(next)) {
        // The open position, and the last: no request asks for others before they are read.
        records.set(position, unread).set(this.#log.highest(group), unread)
        return { state, records, decisions, isPart: true }
      }
      yield undefined
      const looked = this.#read(group, header)
      if (looked.kind === 'absent') continue
      assert(position > state.position, 'LOG-1: an applied position is read as an open one')
      records.set(position, looked)
      const decision = findDecision(header, looked)
      if (decision === undefined) continue
      decisions.set(position, decision)
      if (!isNext || decision.value === undefined) continue
      next.entries += 1
      next.bytes += decision.value.length
    }
    return { state, records, decisions, isPart: false }
  }

  #isEnough({ entries, bytes }: Part): boolean {
    const most = this.partMax
    return most !== undefined && entries > 0 && (entries >= most.entries || bytes >= most.bytes)
  }

  #state(group: GroupId): GroupState {
    const bytes = this.#data.state(group)
    if (bytes === undefined) return emptyState()
    return present(decodeState(bytes), 'LOG-6: a state record is of no known format')
  }

  /**
   * Damage within a key hides a record, or shows the one before it, without a word; a group that is
   * taken for new would vote against what it has promised. Its rows stand elsewhere.
   *
   * A snapshot that is on its way to the disk has settled positions in the log, and no record yet. The group takes no step then, but
   * a look at it comes here.
   */
  #checkNewest(group: GroupId, position: Position): void {
    if (!this.#log.wasSettled(group, position + 1) || this.#data.hasPending(group)) return
    throw corruptData('a state record is missing, or an older one stands in its place')
  }

  isSettled(group: GroupId): boolean {
    return !this.#data.hasPending(group)
  }

  #read(group: GroupId, header: PositionHeader): LookedUp {
    const { promised, accepted, chosen } = header
    if (header.faulty) return { kind: 'faulty' }
    const ballot = chosen ?? accepted
    if (ballot === undefined) {
      return promised === undefined
        ? { kind: 'absent' }
        : { kind: 'present', acceptor: { promised }, chosen: false }
    }
    const value = this.#log.value(group, header.position)
    if (value === 'faulty') return { kind: 'faulty' }
    if (value === undefined) {
      // Known to be chosen, at a ballot that this replica never accepted.
      const kept = promised === undefined ? {} : { promised }
      return { kind: 'present', acceptor: kept, chosen: false }
    }
    const isChosen = chosen !== undefined
    return {
      kind: 'present',
      // A chosen value counts as accepted: a proposal at any higher ballot has this value again.
      acceptor: { promised: highest(promised, ballot), accepted: { ballot, value } },
      chosen: isChosen && (accepted === undefined || equalBallots(ballot, chosen)),
    }
  }
}

function findDecision({ chosen }: PositionHeader, looked: LookedUp): Decision | undefined {
  const accepted = looked.kind === 'present' && looked.chosen && looked.acceptor.accepted
  if (accepted) return accepted
  return chosen === undefined ? undefined : { ballot: chosen }
}

function highest(a: Ballot | undefined, b: Ballot): Ballot {
  return a !== undefined && compareBallots(a, b) > 0 ? a : b
}
