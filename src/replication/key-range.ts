/**
 * Ranges of keys as text (one character a byte), and whether a sorted list has a key in one of them.
 * Both lists are walked by leaps, so that a few keys among many ranges, or the other way round, cost
 * little more than the few.
 */
import { compareText, fromLatin1, latin1 } from '../base/bytes.ts'
import type { KeyRange } from '../group/outcome.ts'

/** Keys from `gte` on and below `lt`. */
export interface TextRange {
  readonly gte: string
  readonly lt: string
}

/** In order, apart from one another, none of them empty. */
export function orderRanges(ranges: readonly KeyRange[]): readonly TextRange[] {
  if (ranges.length === 0) return []
  const sorted = ranges
    .map(({ gte, lt }) => ({ gte: latin1(gte), lt: latin1(lt) }))
    .filter(({ gte, lt }) => gte < lt)
    .sort((a, b) => compareText(a.gte, b.gte))
  const ordered: { readonly gte: string; lt: string }[] = []
  for (const range of sorted) {
    const last = ordered.at(-1)
    if (last === undefined || last.lt < range.gte) ordered.push(range)
    else if (last.lt < range.lt) last.lt = range.lt
  }
  return ordered
}

export function rangeOfText({ gte, lt }: TextRange): KeyRange {
  return { gte: fromLatin1(gte), lt: fromLatin1(lt) }
}

/** One of the sorted `keys` that lies in one of the ordered `ranges`. */
export function keyInRanges(
  keys: readonly string[],
  ranges: readonly TextRange[],
): string | undefined {
  let keyAt = 0
  let rangeAt = 0
  for (;;) {
    const key = keys[keyAt]
    if (key === undefined) return undefined
    rangeAt = firstFrom(rangeAt, ranges, ({ lt }) => lt > key)
    const range = ranges[rangeAt]
    if (range === undefined) return undefined
    if (range.gte <= key) return key
    keyAt = firstFrom(keyAt, keys, (one) => one >= range.gte)
  }
}

/** The first index from `from` on that passes, where all after one that passes do: by leaps, then halves. */
function firstFrom<T>(from: number, list: readonly T[], passes: (one: T) => boolean): number {
  let low = from
  let leap = 1
  for (;;) {
    const one = list[low + leap - 1]
    if (one === undefined || passes(one)) break
    low += leap
    leap *= 2
  }
  let high = Math.min(low + leap - 1, list.length)
  while (low < high) {
    const middle = (low + high) >>> 1
    const one = list[middle]
    if (one === undefined || passes(one)) high = middle
    else low = middle + 1
  }
  return low
}
