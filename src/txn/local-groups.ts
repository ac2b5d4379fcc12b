/** The groups of the replica in this process, as transactions need them. */
import type { GroupId, Position } from '../base/ids.ts'
import type { LocalReplica, Outcome, Row, RowRange, Submission } from '../replica/local-replica.ts'
import { answerBytesMax, pageRowsMax } from './bounds.ts'
import type { GroupPort, ReadFrom, RowPage, View } from './group-port.ts'

export class LocalGroups implements GroupPort {
  readonly #replica: LocalReplica

  constructor(replica: LocalReplica) {
    this.#replica = replica
  }

  async view(group: GroupId, from: ReadFrom, timeoutMs: number, atLeast?: Position): Promise<View> {
    const replica = this.#replica
    if (from.kind === 'at') {
      const { position, timestamp } = await replica.readAt(group, from.timestamp, timeoutMs)
      return { position, asOf: timestamp }
    }
    const level = from.kind === 'current' ? 'current' : 'any'
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
    const rows = await this.#replica.scan(group, { ...range, limit }, view.asOf)
    return cutPage(rows, rows.length < limit || limit === range.limit)
  }

  commit(submission: Submission, timeoutMs: number): Promise<Outcome> {
    return this.#replica.submit(submission, timeoutMs)
  }
}

/** As much as an answer may hold, and at least one row: none is larger than that. */
function cutPage(rows: readonly Row[], isWhole: boolean): RowPage {
  let bytes = 0
  for (const [index, { key, value }] of rows.entries()) {
    bytes += key.length + value.length
    if (bytes > answerBytesMax && index > 0) return { rows: rows.slice(0, index), isWhole: false }
  }
  return { rows, isWhole }
}
