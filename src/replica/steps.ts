/** Steps of groups, one at a time: what a step delivers to its own node waits until that step is over. */
import { assert } from '../base/assert.ts'
import type { GroupId } from '../base/ids.ts'
import type { GroupEvent } from '../replication/group.ts'

export interface StepPorts {
  run(group: GroupId, event: GroupEvent): void
  /** A step failed: nothing of what waited is run. */
  onFailed(error: unknown): void
  /** Nothing waits any more. */
  onDone(): void
}

export class Steps {
  readonly #ports: StepPorts
  readonly #inbox: { readonly group: GroupId; readonly event: GroupEvent }[] = []
  #isStepping = false
  #hasFailed = false

  constructor(ports: StepPorts) {
    this.#ports = ports
  }

  take(group: GroupId, event: GroupEvent): void {
    assert(!this.#hasFailed, 'OWN-2: a node steps on after a step of its core has failed')
    this.#inbox.push({ group, event })
    if (this.#isStepping) return
    assert(this.#inbox.length === 1, 'LOG-2: a step was left over from an earlier turn')
    this.#isStepping = true
    try {
      for (let next = this.#inbox.shift(); next !== undefined; next = this.#inbox.shift()) {
        this.#ports.run(next.group, next.event)
      }
    } catch (error) {
      this.#inbox.length = 0
      this.#hasFailed = true
      this.#ports.onFailed(error)
    } finally {
      this.#isStepping = false
    }
    assert(this.#inbox.length === 0, 'LOG-2: a step is left over at the end of its turn')
    this.#ports.onDone()
  }
}
