/**
 * Transactions on their way into the core: those that come in one turn, as the requests of one frame
 * do, are one event of their group. Taken one by one, the first would be proposed by itself, and all
 * others would wait for the position after it: two positions, and two flushes at every replica, for
 * what has room in one.
 *
 * The turn ends with the call that brought the first of them: promises run right after it, before any
 * other event, so that nothing waits for a timer or for another turn of the loop.
 */
import { assert } from '../base/assert.ts'
import type { GroupId } from '../base/ids.ts'
import type { Arrived } from '../replication/group.ts'

export class SubmitBatcher {
  readonly #onTurn: (group: GroupId, arrived: readonly Arrived[]) => void
  #groups = new Map<GroupId, Arrived[]>()

  /** `onTurn` is called for each group that something came for; it does not throw. */
  constructor(onTurn: (group: GroupId, arrived: readonly Arrived[]) => void) {
    this.#onTurn = onTurn
  }

  add(group: GroupId, one: Arrived): void {
    const known = this.#groups.get(group)
    if (known !== undefined) return void known.push(one)
    this.#groups.set(group, [one])
    if (this.#groups.size === 1) void Promise.resolve().then(() => this.#take())
  }

  #take(): void {
    const groups = this.#groups
    this.#groups = new Map()
    assert(groups.size > 0, 'LIVE-1: a turn of arrivals ends in which nothing came')
    for (const [group, arrived] of groups) this.#onTurn(group, arrived)
  }
}
