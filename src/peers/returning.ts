/**
 * Whether this node has been away and lacks what many groups have committed meanwhile. Each request to such
 * a group would fetch all that it lacks first, at the cost of everybody: as long as the others can do
 * without this node, clients are sent to them.
 *
 * LIVE-8  A node that lacks much sends its clients to the others: no longer than `holdMs` at a time, and
 *         only where those are a majority. A client that knows no other node is served (`../node/elsewhere.ts`).
 */
import { assert } from '../base/assert.ts'
import type { Limits } from '../base/limits.ts'
import type { Clock } from '../ports/clock.ts'
import type { Trace } from '../ports/trace.ts'

/** A node that keeps up lacks a few groups, for moments: less than it asks for in this many rounds. */
const roundsMany = 4
/** Longer than most returns take: after a day away it serves all the same. */
export const holdMs = 30_000

export interface ReturningParts {
  readonly clock: Clock
  readonly trace: Pick<Trace, 'mark'>
  readonly limits: Pick<Limits, 'fetchesMax'>
  /** Groups whose entries are lacking here. */
  lacking(): number
  /** Whether the others that are alive are a majority. */
  areOthersEnough(): boolean
}

export class Returning {
  readonly #parts: ReturningParts
  /** Since when much is lacking. */
  #sinceMs: number | undefined

  constructor(parts: ReturningParts) {
    this.#parts = parts
  }

  /** Whether much is lacking still, for operators. */
  get isCatchingUp(): boolean {
    return this.#since() !== undefined
  }

  /** Whether a client had better ask another node now. */
  get isUnderWay(): boolean {
    const sinceMs = this.#since()
    if (sinceMs === undefined) return false
    const { clock, trace, areOthersEnough } = this.#parts
    const isUnderWay = clock.monotonicMs() - sinceMs < holdMs && areOthersEnough()
    if (!isUnderWay) return false
    assert(areOthersEnough(), 'LIVE-8: clients are sent away, and there is no majority to ask')
    trace.mark('clients_sent_elsewhere')
    return true
  }

  /** Since when much is lacking; undefined: it is not. Between many and few it stays as it was. */
  #since(): number | undefined {
    const { clock, limits, lacking } = this.#parts
    const groups = lacking()
    if (groups <= limits.fetchesMax / 2) this.#sinceMs = undefined
    else if (groups >= roundsMany * limits.fetchesMax) this.#sinceMs ??= clock.monotonicMs()
    return this.#sinceMs
  }
}
