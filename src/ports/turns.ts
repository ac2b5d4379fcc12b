/**
 * Thousands of keys that are looked up at this node: some of them a turn, so that others have theirs in between.
 *
 * LIVE-6  One turn looks up `keysATurn` of them.
 */
import type { Clock } from './clock.ts'

/** Half a millisecond of a turn, about, where rows have to be looked for in the store. */
export const keysATurn = 128

/** In order, some at a time, each lot behind the first in a turn of its own. */
export async function* inTurns<Item>(
  items: readonly Item[],
  clock: Pick<Clock, 'defer'>,
): AsyncGenerator<readonly Item[], void> {
  for (let at = 0; at < items.length; at += keysATurn) {
    if (at > 0) await new Promise<void>((resolve) => clock.defer(resolve))
    yield items.slice(at, at + keysATurn)
  }
}
