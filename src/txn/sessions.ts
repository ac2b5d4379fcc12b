/**
 * Intents for transactions: each call has a (session, sequence) of its own, the same in every rerun,
 * so that it takes effect once. One whose end nobody knows must hold its session's floor, so the
 * session is left behind with it and a new one begun.
 */
import { assert } from '../base/assert.ts'
import type { Clock } from '../ports/clock.ts'
import { randomUuid, type Random } from '../ports/random.ts'
import type { Intent } from '../replica/local-replica.ts'
import { intentLifetimeMs } from './bounds.ts'

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
  next: number
}

export class TransactionSessions implements IntentSource {
  readonly #clock: Clock
  readonly #random: Random
  #current: Session | undefined

  constructor(clock: Clock, random: Random) {
    this.#clock = clock
    this.#random = random
  }

  open(): OpenIntent {
    this.#current ??= { id: randomUuid(this.#random), open: new Set(), next: 1 }
    const session = this.#current
    const sequence = session.next++
    session.open.add(sequence)
    const [floor = sequence] = session.open
    const expiresAt = this.#clock.wallMicros() + intentLifetimeMs * 1000
    return {
      intent: { session: session.id, sequence, floor, expiresAt },
      settle: (isKnown) => {
        assert(session.open.has(sequence), 'TXN-5: an intent is settled once')
        if (isKnown) session.open.delete(sequence)
        else if (session === this.#current) this.#current = undefined
      },
    }
  }
}
