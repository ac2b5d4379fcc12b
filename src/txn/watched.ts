/**
 * A promise that knows whether the program has looked at it. A program that forgets to await a write would
 * else never hear that it was refused, and its transaction would be committed without it.
 */
export class Watched<Value> extends Promise<Value> {
  isLookedAt = false

  /** Promises derived from it are plain ones. */
  static override get [Symbol.species](): PromiseConstructor {
    return Promise
  }

  static of<Value>(work: Promise<Value>): Watched<Value> {
    const call = new Watched<Value>((resolve, reject) => void work.then(resolve, reject))
    // The code that began the call handles a failure that the program never looks at: it must not
    // end the process.
    void Promise.prototype.then.call(call, undefined, () => undefined)
    return call
  }

  // oxlint-disable-next-line unicorn/no-thenable -- this is how awaiting is noticed
  override then<Then = Value, Catch = never>(
    onValue?: ((value: Value) => Then | PromiseLike<Then>) | null,
    onError?: ((reason: unknown) => Catch | PromiseLike<Catch>) | null,
  ): Promise<Then | Catch> {
    this.isLookedAt = true
    return super.then(onValue, onError)
  }
}
