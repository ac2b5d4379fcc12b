/**
 * Frames that a way of the network carried lately, to arrive once more when neither end expects
 * them.
 */
import type { SeededRandom } from './random.ts'

/** Frames that are kept of one way, and how old they are at least when they come once more. */
const keptFramesMax = 64
const echoAgeMicros = 20_000
/** Of the requests with an effect, every this many-th is kept for long. */
const keptLongEvery = 4

/**
 * How long after its refusal, on average, a request comes once more: its client may have given up
 * by then, and been told that nothing happened.
 */
const refusedMeansMicros = [100_000, 1_000_000, 10_000_000]
const half = 500_000

interface Dated {
  readonly sentMicros: number
}

export class Echoes<Frame extends Dated> {
  readonly #random: SeededRandom
  /** The last ones, each in its place of a ring. */
  readonly #kept: Frame[] = []
  #count = 0
  readonly #keptLong: Frame[] = []
  #asked = 0

  constructor(random: SeededRandom) {
    this.#random = random
  }

  /** `asks`: the frame is a request that a node could carry out twice. */
  keep(frame: Frame, asks: boolean): void {
    this.#kept[this.#count % keptFramesMax] = frame
    this.#count += 1
    if (!asks) return
    const nth = (this.#asked += 1)
    if (nth % keptLongEvery === 0) this.#keptLong[(nth / keptLongEvery - 1) % keptFramesMax] = frame
  }

  /**
   * Of the frames kept that were refused some, each with how long after that it comes once more.
   */
  refused(
    isRefused: (frame: Frame) => boolean,
  ): readonly (readonly [Frame, afterMicros: number])[] {
    const refused = this.#kept.filter((frame) => isRefused(frame) && this.#random.chance(half))
    return refused.map((frame) => {
      const meanMicros = this.#random.pick(refusedMeansMicros)
      return [frame, 1 + this.#random.exponential(meanMicros)]
    })
  }

  /** None of the frames kept so far comes once more. */
  forget(): void {
    this.#kept.length = 0
    this.#keptLong.length = 0
    this.#count = 0
    this.#asked = 0
  }

  /** Some of those that are old enough, in any order. */
  take(nowMicros: number, framesMax: number): readonly Frame[] {
    const kept = [...new Set([...this.#kept, ...this.#keptLong])]
    const old = kept.filter(({ sentMicros }) => nowMicros - sentMicros >= echoAgeMicros)
    return this.#random.shuffle(old).slice(0, framesMax)
  }
}

/** Roughly, for marks. */
export function describeAge(micros: number): string {
  if (micros < 1_000_000) return 'a moment'
  return micros < 120_000_000 ? 'seconds' : 'minutes'
}
