/**
 * When groups fall due, one timer for all of them (`time/deadlines.ts`). Entries are not taken back, so a
 * group that is put off again and again has another one only when it is due earlier than the one before.
 */
import type { GroupId } from '../base/ids.ts'
import type { Clock } from '../ports/clock.ts'
import { Deadlines } from './deadlines.ts'

/** Nothing is entered for so little: two clocks that go at different speeds would make each due earlier. */
const lateMsMax = 5

export class Dues {
  readonly #deadlines: Deadlines<GroupId>
  /** By group, when its entries fall due, each earlier than the one before. */
  readonly #entries = new Map<GroupId, number[]>()

  /** Calls `onDue` at each entry; a group that was put off for longer meanwhile is to be added again. */
  constructor(clock: Clock, onDue: (group: GroupId) => void) {
    this.#deadlines = new Deadlines(clock, (group) => {
      this.#take(group)
      onDue(group)
    })
  }

  /** `onDue` is called at `atMs` of the monotonic clock, or a little later, and maybe before. */
  add(group: GroupId, atMs: number): void {
    const entries = this.#entries.get(group)
    const next = entries?.at(-1) ?? Number.POSITIVE_INFINITY
    if (next <= atMs + lateMsMax) return
    if (entries === undefined) this.#entries.set(group, [atMs])
    else entries.push(atMs)
    this.#deadlines.add(group, atMs)
  }

  stop(): void {
    this.#deadlines.stop()
    this.#entries.clear()
  }

  #take(group: GroupId): void {
    const entries = this.#entries.get(group)
    entries?.pop()
    if (entries?.length === 0) this.#entries.delete(group)
  }
}
