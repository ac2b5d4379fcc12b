/** A Map with a bounded number of keys: for a new one, the key that was set first goes. */
export class BoundedMap<Key, Value> {
  readonly #max: number
  readonly #map = new Map<Key, Value>()
  /**
   * Before it are only keys that went. Kept, because a new iterator begins at the place of the very
   * first key: it walks over all that went since the map was last laid out anew, and that are many.
   */
  readonly #oldest: Iterator<Key>

  /** `max` is 1 or more. */
  constructor(max: number) {
    this.#max = max
    this.#oldest = this.#map.keys()
  }

  get size(): number {
    return this.#map.size
  }

  get(key: Key): Value | undefined {
    return this.#map.get(key)
  }

  /** A key that is there keeps its place. True: another had to go for it. */
  set(key: Key, value: Value): boolean {
    this.#map.set(key, value)
    if (this.#map.size <= this.#max) return false
    const { value: oldest, done } = this.#oldest.next()
    return done !== true && this.#map.delete(oldest)
  }

  /** The same, and the key is the youngest from now on. */
  setAnew(key: Key, value: Value): boolean {
    this.#map.delete(key)
    return this.set(key, value)
  }
}
