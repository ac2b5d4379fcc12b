/** The record of a group in the stores, from which the replica takes it into memory. */
import type { GroupId, Position } from '../base/ids.ts'
import type { Decision, PositionRecord } from '../replication/log.ts'
import type { GroupState } from '../replication/state.ts'

/** Of a group that is not in memory. */
export interface GroupRecord {
  readonly state: GroupState
  /** Acceptor records above the applied position. */
  readonly records: ReadonlyMap<Position, PositionRecord>
  /** Those of them known to be committed. */
  readonly decisions: ReadonlyMap<Position, Decision>
  /**
   * There is more that is committed than was read. Of that the open position and the last one stand as
   * damaged, without a vote; the others are in no record, so that no request may come before all is read.
   */
  readonly isPart: boolean
}

/** Synchronous reads of what is stored, or about to be. */
export interface RecordSource {
  load(group: GroupId): GroupRecord
  /** Whether the data store durably holds everything applied to this group. */
  isSettled(group: GroupId): boolean
}
