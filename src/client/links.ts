/**
 * Which node is asked: the one that leads the shard, where that is known; else one of those a link
 * is up to, the same one for the same cells, so that taking requests is spread over the nodes. A node that did not answer
 * is avoided for a while, but asked when there is no other.
 */
import type { Clock } from '../ports/clock.ts'
import type { Endpoint } from '../ports/transport.ts'

export class Links {
  readonly #clock: Clock
  readonly #avoidMs: number
  /** Endpoints with a link, and until when they are avoided. */
  readonly #up = new Map<Endpoint, number>()
  /** Endpoints by the ids of the nodes that answer there. */
  readonly #endpoints = new Map<string, Endpoint>()
  readonly #waiters = new Set<() => void>()
  #refusal: string | undefined

  constructor(clock: Clock, avoidMs: number) {
    this.#clock = clock
    this.#avoidMs = avoidMs
  }

  /** Why the last node that would not have us would not. */
  get refusal(): string | undefined {
    return this.#refusal
  }

  /** `node`: the id of the node there. */
  onUp(endpoint: Endpoint, node: string): void {
    this.#up.set(endpoint, 0)
    this.#endpoints.set(node, endpoint)
    this.#refusal = undefined
    for (const wake of [...this.#waiters]) wake()
  }

  onDown(endpoint: Endpoint): void {
    this.#up.delete(endpoint)
  }

  onRefused(endpoint: Endpoint, reason: string): void {
    this.#refusal = `${endpoint}: ${reason}`
  }

  avoid(endpoint: Endpoint): void {
    if (!this.#up.has(endpoint)) return
    this.#up.set(endpoint, this.#clock.monotonicMs() + this.#avoidMs)
  }

  /**
   * The node to ask now: the one of this id, if it may be asked; else `spread`, a whole number,
   * names one of several. Undefined: no link is up.
   */
  pick(spread: number, node?: string): Endpoint | undefined {
    const now = this.#clock.monotonicMs()
    const wanted = node === undefined ? undefined : this.#endpoints.get(node)
    if (wanted !== undefined && (this.#up.get(wanted) ?? Infinity) <= now) return wanted
    const good: Endpoint[] = []
    for (const [endpoint, until] of this.#up) if (until <= now) good.push(endpoint)
    return good.length > 0 ? good[spread % good.length] : this.#longestAvoided()
  }

  #longestAvoided(): Endpoint | undefined {
    let found: Endpoint | undefined
    let earliest = Infinity
    for (const [endpoint, until] of this.#up) {
      if (until >= earliest) continue
      found = endpoint
      earliest = until
    }
    return found
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
    this.#up.clear()
    for (const wake of [...this.#waiters]) wake()
  }
}
