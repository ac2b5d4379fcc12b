/** The groups of the replica in this process, as transactions need them. */
import { formatIso } from '../base/datetime.ts'
import { StoreError } from '../base/errors.ts'
import type { GroupId, Position, Timestamp } from '../base/ids.ts'
import { purgeNoteKey } from '../group/purge-note.ts'
import {
  sizeInBytes,
  isAtEnd,
  type BoundedStaleness,
  type LocalReplica,
  type Outcome,
  type ReplicaReadLevel,
  type Row,
  type RowRange,
  type Submission,
} from '../group/replica-port.ts'
import { answerBytesMax, pageRowsMax } from './limits.ts'
import type { GroupPort, ReadFrom, RowPage, View } from '../group/group-port.ts'

export class LocalGroups implements GroupPort {
  readonly #replica: LocalReplica

  constructor(replica: LocalReplica) {
    this.#replica = replica
  }

  async view(group: GroupId, from: ReadFrom, timeoutMs: number, atLeast?: Position): Promise<View> {
    const replica = this.#replica
    if (from.kind === 'at') {
      const { position, timestamp } = await replica.readAt(group, from.timestamp, timeoutMs)
      checkNotPurged(replica, group, timestamp)
      return { position, asOf: timestamp }
    }
    const level = levelOf(from)
    const { position, timestamp } = await replica.read(group, level, timeoutMs, atLeast)
    return { position, asOf: from.kind === 'inconsistent' ? undefined : timestamp }
  }

  get(
    group: GroupId,
    { asOf }: View,
    keys: readonly Uint8Array[],
  ): Promise<readonly (Row | undefined)[]> {
    if (asOf !== undefined) return this.#replica.getAt(group, keys, asOf)
    return Promise.resolve(keys.map((key) => this.#replica.get(group, key)))
  }

  async scan(group: GroupId, view: View, range: RowRange): Promise<RowPage> {
    const limit = Math.min(range.limit ?? Infinity, pageRowsMax)
    const asked = { bytesMax: answerBytesMax, ...range, limit }
    const rows = await this.#replica.scan(group, asked, view.asOf)
    return cutPage(rows, rows.length === range.limit || isAtEnd(rows, asked))
  }

  commit(submission: Submission, timeoutMs: number): Promise<Outcome> {
    return this.#replica.submit(submission, timeoutMs)
  }
}

function levelOf(from: ReadFrom): ReplicaReadLevel | BoundedStaleness {
  if (from.kind === 'bounded') return { maxStalenessMs: from.maxStalenessMs }
  return from.kind === 'current' ? 'current' : 'snapshot'
}

/** PURGE-1: throws `snapshot-too-old` for a moment before rows of the group were purged, as far as is applied here. */
export function checkNotPurged(
  replica: Pick<LocalReplica, 'get'>,
  group: GroupId,
  at: Timestamp,
): void {
  const purge = replica.get(group, purgeNoteKey)
  if (purge === undefined || purge.timestamp <= at) return
  const message = `rows of this group were purged at ${formatIso(purge.timestamp)}, and no moment before that is read any more; read at a later one`
  throw new StoreError('snapshot-too-old', message, { group })
}

/** As much as an answer may hold, and at least one row: none is larger than that. */
function cutPage(rows: readonly Row[], isWhole: boolean): RowPage {
  let bytes = 0
  for (const [index, row] of rows.entries()) {
    bytes += sizeInBytes(row)
    if (bytes > answerBytesMax && index > 0) return { rows: rows.slice(0, index), isWhole: false }
  }
  return { rows, isWhole }
}
