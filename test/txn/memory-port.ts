/**
 * The port that transactions stand on, over a replica in memory (`../cells/memory-replica.ts`), with notes
 * of each commit. On demand a commit meets conflicts, unknown outcomes or overload, and pages are small.
 */
import type { GroupId, Position } from '../../src/base/ids.ts'
import type { GroupPort, ReadFrom, RowPage, View } from '../../src/group/group-port.ts'
import type { Outcome, Row, RowRange, Submission } from '../../src/group/replica-port.ts'
import type { Clock } from '../../src/ports/clock.ts'
import { LocalGroups } from '../../src/txn/local-groups.ts'
import { MemoryLog } from '../cells/memory-log.ts'
import { MemoryReplica } from '../cells/memory-replica.ts'
import { TestClock } from './test-ports.ts'

/** The end of a commit instead of the ordinary one. */
export type Twist =
  | { readonly kind: 'overloaded' }
  | { readonly kind: 'expired' }
  /** The answer is lost; with `takesEffect`, not the transaction. */
  | { readonly kind: 'unknown'; readonly takesEffect: boolean }
  /** Said of nothing that was read. */
  | { readonly kind: 'conflict' }

export class MemoryPort implements GroupPort {
  /** Rows in an answer at most. */
  pageRowsMax: number = Infinity
  /** Before each commit: others may write first, or it may come out otherwise. */
  beforeCommit: (submission: Submission) => Promise<Twist | undefined> = async () => undefined
  readonly submissions: Submission[] = []
  views = 0
  readonly replica: MemoryReplica
  readonly #groups: LocalGroups

  constructor(clock: Clock = new TestClock()) {
    this.replica = new MemoryReplica(new MemoryLog(), clock, 0)
    this.#groups = new LocalGroups(this.replica)
  }

  /** The newest rows, in key order. */
  rowsOf(group: GroupId): readonly Row[] {
    return this.replica.rowsOf(group)
  }

  view(group: GroupId, from: ReadFrom, timeoutMs: number, atLeast?: Position): Promise<View> {
    this.views += 1
    return this.#groups.view(group, from, timeoutMs, atLeast)
  }

  get(
    group: GroupId,
    view: View,
    keys: readonly Uint8Array[],
  ): Promise<readonly (Row | undefined)[]> {
    return this.#groups.get(group, view, keys)
  }

  async scan(group: GroupId, view: View, range: RowRange): Promise<RowPage> {
    const { limit = Infinity } = range
    if (limit <= this.pageRowsMax) return this.#groups.scan(group, view, range)
    const page = await this.#groups.scan(group, view, { ...range, limit: this.pageRowsMax })
    return page.rows.length < this.pageRowsMax ? page : { ...page, isWhole: false }
  }

  async commit(submission: Submission, timeoutMs: number): Promise<Outcome> {
    this.submissions.push(submission)
    const twist = await this.beforeCommit(submission)
    if (twist === undefined) return this.#groups.commit(submission, timeoutMs)
    const { group, intent } = submission
    const known = await this.replica.outcome(group, intent, timeoutMs)
    if (known.kind === 'committed') return known
    const { position } = await this.replica.read(group, 'snapshot', timeoutMs)
    if (twist.kind === 'conflict') return { kind: 'conflict', position }
    if (twist.kind !== 'unknown') return twist
    if (twist.takesEffect) await this.#groups.commit(submission, timeoutMs)
    return { kind: 'unknown' }
  }
}
