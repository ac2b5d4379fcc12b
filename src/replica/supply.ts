/** Answers peers that ask for what they lack: out of the log, as much as the bounds allow. */
import type { Limits } from '../base/limits.ts'
import type { Effect } from '../replication/effect.ts'
import type { ChosenEntry, Digest, DigestRequest, Entries } from '../replication/message.ts'
import type { LogStore } from './log-store.ts'

/** Committed entries, contiguous from the first one asked for; none when that is not known, or damaged, here. */
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

/** The groups that this node's flushes have written in since. */
export function digestFor(
  log: LogStore,
  { digestGroupsMax }: Limits,
  { after, asked }: DigestRequest,
): Digest {
  return { kind: 'digest', after, asked, ...log.since(after, digestGroupsMax) }
}
