/**
 * How long turns are.
 *
 * LIVE-6  No turn of a node costs more than a bound: long work goes in slices.
 */
import type { Turn } from '../world/sim-process.ts'
import type { TimeOptions } from '../world/turn-costs.ts'
import type { Referee } from './referee.ts'

/**
 * On a processor as fast as usual, and where every row that is looked up by its key is in memory.
 */
export const turnMicrosMax = 15_000
/** The bound where such rows come from a disk: a read goes on to its end, however long it takes. */
export const coldTurnMicrosMax = 200_000

/** The longest turn of a run, as long as it would be on a processor as fast as usual. */
export interface LongestTurn extends Turn {
  readonly node: string
  readonly atMicros: number
}

export class TurnChecker {
  readonly #referee: Referee
  readonly #costFactor: number
  readonly #microsMax: number
  #longest: LongestTurn | undefined

  constructor(referee: Referee, { costFactor, getMicros }: TimeOptions) {
    this.#referee = referee
    this.#costFactor = costFactor
    this.#microsMax = getMicros === 0 ? turnMicrosMax : coldTurnMicrosMax
  }

  get longest(): LongestTurn | undefined {
    return this.#longest
  }

  onTurn(node: string, atMicros: number, { label, micros, work }: Turn): void {
    const usualMicros = micros / this.#costFactor
    if (usualMicros > (this.#longest?.micros ?? 0)) {
      this.#longest = { node, atMicros, label, work, micros: Math.round(usualMicros) }
    }
    this.#referee.check(
      usualMicros <= this.#microsMax,
      'LIVE-6',
      'A node did too much in one turn.',
      () => ({ node, ran: label, millis: usualMicros / 1_000, work }),
    )
  }
}
