/** Entity groups over the network: what transactions of an application stand on. */
import { StoreError } from '../base/errors.ts'
import type { GroupId, Position } from '../base/ids.ts'
import { errorOf } from '../base/problem.ts'
import type { Outcome, Row, RowRange, Submission } from '../replica/local-replica.ts'
import type { GroupAnswer, GroupOperation, ReadGroup } from '../txn/group-operation.ts'
import type { GroupPort, ReadFrom, RowPage, View } from '../txn/group-port.ts'
import type { SeenPositions } from './seen-positions.ts'

/** Sends an operation to one node after another, until there is an answer or the time is up. */
export type AskGroup = (operation: GroupOperation, timeoutMs: number) => Promise<GroupAnswer>

type GroupRows = GroupAnswer & { readonly kind: 'read-group' }

export class ClientGroups implements GroupPort {
  readonly #ask: AskGroup
  readonly #seen: SeenPositions

  constructor(ask: AskGroup, seen: SeenPositions) {
    this.#ask = ask
    this.#seen = seen
  }

  async view(
    group: GroupId,
    from: ReadFrom,
    timeoutMs: number,
    atLeast: Position = 0,
  ): Promise<View> {
    const seen = this.#seen.of(group)
    const isSure = seen !== undefined || from.kind === 'current' || from.kind === 'at'
    const { view } = await this.#read(
      {
        kind: 'read-group',
        group,
        // What was seen is not known any more: a current read sees all of it.
        from: isSure ? from : { kind: 'current' },
        atLeast: Math.max(atLeast, seen ?? 0),
        keys: [],
      },
      timeoutMs,
    )
    return view
  }

  async get(
    group: GroupId,
    view: View,
    keys: readonly Uint8Array[],
    timeoutMs: number,
  ): Promise<readonly (Row | undefined)[]> {
    const rows: (Row | undefined)[] = []
    while (rows.length < keys.length) {
      const left = keys.slice(rows.length)
      const answer = await this.#read({ ...placeOf(group, view), keys: left }, timeoutMs)
      rows.push(...answer.rows)
    }
    return rows
  }

  async scan(group: GroupId, view: View, range: RowRange, timeoutMs: number): Promise<RowPage> {
    const { page } = await this.#read({ ...placeOf(group, view), keys: [], range }, timeoutMs)
    return page ?? { rows: [], isWhole: true }
  }

  async commit(submission: Submission, timeoutMs: number): Promise<Outcome> {
    const answer = await this.#ask({ kind: 'commit-group', submission }, timeoutMs)
    if (answer.kind === 'problem') throw errorOf(answer.problem)
    if (answer.kind !== 'commit-group') return { kind: 'unknown' }
    const { outcome } = answer
    if (outcome.kind === 'committed') this.#seen.see(submission.group, outcome.position)
    return outcome
  }

  async #read(operation: ReadGroup, timeoutMs: number): Promise<GroupRows> {
    const answer = await this.#ask(operation, timeoutMs)
    if (answer.kind === 'problem') throw errorOf(answer.problem)
    if (answer.kind === 'read-group') {
      this.#seen.see(operation.group, answer.view.position)
      return answer
    }
    throw new StoreError('corrupt', 'the node answered something else than was asked')
  }
}

/** A view again, maybe at another node. */
function placeOf(group: GroupId, view: View): Omit<ReadGroup, 'keys' | 'range'> {
  const { position, asOf } = view
  const from: ReadFrom =
    asOf === undefined ? { kind: 'inconsistent' } : { kind: 'at', timestamp: asOf }
  return { kind: 'read-group', group, from, atLeast: position }
}
