/**
 * Numbers that a node draws for its questions to other nodes: rising, and never those of an earlier life. So
 * an answer to a question from before a restart, or a copy of one, never answers a question of now.
 */

/** Draws of one life, at most: more than a node can make. */
const drawnMax = 2 ** 32

/** The first one of an incarnation is the one after this. */
export function numbersFrom(incarnation: number): number {
  return incarnation * drawnMax
}
