/** So many at a time; the others wait, first come, first served. */
export class Slots {
  #free: number
  readonly #waiting: (() => void)[] = []

  constructor(count: number) {
    this.#free = count
  }

  async take(): Promise<void> {
    if (this.#free > 0) {
      this.#free -= 1
      return
    }
    await new Promise<void>((resolve) => void this.#waiting.push(resolve))
  }

  /** Has one for as long as `work` is under way. */
  async during<Value>(work: () => Promise<Value>): Promise<Value> {
    await this.take()
    try {
      return await work()
    } finally {
      this.give()
    }
  }

  give(): void {
    const next = this.#waiting.shift()
    if (next === undefined) this.#free += 1
    else next()
  }
}
