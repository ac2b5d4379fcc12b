/** Work on the items of a batch, a bounded number of them at once. */

/** The results in the items' order; rejects with the first rejection. */
export async function mapBounded<Item, Result>(
  items: readonly Item[],
  concurrencyMax: number,
  work: (item: Item, index: number) => Promise<Result>,
): Promise<Result[]> {
  const [only] = items
  // By far the most batches are of one.
  if (items.length === 1 && only !== undefined) return [await work(only, 0)]
  const results: Result[] = []
  let next = 0
  async function worker(): Promise<void> {
    for (let index = next++; index < items.length; index = next++) {
      const item = items[index]
      if (item !== undefined) results[index] = await work(item, index)
    }
  }
  const workers = Array.from({ length: Math.min(concurrencyMax, items.length) }, worker)
  await Promise.all(workers)
  return results
}
