/**
 * Schedules by priority beside the drawn delays. Each way and each disk has a rank from the seed,
 * and its delay is multiplied by a power of the base. At a few moments the next actor falls to the
 * slowest rank. In virtual time that is PCT (Burckhardt, Kothari, Musuvathi and Nagarakatte, "A
 * Randomized Scheduler with Probabilistic Guarantees of Finding Bugs", ASPLOS 2010): it finds a bug
 * that needs few events in order, whatever the others do. Unlike there, a lower priority is a
 * longer delay, not a wait for all others: slow frames arrive in the end. Priorities end with the
 * phase of faults.
 */
import type { Coverage } from '../coverage.ts'
import type { SeededRandom } from './random.ts'
import type { World } from './world.ts'

export interface PriorityOptions {
  /** How many times as slow each rank is as the one before; 1: all are alike. */
  readonly base: number
  /** At each of these moments, the next actor falls to the slowest rank. */
  readonly changesAtMicros: readonly number[]
}

/** All ways and disks are alike. */
export const noPriorities: PriorityOptions = { base: 1, changesAtMicros: [] }

/** More than any drawn plan has. */
export const prioritiesMax = { base: 10, changes: 100 } as const

/** The rank that no way and no disk has at first. */
const slowestRank = 4
const changesMax = 4
/** The delay that the slowest takes on average, at most: about as long as others have patience for. */
const slowestMicrosMax = 1_000_000

/** In which time priorities change: the phase of faults, but for its quiet stretch. */
export interface BusyTime {
  readonly lengthMicros: number
  readonly quietAtMicros: number
  readonly quietMicros: number
}

/** `usualMicros`: what a way or a disk takes without any priorities, on average. */
export function drawPriorities(
  random: SeededRandom,
  usualMicros: number,
  { lengthMicros, quietAtMicros, quietMicros }: BusyTime,
): PriorityOptions {
  const isSteep = usualMicros * 3 ** slowestRank <= slowestMicrosMax
  const base = isSteep ? random.pick([2, 3]) : 2
  const changesAtMicros = Array.from({ length: random.int(1, changesMax) }, () => {
    const atMicros = random.int(0, lengthMicros - quietMicros - 1)
    return atMicros < quietAtMicros ? atMicros : atMicros + quietMicros
  })
  return { base, changesAtMicros: changesAtMicros.sort((a, b) => a - b) }
}

/** The ranks as they are now. */
export class Priorities {
  readonly #base: number
  /** Those to come, the next one last. */
  readonly #changesAtMicros: number[]
  readonly #world: World
  readonly #coverage: Coverage
  readonly #random: SeededRandom
  readonly #rankByName = new Map<string, number>()
  #isOver = false

  constructor(options: PriorityOptions, world: World, coverage: Coverage) {
    this.#base = options.base
    this.#changesAtMicros = options.changesAtMicros.toSorted((a, b) => b - a)
    this.#world = world
    this.#coverage = coverage
    this.#random = world.random.fork('priorities')
  }

  /** How many times as long it takes what is about to act under this name: a way, a disk. */
  take(name: string): number {
    if (this.isEven) return 1
    const changeAtMicros = this.#changesAtMicros.at(-1)
    const isDue = changeAtMicros !== undefined && changeAtMicros <= this.#world.nowMicros
    // One that is slowest already cannot fall: the next one does.
    if (isDue && this.#ensureRank(name) < slowestRank) {
      this.#changesAtMicros.pop()
      this.#rankByName.set(name, slowestRank)
      this.#coverage.count('demoted')
    }
    const factor = this.computeFactor(name)
    if (factor > 1) this.#coverage.count('priorities')
    return factor
  }

  /** The same for those who only look. */
  computeFactor(name: string): number {
    // Whole powers: exact on every machine.
    return this.isEven ? 1 : this.#base ** this.#ensureRank(name)
  }

  /** All are alike from now on. */
  end(): void {
    this.#isOver = true
  }

  /** All take alike. */
  get isEven(): boolean {
    return this.#isOver || this.#base === 1
  }

  #ensureRank(name: string): number {
    const known = this.#rankByName.get(name)
    if (known !== undefined) return known
    const rank = this.#random.fork(name).int(0, slowestRank - 1)
    this.#rankByName.set(name, rank)
    return rank
  }
}
