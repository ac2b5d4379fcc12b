/** Answers a peer that asks for committed entries: out of the log, as many as the bounds allow. */
import type { Limits } from '../base/limits.ts'
import type { Effect } from '../replication/effect.ts'
import type { ChosenEntry, Entries } from '../replication/message.ts'
import type { LogStore } from './log-store.ts'

/** Contiguous from the first one asked for; none when that is not known, or damaged, here. */
export function suppliedBy(
  log: LogStore,
  { catchUpEntriesMax, catchUpBytesMax }: Limits,
  { group, epoch, from, through, committed }: Effect & { kind: 'supply' },
): Entries {
  const entries: ChosenEntry[] = []
  let bytes = 0
  for (let position = from; position <= through; position++) {
    const ballot = log.position(group, position)?.chosen
    const value = ballot === undefined ? undefined : log.value(group, position)
    if (ballot === undefined || value === undefined || value === 'faulty') break
    if (entries.length >= catchUpEntriesMax) break
    if (entries.length > 0 && bytes + value.length > catchUpBytesMax) break
    entries.push({ position, ballot, value })
    bytes += value.length
  }
  return { kind: 'entries', group, epoch, from, entries, committed }
}
