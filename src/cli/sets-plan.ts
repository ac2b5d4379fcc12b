/** Which replica sets give how many buckets to which others, so that each has as many as the others. */

export interface Gift {
  readonly from: string
  readonly to: string
  readonly buckets: number
}

interface Owner {
  readonly set: string
  readonly buckets: number
}

/** The sum of the buckets stays. Where they cannot be even, the sets that have most keep one more. */
export function planEven(sets: readonly Owner[]): readonly Gift[] {
  const total = sets.reduce((sum, { buckets }) => sum + buckets, 0)
  const most = sets.toSorted((a, b) => b.buckets - a.buckets)
  const extra = total % sets.length
  const over = most.map(({ set, buckets }, at) => {
    return { set, count: buckets - Math.floor(total / sets.length) - (at < extra ? 1 : 0) }
  })
  const gifts: Gift[] = []
  for (const giver of over.filter(({ count }) => count > 0)) {
    for (const taker of over) {
      const buckets = Math.min(giver.count, -taker.count)
      if (buckets <= 0) continue
      gifts.push({ from: giver.set, to: taker.set, buckets })
      giver.count -= buckets
      taker.count += buckets
    }
  }
  return gifts
}
