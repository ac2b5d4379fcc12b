/** Work on the items of a batch, a bounded number of them at once, and in slices where that takes long. */
import { mapConcurrently } from '../base/concurrency.ts'
import type { Pace } from '../ports/pace.ts'

/** As `mapConcurrently`, in steps that are paid for, each by `computeCost` of its item, before it begins. */
export async function mapPaced<Item, Result>(
  items: readonly Item[],
  {
    most,
    pace,
    computeCost,
  }: {
    readonly most: number
    readonly pace: Pace | undefined
    readonly computeCost: (item: Item) => number
  },
  work: (item: Item, index: number) => Promise<Result>,
): Promise<Result[]> {
  if (pace === undefined || items.length === 1) return mapConcurrently(items, most, work)
  const results: Result[] = []
  const room = new Room(most)
  for (const [index, item] of items.entries()) {
    // One of them waits at a time, so a batch that waits for turns costs little.
    const turn = pace.spend(computeCost(item))
    if (turn !== undefined) await turn
    const full = room.enter()
    if (full !== undefined) await full
    pace.enter()
    void work(item, index)
      .finally(() => pace.leave())
      .then(
        (result) => {
          results[index] = result
          room.leave()
        },
        (error: unknown) => room.fail(error),
      )
  }
  await room.empty()
  return results
}

/** Room for a number of items at once. */
class Room {
  readonly #most: number
  #inside = 0
  #failure: { readonly error: unknown } | undefined
  /** Waits until at most `most` are inside, or one has failed. */
  #waiting: { readonly most: number; readonly go: () => void } | undefined

  constructor(most: number) {
    this.#most = most
  }

  /** Undefined: there is room. Rejects, as `empty` does, with the first failure. */
  enter(): Promise<void> | undefined {
    const hasRoom = this.#failure === undefined && this.#inside < this.#most
    this.#inside += 1
    return hasRoom ? undefined : this.#until(this.#most)
  }

  leave(): void {
    this.#inside -= 1
    this.#wake()
  }

  fail(error: unknown): void {
    this.#failure ??= { error }
    this.#wake()
  }

  empty(): Promise<void> {
    return this.#until(0)
  }

  async #until(most: number): Promise<void> {
    while (this.#failure === undefined && this.#inside > most) {
      await new Promise<void>((go) => (this.#waiting = { most, go }))
    }
    if (this.#failure !== undefined) throw this.#failure.error
  }

  #wake(): void {
    const waiting = this.#waiting
    if (waiting === undefined) return
    if (this.#failure === undefined && this.#inside > waiting.most) return
    this.#waiting = undefined
    waiting.go()
  }
}
