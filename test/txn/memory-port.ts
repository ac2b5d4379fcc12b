/**
 * Groups in memory behind the port that transactions stand on: every version of every row, and the
 * keys that each entry wrote, so that what was read is validated as a leader does it. On demand it
 * answers with conflicts, unknown outcomes or overload, and gives small pages.
 */
import { compareBytes, fromLatin1, latin1 } from '../../src/base/bytes.ts'
import { StoreError } from '../../src/base/errors.ts'
import type { GroupId, Position, Timestamp } from '../../src/base/ids.ts'
import type { Outcome, Row, RowRange, Submission } from '../../src/group/replica-port.ts'
import { fillSlots, intentOf } from '../../src/group/transaction.ts'
import type { GroupPort, ReadFrom, RowPage, View } from '../../src/group/group-port.ts'

interface Version {
  readonly timestamp: Timestamp
  readonly value: Uint8Array | undefined
}

interface LogEntry {
  readonly timestamp: Timestamp
  readonly written: readonly Uint8Array[]
  readonly by: { readonly session: string; readonly sequence: number }
}

interface Group {
  readonly rows: Map<string, Version[]>
  readonly log: LogEntry[]
  readonly counters: Map<number, number>
  readonly outcomes: Map<string, Outcome>
}

/** What happens to a commit instead of the ordinary. */
export type Twist =
  | { readonly kind: 'overloaded' }
  | { readonly kind: 'expired' }
  /** The answer is lost; with `takesEffect`, not the transaction. */
  | { readonly kind: 'unknown'; readonly takesEffect: boolean }
  /** Said of nothing that was read. */
  | { readonly kind: 'conflict' }

export class MemoryPort implements GroupPort {
  /** Rows in an answer at most. */
  pageRowsMax = 1000
  /** Before each commit: others may write first, or it may come out otherwise. */
  beforeCommit: (submission: Submission) => Promise<Twist | undefined> = async () => undefined
  readonly submissions: Submission[] = []
  views = 0
  readonly #groups = new Map<GroupId, Group>()

  #group(id: GroupId): Group {
    const known = this.#groups.get(id)
    if (known !== undefined) return known
    const group = { rows: new Map(), log: [], counters: new Map(), outcomes: new Map() }
    this.#groups.set(id, group)
    return group
  }

  /** The newest rows, in key order. */
  rowsOf(id: GroupId): readonly Row[] {
    return this.#rowsAt(id, Number.MAX_SAFE_INTEGER)
  }

  async view(id: GroupId, from: ReadFrom, _timeoutMs: number, atLeast = 0): Promise<View> {
    this.views += 1
    const { log } = this.#group(id)
    if (log.length < atLeast) throw new StoreError('unavailable', 'the position is not there')
    const position: Position = log.length
    const now = log.at(-1)?.timestamp ?? 0
    if (from.kind === 'inconsistent') return { position, asOf: undefined }
    return { position, asOf: from.kind === 'at' ? Math.min(from.timestamp, now) : now }
  }

  async get(
    id: GroupId,
    view: View,
    keys: readonly Uint8Array[],
  ): Promise<readonly (Row | undefined)[]> {
    return keys.map((key) => this.#rowAt(id, latin1(key), view.asOf ?? Number.MAX_SAFE_INTEGER))
  }

  async scan(id: GroupId, view: View, range: RowRange): Promise<RowPage> {
    const inside = this.#rowsAt(id, view.asOf ?? Number.MAX_SAFE_INTEGER).filter(
      ({ key }) =>
        (range.gte === undefined || compareBytes(key, range.gte) >= 0) &&
        (range.lt === undefined || compareBytes(key, range.lt) < 0),
    )
    const ordered = range.reverse === true ? inside.toReversed() : inside
    const limit = Math.min(range.limit ?? ordered.length, this.pageRowsMax)
    return { rows: ordered.slice(0, limit), isWhole: ordered.length <= limit }
  }

  async commit(submission: Submission): Promise<Outcome> {
    this.submissions.push(submission)
    const twist = await this.beforeCommit(submission)
    const { group: id, intent } = submission
    const group = this.#group(id)
    const known = group.outcomes.get(intentOf(intent))
    if (known !== undefined) return known
    if (twist?.kind === 'conflict') return { kind: 'conflict', position: group.log.length }
    if (twist !== undefined && !(twist.kind === 'unknown' && twist.takesEffect)) return twist
    const outcome = this.#validated(group, submission) ?? this.#apply(group, submission)
    return twist === undefined ? outcome : { kind: 'unknown' }
  }

  #validated(group: Group, submission: Submission): Outcome | undefined {
    const { readPosition, reads, ranges } = submission
    for (const [index, { written, by }] of group.log.entries()) {
      const position = index + 1
      if (position <= readPosition) continue
      const key = written.find(
        (one) =>
          reads.some((read) => compareBytes(read, one) === 0) ||
          ranges.some(({ gte, lt }) => compareBytes(gte, one) <= 0 && compareBytes(one, lt) < 0),
      )
      if (key !== undefined) return { kind: 'conflict', position, key, by }
    }
    return undefined
  }

  #apply(group: Group, submission: Submission): Outcome {
    const { intent, attempt, allocations, mutations } = submission
    const timestamp = (group.log.at(-1)?.timestamp ?? 1000) + 10
    const sequences = allocations.map((counter) => {
      const next = (group.counters.get(counter) ?? 0) + 1
      group.counters.set(counter, next)
      return next
    })
    const filled = mutations.map((mutation) => fillSlots(mutation, sequences))
    for (const { key, value, isNew } of filled) {
      const versions = group.rows.get(latin1(key)) ?? []
      if (isNew === true && versions.at(-1)?.value !== undefined) {
        throw new Error(`a row that is said to be new is there: ${latin1(key)}`)
      }
      group.rows.set(latin1(key), [...versions, { timestamp, value }])
    }
    const by = { session: intent.session, sequence: intent.sequence }
    group.log.push({ timestamp, written: filled.map(({ key }) => key), by })
    const position = group.log.length
    const outcome: Outcome = { kind: 'committed', position, timestamp, attempt, sequences }
    group.outcomes.set(intentOf(intent), outcome)
    return outcome
  }

  #rowAt(id: GroupId, key: string, asOf: Timestamp): Row | undefined {
    const versions = this.#group(id).rows.get(key) ?? []
    const version = versions.findLast(({ timestamp }) => timestamp <= asOf)
    if (version?.value === undefined) return undefined
    return { key: fromLatin1(key), value: version.value, timestamp: version.timestamp }
  }

  #rowsAt(id: GroupId, asOf: Timestamp): readonly Row[] {
    const keys = [...this.#group(id).rows.keys()].sort((a, b) => (a < b ? -1 : 1))
    return keys.flatMap((key) => this.#rowAt(id, key, asOf) ?? [])
  }
}
