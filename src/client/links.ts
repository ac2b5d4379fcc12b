/**
 * Chooses the node for a request: the one that leads the shard, where the client knows it. Else it is one of
 * those a link is up to, the same one for the same cells, so that requests are spread over the nodes. The
 * client passes over a node whose breaker is open, but asks it when there is no other.
 *
 * BRK-1  No call is held back by a breaker: as long as a link is up there is a node to ask.
 */
import { assert } from '../base/assert.ts'
import { compareText } from '../base/bytes.ts'
import type { Clock } from '../ports/clock.ts'
import { problem, type Problem } from '../base/problem.ts'
import type { Endpoint, Unreached } from '../ports/transport.ts'
import { Breaker, type BreakerLimits, type BreakerState } from './breaker.ts'
import type { Lane } from './in-flight.ts'
import { UnreachedAddresses } from './unreached.ts'
import { Window, type WindowLimits } from './window.ts'

/** How a try at a node ended, as far as it tells of the node. */
export type Ending = 'answered' | 'failed' | 'lost' | 'inconclusive'

/** The client's view of a node that was linked once. */
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

/** Of a request, for load. */
export interface Refusal {
  readonly nowMs: number
  readonly sentAtMs: number
  readonly retryAfterMs: number
}

interface Place {
  readonly endpoint: Endpoint
  node: string
  isUp: boolean
  /** Its link ends as soon as nothing waits there for an answer. */
  isLeaving: boolean
  readonly breaker: Breaker
  readonly windows: Readonly<Record<Lane, Window>>
  readonly tries: Record<Ending, number>
}

export class Links {
  readonly #clock: Clock
  readonly #limits: BreakerLimits & WindowLimits
  readonly #places = new Map<Endpoint, Place>()
  /** Endpoints by the ids of the nodes that answer there. */
  readonly #endpoints = new Map<string, Endpoint>()
  /** Of the latest choice; one list for all, since there is a choice for every request. */
  readonly #good: Endpoint[] = []
  readonly #waiters = new Set<() => void>()
  /** Why the last node that would not have us would not: by its id, since callers of a node may read this. */
  #refusal: string | undefined
  readonly #unreached: UnreachedAddresses

  /** `addresses`: how many are dialled, where the transport tells why one has no link. */
  constructor(clock: Clock, limits: BreakerLimits & WindowLimits, addresses = 0) {
    this.#clock = clock
    this.#unreached = new UnreachedAddresses(addresses)
    this.#limits = limits
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
    this.#unreached.onUp(endpoint)
    // A node that has just shaken hands is alive.
    place.breaker.reset()
    place.windows.writes.reset()
    place.windows.reads.reset()
    this.#endpoints.set(node, endpoint)
    this.#refusal = undefined
    for (const wake of [...this.#waiters]) wake()
  }

  #newPlace(endpoint: Endpoint, node: string): Place {
    const tries = { answered: 0, failed: 0, lost: 0, inconclusive: 0 }
    const breaker = new Breaker(this.#limits)
    const windows = { writes: new Window(this.#limits), reads: new Window(this.#limits) }
    return { endpoint, node, isUp: false, isLeaving: false, breaker, windows, tries }
  }

  onDown(endpoint: Endpoint): void {
    const place = this.#places.get(endpoint)
    if (place === undefined) return
    place.isUp = false
    if (place.isLeaving) this.#forget(place)
  }

  /** No further request goes there. Those under way go on. */
  onLeaving(endpoint: Endpoint): void {
    const place = this.#places.get(endpoint)
    if (place === undefined) return
    const wasUp = place.isUp
    place.isUp = false
    place.isLeaving = true
    if (!wasUp) this.#forget(place)
  }

  #forget({ endpoint, node }: Place): void {
    this.#places.delete(endpoint)
    if (this.#endpoints.get(node) === endpoint) this.#endpoints.delete(node)
  }

  /** `named`: the id of the node there, as far as it has said. */
  onRefused(endpoint: Endpoint, reason: string, named?: string): void {
    const node = named ?? this.#places.get(endpoint)?.node
    this.#refusal = node === undefined || node === '' ? reason : `node ${node}: ${reason}`
  }

  onUnreached(endpoint: Endpoint, why: Unreached): void {
    this.#unreached.onUnreached(endpoint, why)
    if (this.hopeless() === undefined) return
    for (const wake of [...this.#waiters]) wake()
  }

  /** Why no call can succeed before something is set up otherwise, where it is so. */
  hopeless(): Problem | undefined {
    return this.#unreached.hopeless()
  }

  /** The problem of a call that no node has answered, after this number of tries. */
  noAnswer(attempts: number): Problem {
    if (this.pick(0, this.#clock.monotonicMs()) !== undefined) {
      return problem('unavailable', 'no node answered in time; try again', { attempts })
    }
    const refused =
      this.#refusal === undefined
        ? 'no node could be reached in time; try again'
        : `no node takes this client; ${this.#refusal}`
    return this.#unreached.down(attempts) ?? problem('unavailable', refused, { attempts })
  }

  /** A try at this node begins, in this window, if it is one that windows bound. */
  begin(endpoint: Endpoint, nowMs: number, lane?: Lane): void {
    const place = this.#places.get(endpoint)
    place?.breaker.begin(nowMs)
    if (lane !== undefined) place?.windows[lane].begin(nowMs)
  }

  /** A try at this node has ended. */
  end(endpoint: Endpoint, ending: Ending, lane?: Lane): void {
    const place = this.#places.get(endpoint)
    if (place === undefined) return
    if (lane !== undefined) place.windows[lane].end()
    place.tries[ending] += 1
    if (ending === 'answered') place.breaker.succeed()
    else if (ending === 'inconclusive') place.breaker.forget()
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

  hasRoom(endpoint: Endpoint, lane: Lane, nowMs: number): boolean {
    return this.#places.get(endpoint)?.windows[lane].hasRoom(nowMs) === true
  }

  /** One of those that have room, if there is any; `not`: only where no other one has. */
  roomy(lane: Lane, spread: number, nowMs: number, not?: Endpoint): Endpoint | undefined {
    const good = this.#good
    good.length = 0
    for (const place of this.#places.values()) {
      const { endpoint, windows } = place
      const isRoomy = mayTry(place, nowMs) && windows[lane].hasRoom(nowMs)
      if (isRoomy && endpoint !== not) good.push(endpoint)
    }
    if (good.length > 0) return good[spread % good.length]
    return not !== undefined && this.hasRoom(not, lane, nowMs) ? not : undefined
  }

  /** Whether a node has room that has not lately refused for load. */
  isAnyUnhurried(lane: Lane, nowMs: number): boolean {
    return [...this.#places.values()].some((place) => {
      const window = place.windows[lane]
      return mayTry(place, nowMs) && window.hasRoom(nowMs) && !window.isHurried(nowMs)
    })
  }

  /** When the first of the windows that rest may have room again; `nowMs`: none rests. */
  roomAtMs(lane: Lane, nowMs: number): number {
    let atMs = Number.POSITIVE_INFINITY
    for (const { isUp, windows } of this.#places.values()) {
      const { roomAtMs } = windows[lane]
      if (isUp && roomAtMs > nowMs) atMs = Math.min(atMs, roomAtMs)
    }
    return Number.isFinite(atMs) ? atMs : nowMs
  }

  /** Requests of this kind at all nodes. */
  inFlight(lane: Lane): number {
    let count = 0
    for (const { windows } of this.#places.values()) count += windows[lane].inFlight
    return count
  }

  /** The node there has taken a request. */
  onTaken(endpoint: Endpoint, lane: Lane): void {
    this.#places.get(endpoint)?.windows[lane].onTaken()
  }

  /** The node there has not answered one, which it was sent at `sentAtMs`. */
  onLost(endpoint: Endpoint, lane: Lane, nowMs: number, sentAtMs: number): void {
    this.#places.get(endpoint)?.windows[lane].onLost(nowMs, sentAtMs)
  }

  /** The node there has refused a request for load. */
  onOverloaded(endpoint: Endpoint, lane: Lane, refusal: Refusal): void {
    const { nowMs, sentAtMs, retryAfterMs } = refusal
    this.#places.get(endpoint)?.windows[lane].onRefused(nowMs, sentAtMs, retryAfterMs)
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

  /** No node is good: takes the one that has been passed over for longest, the one of the last try last. */
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
