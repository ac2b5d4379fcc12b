/**
 * How much a node does for one peer in one turn, by the frames that it sends.
 *
 * LIVE-6  A frame holds what one turn made, or two where the first one's end came late: entries and
 *         questions for entries of a few slices at most.
 */
import type { Limits } from '../../src/base/limits.ts'
import type { PeerFrame } from '../../src/replication/message.ts'
import type { Referee } from './referee.ts'

export type PaceLimits = Pick<Limits, 'slicePiecesMax' | 'sliceBytesMax' | 'fetchesMax'>

/** Slices that may share a frame, and one for an answer that the slices before had begun. */
const slicesPerFrame = 3
/**
 * A node fetches `fetchesMax` groups for its clients, and as many more that no client waits for.
 */
const roomsForFetches = 2

export class PaceChecker {
  readonly #limits: PaceLimits
  readonly #referee: Referee

  constructor(limits: PaceLimits, referee: Referee) {
    this.#limits = limits
    this.#referee = referee
  }

  onSent(from: string, to: string, { messages }: PeerFrame): void {
    const { slicePiecesMax, sliceBytesMax, fetchesMax } = this.#limits
    let [entries, bytes, largest, fetches] = [0, 0, 0, 0]
    for (const message of messages) {
      if (message.kind === 'fetch') fetches += 1
      if (message.kind !== 'entries') continue
      entries += message.entries.length
      for (const { value } of message.entries) {
        bytes += value.length
        largest = Math.max(largest, value.length)
      }
    }
    const isWithin =
      entries <= slicesPerFrame * slicePiecesMax &&
      bytes <= slicesPerFrame * (sliceBytesMax + largest) &&
      fetches <= slicesPerFrame * roomsForFetches * fetchesMax
    this.#referee.check(isWithin, 'LIVE-6', 'A node did too much for a peer in one turn.', () => ({
      ...{ from, to, entries, bytes, fetches },
    }))
  }
}
