/**
 * Numbers that a node draws for what it asks others: rising, and never those of an earlier life. An answer to a
 * question of before a restart, or a copy of one, answers nothing that is asked now.
 */

/** Draws of one life, at most: more than a node can make. */
const drawnMax = 2 ** 32

/** The first one of an incarnation is the one after this. */
export function numbersFrom(incarnation: number): number {
  return incarnation * drawnMax
}
