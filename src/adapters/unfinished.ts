/**
 * Messages that have come in part. Until one is whole it is kept, and counts against nothing else: not against
 * what waits to be taken up, nor against what is at work. So all those of a listener together are bounded.
 *
 * DOOR-3  What has come of unfinished messages is bounded in bytes for the listener. Above that the connection
 *         is ended whose message began first: a message that is on its way does not take long.
 */
import { assert } from '../base/assert.ts'

/** A connection as this sees it. */
export interface Unfinished {
  /** The message is whole: bytes that come from now on are of the next one. */
  finished(): void
  /** The connection is over. */
  release(): void
}

/** The part of a socket that this looks at. */
interface Chunks {
  on(event: 'data', run: (chunk: Buffer) => void): unknown
  off(event: 'data', run: (chunk: Buffer) => void): unknown
}

interface Held {
  bytes: number
  readonly end: () => void
}

export const unfinishedBytesMax: number = 256 * 1024 * 1024

export class UnfinishedMessages {
  readonly #bytesMax: number
  /** Those with bytes; the one whose message began first is first. */
  readonly #held = new Set<Held>()
  #bytes = 0

  constructor(bytesMax: number = unfinishedBytesMax) {
    this.#bytesMax = bytesMax
  }

  get bytes(): number {
    return this.#bytes
  }

  /**
   * Counts the bytes that come over a connection. Its listener runs after the reader of the connection: a
   * chunk that ends a message is not counted, though it may begin another one. `end` must lead to `release`
   * before it returns.
   */
  watch(raw: Chunks, end: () => void): Unfinished {
    const held: Held = { bytes: 0, end }
    let isWholeWithin = false
    const count = (chunk: Buffer): void => {
      if (isWholeWithin) isWholeWithin = false
      else this.#add(held, chunk.length)
    }
    raw.on('data', count)
    return {
      finished: () => {
        isWholeWithin = true
        this.#forget(held)
      },
      release: () => {
        raw.off('data', count)
        this.#forget(held)
      },
    }
  }

  #add(held: Held, bytes: number): void {
    held.bytes += bytes
    this.#bytes += bytes
    this.#held.add(held)
    while (this.#bytes > this.#bytesMax) {
      const [oldest] = this.#held
      if (oldest === undefined) break
      oldest.end()
      assert(!this.#held.has(oldest), 'DOOR-3: a connection goes on that was ended for room')
    }
  }

  #forget(held: Held): void {
    this.#bytes -= held.bytes
    held.bytes = 0
    this.#held.delete(held)
  }
}
