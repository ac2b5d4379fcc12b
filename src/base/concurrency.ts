/** Work on many things, a bounded number of them at once. */

/** A number of places for work; work that finds none free waits, first come, first served. */
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

/**
 * The results in the items' order, of work that begins in that order, on `most` items at once. Rejects with the
 * first rejection, at once; then no more work begins, and work under way goes on to its end.
 */
export async function mapConcurrently<Item, Result>(
  items: readonly Item[],
  most: number,
  work: (item: Item, index: number) => Promise<Result>,
): Promise<Result[]> {
  const [only] = items
  // By far the most lists are of one.
  if (items.length === 1 && only !== undefined) return [await work(only, 0)]
  const results: Result[] = []
  const rest = items.entries()
  let hasFailed = false
  async function worker(): Promise<void> {
    for (const [index, item] of rest) {
      if (hasFailed) return
      try {
        results[index] = await work(item, index)
      } catch (error) {
        hasFailed = true
        throw error
      }
    }
  }
  const workers = Array.from({ length: Math.min(most, items.length) }, worker)
  await Promise.all(workers)
  return results
}

/** The items in lists of `size` each; the last may be shorter. */
export function splitIntoChunks<Item>(items: readonly Item[], size: number): Item[][] {
  const count = Math.ceil(items.length / size)
  return Array.from({ length: count }, (_, i) => items.slice(i * size, (i + 1) * size))
}
