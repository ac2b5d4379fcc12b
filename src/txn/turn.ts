/**
 * The time in which a handle may be used: from when its function is called to when that function
 * ends. A call made later, or still under way at the end, was not awaited.
 */
import { asPromise } from '../base/as-promise.ts'
import { StoreError } from '../base/errors.ts'
import type { Clock } from '../ports/clock.ts'
import { Watched } from './watched.ts'
import { givenUp } from './signalled.ts'
import { remainingMs } from '../time/moments.ts'

export class Turn {
  readonly #what: string
  #isOver = false
  #underWay = 0
  /** The writes under way, one after another: each may read what it replaces. */
  #writes: Promise<void> | undefined
  /** Writes that had failed before the program looked at them. */
  readonly #failed: { readonly call: Watched<unknown>; readonly error: unknown }[] = []

  /** `what` names the handle in messages: 'transaction'. */
  constructor(what: string) {
    this.#what = what
  }

  get isOver(): boolean {
    return this.#isOver
  }

  get isBusy(): boolean {
    return this.#underWay > 0
  }

  check(): void {
    if (this.#isOver) throw this.#over()
  }

  #over(): StoreError {
    const message = `this ${this.#what} is over; use its handle inside its function only, and await each call`
    return new StoreError('closed', message)
  }

  /** Rejects when the time is over. Adds no turn of the event loop to those of `run`. */
  take<Value>(run: () => Promise<Value>): Promise<Value> {
    if (this.#isOver) return Promise.reject(this.#over())
    this.#underWay += 1
    const end = (): void => {
      this.#underWay -= 1
    }
    const done = asPromise(run)
    done.then(end, end)
    return done
  }

  /** A read: after the writes that were called before it. */
  read<Value>(run: () => Promise<Value>): Promise<Value> {
    const before = this.#writes
    if (before === undefined) return this.take(run)
    return this.take(() => before.then(run))
  }

  /** A write: after the writes that were called before it. */
  write<Value>(run: () => Promise<Value>): Promise<Value> {
    const done = this.read(run)
    const end = (): void => {
      if (this.#writes === ended) this.#writes = undefined
    }
    // The caller of a failed write gets its error; the next write goes on.
    const ended: Promise<void> = done.then(end, end)
    this.#writes = ended
    const call = Watched.of(done)
    done.catch((error: unknown) => {
      if (!call.isLookedAt) this.#failed.push({ call, error })
    })
    return call
  }

  /**
   * Ends the turn. Throws when a call is still under way; throws the error of a failed write that the program
   * never awaited.
   */
  end(): void {
    this.#isOver = true
    const failed = this.#failed.find(({ call }) => !call.isLookedAt)
    if (failed !== undefined) throw failed.error
    if (this.#underWay === 0) return
    const message = `the function of this ${this.#what} ended before ${this.#underWay} of its calls; await each of them`
    throw new StoreError('invalid', message)
  }

  /** The function failed: calls still under way do not matter. */
  giveUp(): void {
    this.#isOver = true
  }
}

/** When a function is given up that has not ended; `what` is 'transaction'. */
export interface Until {
  readonly clock: Clock
  readonly deadlineMs: number
  readonly timeoutMs: number
  readonly signal?: AbortSignal | undefined
}

/** How long calls of a handle whose time is over may still take to say why they end. */
const lastWordsMs = 100

/**
 * The same of a function that may never end: after its time the handle is over, and so is the call. What the
 * function does after that through its handle is refused.
 */
export function inTurnUntil<Value>(
  turn: Turn,
  run: () => Promise<Value>,
  { clock, deadlineMs, timeoutMs, signal }: Until,
): Promise<Value> {
  return new Promise((resolve, reject) => {
    const end = (): void => {
      turn.giveUp()
      if (signal !== undefined) reject(givenUp(signal))
    }
    signal?.addEventListener('abort', end, { once: true })
    let isLast = false
    const late = (): void => {
      // Its calls have the same time: they end by themselves, and say better why.
      if (turn.isBusy && !isLast) {
        isLast = true
        timer = clock.setTimer(lastWordsMs, late)
        return
      }
      turn.giveUp()
      const message = `the function of this call has not ended in its time, ${timeoutMs} milliseconds, and nothing of this run was written: let it do less, or give it more time (timeoutMs)`
      reject(new StoreError('timeout', message))
    }
    let timer = clock.setTimer(remainingMs(clock, deadlineMs), late)
    inTurn(turn, run)
      .then(resolve, reject)
      .finally(() => {
        timer.cancel()
        signal?.removeEventListener('abort', end)
      })
  })
}

/** Ends the turn with the function, however that ends. */
export function inTurn<Value>(turn: Turn, run: () => Promise<Value>): Promise<Value> {
  // Not every program that calls this was checked by a compiler: a function may give no promise.
  return Promise.resolve(asPromise(run)).then(
    (value) => {
      turn.end()
      return value
    },
    (error: unknown) => {
      turn.giveUp()
      throw error
    },
  )
}
