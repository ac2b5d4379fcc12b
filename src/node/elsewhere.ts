/**
 * Whether a client that is sent to another node has one to ask. A client avoids a node that has sent it away
 * (`../client/breaker.ts`), unless it knows no other node. So a client that comes back soon knows no other,
 * and this node serves it.
 */
import type { Clock } from '../ports/clock.ts'

/** By then all has come that was on its way when the node sent the client away. */
const onTheWayMs = 500
/** A client with other nodes does not come back before that: it then looks how this one is. */
const avoidedMs = 1_500

export class Elsewhere {
  readonly #clock: Clock
  #sentMs = Number.NEGATIVE_INFINITY
  #isAlone = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** A request has come: whether its client is to ask another node. */
  mayAsk(): boolean {
    if (this.#isAlone) return false
    const nowMs = this.#clock.monotonicMs()
    const passedMs = nowMs - this.#sentMs
    this.#isAlone = passedMs >= onTheWayMs && passedMs < avoidedMs
    if (passedMs >= avoidedMs) this.#sentMs = nowMs
    return !this.#isAlone
  }
}
