/**
 * Which node is asked: the one that leads the shard, where that is known; else one of those a link
 * is up to, the same one for the same cells, so that taking requests is spread over the nodes. A node
 * whose breaker is open is passed over, but asked when there is no other.
 *
 * BRK-1  No call is held back by a breaker: as long as a link is up there is a node to ask.
 */
import { assert } from '../base/assert.ts'
import { compareText } from '../base/bytes.ts'
import type { Clock } from '../ports/clock.ts'
import type { Endpoint } from '../ports/transport.ts'
import { Breaker, type BreakerLimits, type BreakerState } from './breaker.ts'
import { Throttle, type ThrottleLimits } from './throttle.ts'

/** How a try at a node ended, as far as it tells of the node. */
export type Ending = 'answered' | 'useless' | 'lost' | 'untold'

/** What is known of a node that was linked once. */
export interface LinkView {
  readonly endpoint: Endpoint
  /** The node's id. */
  readonly node: string
  readonly isUp: boolean
  readonly breaker: BreakerState
  /** How often the breaker opened. */
  readonly opened: number
  readonly tries: Readonly<Record<Ending, number>>
}

interface Place {
  readonly endpoint: Endpoint
  node: string
  isUp: boolean
  readonly breaker: Breaker
  /** Of writes, which a node refuses sooner, and of the rest. */
  readonly writes: Throttle
  readonly reads: Throttle
  readonly tries: Record<Ending, number>
}

export class Links {
  readonly #clock: Clock
  readonly #limits: BreakerLimits & ThrottleLimits
  readonly #places = new Map<Endpoint, Place>()
  /** Endpoints by the ids of the nodes that answer there. */
  readonly #endpoints = new Map<string, Endpoint>()
  /** Of the latest choice; one list for all, since there is a choice for every request. */
  readonly #good: Endpoint[] = []
  readonly #waiters = new Set<() => void>()
  #refusal: string | undefined

  constructor(clock: Clock, limits: BreakerLimits & ThrottleLimits) {
    this.#clock = clock
    this.#limits = limits
  }

  /** Why the last node that would not have us would not: by its id, since callers of a node may read this. */
  get refusal(): string | undefined {
    return this.#refusal
  }

  views(): readonly LinkView[] {
    const now = this.#clock.monotonicMs()
    return [...this.#places].map(([endpoint, { node, isUp, breaker, tries }]) => {
      const { opened } = breaker
      return { endpoint, node, isUp, breaker: breaker.stateAt(now), opened, tries: { ...tries } }
    })
  }

  /** `node`: the id of the node there. */
  onUp(endpoint: Endpoint, node: string): void {
    const known = this.#places.get(endpoint)
    const place = known ?? this.#newPlace(endpoint, node)
    // Last in line among those that are up.
    this.#places.delete(endpoint)
    this.#places.set(endpoint, place)
    place.node = node
    place.isUp = true
    // Whoever has just shaken hands is alive.
    place.breaker.reset()
    place.writes.reset()
    place.reads.reset()
    this.#endpoints.set(node, endpoint)
    this.#refusal = undefined
    for (const wake of [...this.#waiters]) wake()
  }

  #newPlace(endpoint: Endpoint, node: string): Place {
    const tries = { answered: 0, useless: 0, lost: 0, untold: 0 }
    const breaker = new Breaker(this.#limits)
    const throttles = { writes: new Throttle(this.#limits), reads: new Throttle(this.#limits) }
    return { endpoint, node, isUp: false, breaker, ...throttles, tries }
  }

  onDown(endpoint: Endpoint): void {
    const place = this.#places.get(endpoint)
    if (place !== undefined) place.isUp = false
  }

  /** `named`: the id of the node there, as far as it has said. */
  onRefused(endpoint: Endpoint, reason: string, named?: string): void {
    const node = named ?? this.#places.get(endpoint)?.node
    this.#refusal = node === undefined || node === '' ? reason : `node ${node}: ${reason}`
  }

  /** A try at this node begins. */
  begin(endpoint: Endpoint, nowMs: number): void {
    this.#places.get(endpoint)?.breaker.begin(nowMs)
  }

  /** A try at this node has ended. */
  end(endpoint: Endpoint, ending: Ending): void {
    const place = this.#places.get(endpoint)
    if (place === undefined) return
    place.tries[ending] += 1
    if (ending === 'answered') place.breaker.succeed()
    else if (ending === 'untold') place.breaker.forget()
    else place.breaker.fail(this.#clock.monotonicMs())
  }

  /**
   * The node to ask now: the one of the id `node`, if it may be asked; else `spread`, a whole number,
   * names one of several. `not`: the one that this call has just asked in vain, if there is another.
   * `isAlike`: the same node for all clients that name the same, whichever link was up first.
   * Undefined: no link is up.
   */
  pick(
    spread: number,
    nowMs: number,
    node?: string,
    not?: Endpoint,
    isAlike = false,
  ): Endpoint | undefined {
    const wanted = node === undefined ? undefined : this.#endpoints.get(node)
    if (wanted !== undefined && wanted !== not && this.#mayTry(wanted, nowMs)) return wanted
    const good = this.#good
    good.length = 0
    for (const place of this.#places.values()) {
      if (place.endpoint !== not && mayTry(place, nowMs)) good.push(place.endpoint)
    }
    if (isAlike) good.sort(compareText)
    return good.length > 0 ? good[spread % good.length] : this.#notGood(not)
  }

  /** How it is told of the load of the node there; undefined: nobody was linked there. */
  throttleOf(endpoint: Endpoint, isWrite: boolean): Throttle | undefined {
    const place = this.#places.get(endpoint)
    return isWrite ? place?.writes : place?.reads
  }

  /** This node, or, where it has said that it has too much to do, one of those that have not. */
  unhurried(picked: Endpoint, isWrite: boolean, spread: number, nowMs: number): Endpoint {
    if (this.#isUnhurried(picked, isWrite, nowMs)) return picked
    const good = this.#good
    good.length = 0
    for (const place of this.#places.values()) {
      const { endpoint } = place
      if (mayTry(place, nowMs) && this.#isUnhurried(endpoint, isWrite, nowMs)) good.push(endpoint)
    }
    return good[spread % Math.max(1, good.length)] ?? picked
  }

  #isUnhurried(endpoint: Endpoint, isWrite: boolean, nowMs: number): boolean {
    return (this.throttleOf(endpoint, isWrite)?.leftMs(nowMs) ?? 0) <= 0
  }

  #notGood(not: Endpoint | undefined): Endpoint | undefined {
    const picked = this.#longestOpen(not)
    const isStuck = picked === undefined && [...this.#places.values()].some(({ isUp }) => isUp)
    assert(!isStuck, 'BRK-1: a link is up and nobody is asked')
    return picked
  }

  #mayTry(endpoint: Endpoint, nowMs: number): boolean {
    const place = this.#places.get(endpoint)
    return place !== undefined && mayTry(place, nowMs)
  }

  /** Nobody is good: the one that has been passed over for longest, the one of the last try last. */
  #longestOpen(not: Endpoint | undefined): Endpoint | undefined {
    let found: Endpoint | undefined
    let earliest = Infinity
    for (const [endpoint, { isUp, breaker }] of this.#places) {
      if (!isUp || endpoint === not || breaker.openUntilMs >= earliest) continue
      found = endpoint
      earliest = breaker.openUntilMs
    }
    if (found !== undefined || not === undefined) return found
    return this.#places.get(not)?.isUp === true ? not : undefined
  }

  /** Resolves when a link comes up, or after `timeoutMs`. */
  whenUp(timeoutMs: number): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        this.#waiters.delete(wake)
        timer.cancel()
        resolve()
      }
      const timer = this.#clock.setTimer(timeoutMs, wake)
      this.#waiters.add(wake)
    })
  }

  /** Wakes all who wait, for there will be no link. */
  stop(): void {
    for (const place of this.#places.values()) place.isUp = false
    for (const wake of [...this.#waiters]) wake()
  }
}

function mayTry({ isUp, breaker }: Place, nowMs: number): boolean {
  return isUp && breaker.mayTry(nowMs)
}
