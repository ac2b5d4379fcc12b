/**
 * A start takes up what the log holds beyond the data store. One that is made anew takes in the whole
 * log: no faster than it is applied, and of a group no more at once than one answer of a peer would bring.
 *
 * LIVE-6  A turn ends with the first group that reaches `sliceMs`: whoever asks how the node is hears of it.
 */
import type { GroupId } from '../base/ids.ts'
import type { Limits } from '../base/limits.ts'
import type { Clock } from '../ports/clock.ts'
import type { DataStore } from './data-store.ts'
import type { LogStore } from './log-store.ts'
import type { StoredRecords } from './record-source.ts'
import type { Replica } from './replica.ts'

export interface TakeUpParts {
  readonly log: LogStore
  readonly data: DataStore
  readonly source: StoredRecords
  readonly replica: Replica
  readonly limits: Limits
  readonly clock: Clock
  wake(group: GroupId): void
}

export async function takeUpLog(parts: TakeUpParts): Promise<void> {
  const { log, data, source, limits, clock } = parts
  let sinceMs = clock.monotonicMs()
  source.partMax = { entries: limits.catchUpEntriesMax, bytes: limits.catchUpBytesMax }
  log.isTakingUp = true
  for (const group of [...log.groupsWithUnsettled()]) {
    await takeUpGroup(parts, group)
    if (data.overlayBytes > limits.overlayBytesMax / 2) await data.drain()
    if (clock.monotonicMs() - sinceMs < limits.sliceMs) continue
    await new Promise<void>((resolve) => clock.defer(resolve))
    sinceMs = clock.monotonicMs()
  }
  source.partMax = undefined
  log.isTakingUp = false
}

async function takeUpGroup({ data, replica, wake }: TakeUpParts, group: GroupId): Promise<void> {
  for (wake(group); replica.holdsPart(group); wake(group)) {
    await data.drain()
    replica.forgetPart(group)
  }
}
