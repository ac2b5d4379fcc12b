/**
 * The state of the ways between endpoints: how slow, how lossy, which are cut or clogged now.
 * Peers' and clients' networks share it, so that a partition hits both.
 */
import { findPlace } from '../cluster/endpoints.ts'
import type { Priorities } from './priorities.ts'
import type { PartsPerMillion } from './random.ts'

/** The conditions of frames, and of the links that they travel on. Drawn from the seed. */
export interface LinkConditions {
  readonly delayMinMicros: number
  readonly delayMeanMicros: number
  /** Frames that take `tailFactor` times as long. */
  readonly tail: PartsPerMillion
  readonly tailFactor: number
  /** Ways that are slower than the others by this factor, always: nodes far apart. */
  readonly far?: PartsPerMillion
  readonly farFactor?: number
  /** The delays that these ways always take instead, by their names, `n1>n2`. */
  readonly between?: Readonly<Record<string, number>>
  /** Frames that may overtake those sent before them. */
  readonly reorder: PartsPerMillion
  readonly drop: PartsPerMillion
  readonly duplicate: PartsPerMillion
  /** Duplicates that come later than the original by `lateMeanMicros` more on average. */
  readonly late: PartsPerMillion
  readonly lateMeanMicros: number
  /** Frames under way that arrive although their link was lost meanwhile. */
  readonly survive: PartsPerMillion
  /** How long it takes to notice that a link is lost, and to try again. */
  readonly noticeMeanMicros: number
  readonly reconnectMeanMicros: number
  /** Frames under way on one link in one direction; above it a send is refused. */
  readonly framesUnderWayMax: number
}

/** The same ways, healed. */
export function calmed(conditions: LinkConditions): LinkConditions {
  return { ...conditions, tail: 0, reorder: 0, drop: 0, duplicate: 0, late: 0, survive: 0 }
}

/** Ways are directed: `n1>n2` may be cut while `n2>n1` is not. */
export class Weather {
  readonly #cut = new Set<string>()
  readonly #clearAtMicros = new Map<string, number>()
  /** The delay that an endpoint adds to each frame, and until when. */
  readonly #slow = new Map<string, { readonly extraMicros: number; readonly untilMicros: number }>()
  /** Names of ways by their ends: made once, since every frame needs one. */
  readonly #names = new Map<string, Map<string, string>>()
  #conditions: LinkConditions
  #isHealed = false
  readonly #priorities: Priorities | undefined

  constructor(conditions: LinkConditions, priorities?: Priorities) {
    this.#conditions = conditions
    this.#priorities = priorities
  }

  get conditions(): LinkConditions {
    return this.#conditions
  }

  /** Nothing goes wrong on the ways any more. */
  get isHealed(): boolean {
    return this.#isHealed
  }

  cut(from: string, to: string): void {
    this.#cut.add(this.#ensureWay(from, to))
  }

  mend(from: string, to: string): void {
    this.#cut.delete(this.#ensureWay(from, to))
  }

  isCut(from: string, to: string): boolean {
    return this.#cut.size > 0 && this.#cut.has(this.#ensureWay(from, to))
  }

  /** Nothing that is sent this way arrives before `untilMicros`; then all of it does. */
  clog(from: string, to: string, untilMicros: number): void {
    this.#clearAtMicros.set(this.#ensureWay(from, to), untilMicros)
  }

  clearAtMicros(from: string, to: string): number {
    return this.#clearAtMicros.size === 0
      ? 0
      : (this.#clearAtMicros.get(this.#ensureWay(from, to)) ?? 0)
  }

  /** Everything to and from `name` takes this much longer until then. */
  slow(name: string, extraMicros: number, untilMicros: number): void {
    this.#slow.set(name, { extraMicros, untilMicros })
  }

  /** The delay that slow endpoints add on this way at this moment. */
  extraMicros(from: string, to: string, nowMicros: number): number {
    if (this.#slow.size === 0) return 0
    const extra = (name: string): number => {
      const slow = this.#slow.get(findPlace(name))
      return slow === undefined || nowMicros >= slow.untilMicros ? 0 : slow.extraMicros
    }
    return extra(from) + extra(to)
  }

  /** How many times as long this way takes for what is sent on it now. */
  takeTurn(from: string, to: string): number {
    const priorities = this.#priorities
    if (priorities === undefined || priorities.isEven) return 1
    return priorities.take(this.#ensureWay(from, to))
  }

  /** The same, when nothing is sent. */
  slownessOf(from: string, to: string): number {
    return this.#priorities?.computeFactor(this.#ensureWay(from, to)) ?? 1
  }

  /** Every way is open and gentle from now on. */
  heal(): void {
    this.#cut.clear()
    this.#clearAtMicros.clear()
    this.#slow.clear()
    this.#priorities?.end()
    this.#conditions = calmed(this.#conditions)
    this.#isHealed = true
  }

  #ensureWay(from: string, to: string): string {
    let names = this.#names.get(from)
    if (names === undefined) {
      names = new Map()
      this.#names.set(from, names)
    }
    let name = names.get(to)
    if (name === undefined) {
      name = `${findPlace(from)}>${findPlace(to)}`
      names.set(to, name)
    }
    return name
  }
}
