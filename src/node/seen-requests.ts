/**
 * The requests of one client link that were taken, by their rising numbers. A transport may bring a
 * frame more than once, and a copy must not be carried out beside its original: one of them may be
 * refused for want of room, and the client told that nothing happened, while the other takes effect.
 *
 * They are forgotten with the link: no copy comes over a later one (see the port).
 *
 * TXN-5  What was refused has not taken effect, and will not.
 */

/** A request that this many later ones have overtaken is taken for a copy; its client sends it again. */
export const requestsOutOfOrderMax = 1_024

export class SeenRequests {
  /** Of all numbers that share a place, the highest one that was here. */
  readonly #highest = new Float64Array(requestsOutOfOrderMax)

  /** Whether this request, numbered from 1, was not here before; from now on it was. */
  add(id: number): boolean {
    const place = id % requestsOutOfOrderMax
    if (id <= (this.#highest[place] ?? 0)) return false
    this.#highest[place] = id
    return true
  }
}
