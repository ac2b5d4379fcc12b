/**
 * The time in which a handle may be used: from when its function is called to when that function
 * ends. What is used later, or still under way then, was not awaited.
 */
import { StoreError } from '../base/errors.ts'

export class Turn {
  readonly #what: string
  #isOver = false
  #underWay = 0
  /** The writes called so far, one after another: each may read what it replaces. */
  #writes: Promise<unknown> = Promise.resolve()

  /** `what` names the handle in messages: 'transaction'. */
  constructor(what: string) {
    this.#what = what
  }

  get isOver(): boolean {
    return this.#isOver
  }

  check(): void {
    if (!this.#isOver) return
    const message = `this ${this.#what} is over; use its handle inside its function only, and await each call`
    throw new StoreError('closed', message)
  }

  async take<Value>(run: () => Promise<Value>): Promise<Value> {
    this.check()
    this.#underWay += 1
    try {
      return await run()
    } finally {
      this.#underWay -= 1
    }
  }

  /** A read: after the writes that were called before it. */
  async read<Value>(run: () => Promise<Value>): Promise<Value> {
    const before = this.#writes
    return this.take(async () => {
      await before
      return run()
    })
  }

  /** A write: after the writes that were called before it. */
  async write<Value>(run: () => Promise<Value>): Promise<Value> {
    const before = this.#writes
    const done = this.take(async () => {
      await before
      return run()
    })
    // A write that failed is told to whoever called it; the next one goes on.
    this.#writes = done.catch(() => undefined)
    return done
  }

  /** Nothing is used from here on; throws when something still is. */
  end(): void {
    this.#isOver = true
    if (this.#underWay === 0) return
    const message = `the function of this ${this.#what} ended before ${this.#underWay} of its calls; await each of them`
    throw new StoreError('invalid', message)
  }

  /** The function failed: what is under way does not matter. */
  giveUp(): void {
    this.#isOver = true
  }
}
