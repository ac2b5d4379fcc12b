/**
 * Which node is asked: one of those a link is up to, the same one as long as it answers. A node
 * that did not is avoided for a while, but asked when there is no other.
 */
import type { Clock } from '../ports/clock.ts'
import type { Random } from '../ports/random.ts'
import type { Endpoint } from '../ports/transport.ts'

export class Links {
  readonly #clock: Clock
  readonly #random: Random
  readonly #avoidMs: number
  /** Endpoints with a link, and until when they are avoided. */
  readonly #up = new Map<Endpoint, number>()
  readonly #waiters = new Set<() => void>()
  #preferred: Endpoint | undefined
  #refusal: string | undefined

  constructor(ports: { readonly clock: Clock; readonly random: Random }, avoidMs: number) {
    this.#clock = ports.clock
    this.#random = ports.random
    this.#avoidMs = avoidMs
  }

  /** Why the last node that would not have us would not. */
  get refusal(): string | undefined {
    return this.#refusal
  }

  onUp(endpoint: Endpoint): void {
    this.#up.set(endpoint, 0)
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

  /** The node to ask now; undefined when no link is up. */
  pick(): Endpoint | undefined {
    const now = this.#clock.monotonicMs()
    const good = [...this.#up].filter(([, until]) => until <= now).map(([endpoint]) => endpoint)
    if (this.#preferred !== undefined && good.includes(this.#preferred)) return this.#preferred
    this.#preferred = good.length > 0 ? this.#anyOf(good) : this.#longestAvoided()
    return this.#preferred
  }

  #anyOf(endpoints: readonly Endpoint[]): Endpoint | undefined {
    return endpoints[this.#random.int(0, endpoints.length - 1)]
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
