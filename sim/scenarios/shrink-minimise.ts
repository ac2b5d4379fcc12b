/**
 * Delta debugging (Zeller and Hildebrandt, "Simplifying and isolating failure-inducing input"): the
 * fewest elements of a list for which a failure stays. Large pieces are left out first, then ever
 * smaller ones, and single ones until none can be spared.
 */

/** Takes a list with some elements left out; true when the failure stays, and the list is kept. */
export type Attempt<T> = (kept: readonly T[]) => Promise<boolean>

export async function minimise<T>(items: readonly T[], attempt: Attempt<T>): Promise<readonly T[]> {
  if (items.length === 0) return items
  if (await attempt([])) return []
  let kept = items
  let size = Math.ceil(kept.length / 2)
  for (;;) {
    const before = kept.length
    kept = await withoutPieces(kept, size, attempt)
    // One element less may make another one superfluous.
    if (size === 1 && kept.length === before) return kept
    size = Math.max(1, Math.min(Math.ceil(size / 2), Math.ceil(kept.length / 2)))
  }
}

/** Later pieces first: the last piece before a failure is rarely all of its cause. */
async function withoutPieces<T>(
  items: readonly T[],
  size: number,
  attempt: Attempt<T>,
): Promise<readonly T[]> {
  let kept = items
  for (let end = kept.length; end > 0; end -= size) {
    const candidate = [...kept.slice(0, Math.max(0, end - size)), ...kept.slice(end)]
    if (candidate.length > 0 && (await attempt(candidate))) kept = candidate
  }
  return kept
}
