/**
 * Intents: each write has a (session, sequence) of its own, the same on every try and in every rerun,
 * so that it takes effect once. `floor` tells a group which outcomes it may forget.
 *
 * An intent with an unknown outcome may still take effect, so the floor must never pass it: the session
 * it belongs to is left behind with its floor, and a new one begun. So is one that a single call holds
 * up while many others go on: groups would have no room for more outcomes of it. Not often, since what
 * is left behind is remembered until it expires.
 */
import { assert } from '../base/assert.ts'
import type { Timestamp } from '../base/ids.ts'
import type { Clock } from '../ports/clock.ts'
import { randomUuid, type Random } from '../ports/random.ts'
import { intentLifetimeMs, sessionHeldUpMax, sessionMsMin } from './limits.ts'
import type { Intents } from './intents.ts'
import type { Intent } from '../group/replica-port.ts'

/** Some intents on their way. */
export interface OpenIntents {
  readonly sequences: readonly number[]
  /** To be sent now with these sequences, all of them or those that are still to be settled. */
  intents(sequences: readonly number[]): Intents
  /** Called once. `known` when each of them has come to an end that is known. */
  settle(known: boolean): void
}

/** One intent on its way. */
export interface OpenIntent {
  readonly intent: Intent
  /** Called once. `isKnown`: what became of it is, and it is never sent again. */
  settle(isKnown: boolean): void
}

/** Where intents come from; one for all transactions of a client. */
export interface IntentSource {
  open(): OpenIntent
}

interface Session {
  readonly id: string
  /** Sequences on their way, in rising order. */
  readonly open: Set<number>
  readonly beganMs: number
  next: number
}

export class Sessions implements IntentSource {
  readonly #clock: Clock
  readonly #random: Random
  #current: Session

  constructor(clock: Clock, random: Random) {
    this.#clock = clock
    this.#random = random
    this.#current = this.#begin()
  }

  #begin(): Session {
    const beganMs = this.#clock.monotonicMs()
    return { id: randomUuid(this.#random), open: new Set(), beganMs, next: 1 }
  }

  open(): OpenIntent {
    const open = this.openMany(1)
    const { sequences, session, floor, expiresAt } = open.intents(open.sequences)
    const [sequence] = sequences
    assert(sequence !== undefined, 'txn: one intent was opened')
    return { intent: { session, sequence, floor, expiresAt }, settle: open.settle }
  }

  openMany(count: number): OpenIntents {
    if (this.#isHeldUp(this.#current)) this.#current = this.#begin()
    const session = this.#current
    const sequences = Array.from({ length: count }, () => session.next++)
    for (const sequence of sequences) session.open.add(sequence)
    const expiresAt: Timestamp = this.#clock.wallMicros() + intentLifetimeMs * 1000
    return {
      sequences,
      intents: (some) => ({
        session: session.id,
        sequences: some,
        expiresAt,
        floor: computeFloor(session),
      }),
      settle: (known) => this.#settle(session, sequences, known),
    }
  }

  /** Many are settled that no group may forget. */
  #isHeldUp(session: Session): boolean {
    const settled = session.next - computeFloor(session) - session.open.size
    if (settled < sessionHeldUpMax) return false
    return this.#clock.monotonicMs() - session.beganMs >= sessionMsMin
  }

  #settle(session: Session, sequences: readonly number[], known: boolean): void {
    for (const sequence of sequences) {
      assert(session.open.has(sequence), 'TXN-5: an intent is settled once')
      if (known) session.open.delete(sequence)
    }
    if (!known && session === this.#current) this.#current = this.#begin()
  }
}

function computeFloor(session: Session): number {
  const [lowest] = session.open
  return lowest ?? session.next
}
