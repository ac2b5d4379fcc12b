/**
 * Whether the next write is worth a way through the thread pool. A lone short write to a fast disk is done sooner on
 * the calling thread than the pool wakes up; where writes follow one another, or are slow, the event loop has
 * better to do meanwhile.
 */

/** Writes that take longer, on average, go through the pool. */
const fastMicrosMax = 300
/** After one that took as long, the next ones go through the pool. */
const slowMicros: number = 10 * fastMicrosMax
const slowWrites = 1000
/** Longer writes copy for longer than they wait. */
export const syncBytesMax: number = 64 * 1024
/** The average follows the last eight writes or so. */
const weight = 1 / 8
/** A write through the pool takes as much longer, at least. */
const poolMicros = 50

export class WriteTimes {
  #averageMicros = fastMicrosMax
  #endMicros = -Infinity
  /** Writes that still go through the pool. */
  #slowLeft = 0

  /** Whether a write of `bytes` that begins now is done on the calling thread. */
  isSync(bytes: number, nowMicros: number): boolean {
    if (bytes > syncBytesMax || this.#slowLeft > 0) return false
    const isFast = this.#averageMicros < fastMicrosMax
    // The disk has had nothing to do for as long as a write takes: nothing waits for the event loop.
    return isFast && nowMicros - this.#endMicros >= this.#averageMicros
  }

  took(fromMicros: number, toMicros: number, wasSync: boolean): void {
    const micros = Math.max(0, toMicros - fromMicros - (wasSync ? 0 : poolMicros))
    this.#averageMicros += (micros - this.#averageMicros) * weight
    this.#slowLeft = micros > slowMicros ? slowWrites : Math.max(0, this.#slowLeft - 1)
    this.#endMicros = toMicros
  }
}
