/**
 * Tries that were given up because their time was over. On a link that is slow, or busy with a large frame,
 * they are answered all the same, and what the answer says is true: it is for the call, until that is over.
 */
import type { Endpoint } from '../ports/transport.ts'
import type { Sending } from './call.ts'

export interface AbandonedAttempt<Calling> {
  readonly one: Calling
  /** The node that got the request, and what the client sent. */
  readonly endpoint: Endpoint
  readonly sending: Sending
}

export class AbandonedAttempts<Calling> {
  readonly #max: number
  readonly #byId = new Map<number, AbandonedAttempt<Calling>>()
  readonly #idsByCall = new Map<Calling, number[]>()

  /** Keeps at most `max` at a time. */
  constructor(max: number) {
    this.#max = max
  }

  /** Where there is no room it is forgotten: the older ones are nearer to their answers. */
  keep(id: number, late: AbandonedAttempt<Calling>): void {
    if (this.#byId.size >= this.#max) return
    this.#byId.set(id, late)
    const ids = this.#idsByCall.get(late.one)
    if (ids === undefined) this.#idsByCall.set(late.one, [id])
    else ids.push(id)
  }

  /** The one under this number, if it is of this node; it is not found again. */
  take(id: number, endpoint: Endpoint): AbandonedAttempt<Calling> | undefined {
    const late = this.#byId.get(id)
    if (late?.endpoint !== endpoint) return undefined
    this.#byId.delete(id)
    return late
  }

  /** The call is over. */
  drop(one: Calling): void {
    for (const id of this.#idsByCall.get(one) ?? []) this.#byId.delete(id)
    this.#idsByCall.delete(one)
  }
}
