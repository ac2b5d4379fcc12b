/** Group records out of the two stores: applied state from the data, the rest from the log. */
import { present } from '../base/assert.ts'
import type { GroupId, Position } from '../base/ids.ts'
import { compareBallots, equalBallots, type Ballot } from '../paxos/ballot.ts'
import type { LookedUp } from '../replication/acceptance.ts'
import type { Decision, PositionRecord } from '../replication/log.ts'
import { decodeState, emptyState, type GroupState } from '../replication/state.ts'
import { corruptData } from './damage.ts'
import type { DataStore } from './data-store.ts'
import type { LogStore, PositionHeader } from './log-store.ts'
import type { GroupRecord, RecordSource } from './replica.ts'

export class StoredRecords implements RecordSource {
  readonly #log: LogStore
  readonly #data: DataStore

  constructor(log: LogStore, data: DataStore) {
    this.#log = log
    this.#data = data
  }

  load(group: GroupId): GroupRecord {
    const state = this.#state(group)
    this.#checkNewest(group, state.position)
    const records = new Map<Position, PositionRecord>()
    const decisions = new Map<Position, Decision>()
    for (const header of this.#log.positions(group, state.position)) {
      const looked = this.#read(group, header)
      if (looked.kind === 'absent') continue
      records.set(header.position, looked)
      const decision = looked.kind === 'present' && looked.chosen && looked.acceptor.accepted
      if (decision) decisions.set(header.position, decision)
      else if (header.chosen !== undefined) {
        decisions.set(header.position, { ballot: header.chosen })
      }
    }
    return { state, records, decisions }
  }

  #state(group: GroupId): GroupState {
    const bytes = this.#data.state(group)
    if (bytes === undefined) return emptyState()
    return present(decodeState(bytes), 'LOG-6: a state record is of no known format')
  }

  /**
   * Damage within a key hides a record, or shows the one before it, without a word; a group that is
   * taken for new would vote against what it has promised. Its rows stand elsewhere.
   */
  #checkNewest(group: GroupId, position: Position): void {
    if (!this.#log.wasSettled(group, position + 1)) return
    throw corruptData('a state record is missing, or an older one stands in its place')
  }

  lookup(group: GroupId, position: Position): LookedUp {
    const header = this.#log.position(group, position)
    return header === undefined ? { kind: 'absent' } : this.#read(group, header)
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
      // A chosen value counts as accepted: whatever is proposed above it is this value again.
      acceptor: { promised: highest(promised, ballot), accepted: { ballot, value } },
      chosen: isChosen && (accepted === undefined || equalBallots(ballot, chosen)),
    }
  }
}

function highest(a: Ballot | undefined, b: Ballot): Ballot {
  return a !== undefined && compareBallots(a, b) > 0 ? a : b
}
