/** Why addresses have no link, as far as the transport tells; and whether waiting for one can help. */
import { problem, type Problem } from '../base/problem.ts'
import type { Endpoint, Unreached } from '../ports/transport.ts'

/** Addresses in a message about all of them. */
const toldMax = 5

export class UnreachedAddresses {
  readonly #causes = new Map<Endpoint, Unreached>()
  readonly #addresses: number
  #wasUp = false

  /** `addresses`: how many are dialled; 0: callers are not to hear of them. */
  constructor(addresses: number) {
    this.#addresses = addresses
  }

  onUp(endpoint: Endpoint): void {
    this.#wasUp = true
    this.#causes.delete(endpoint)
  }

  onUnreached(endpoint: Endpoint, why: Unreached): void {
    if (this.#addresses > 0) this.#causes.set(endpoint, why)
  }

  /**
   * Why no call can succeed before something is set up otherwise: each address has been tried, and waiting
   * helps at none. One that may yet come up is enough to wait for: the others may be set up wrongly alone,
   * and what a stranger says at one address must not end calls that another could take. Of a client that
   * was linked once it is not said: to it, a change of certificates or secrets is an outage that ends.
   */
  hopeless(): Problem | undefined {
    const kinds = new Set([...this.#causes.values()].map(({ kind }) => kind))
    if (this.#wasUp || kinds.size === 0 || this.#causes.size < this.#addresses) return undefined
    if (kinds.has('waits')) return undefined
    const code = kinds.has('forbidden') ? 'forbidden' : 'invalid'
    return problem(code, `no node takes this client: ${this.#told()}`)
  }

  /** That no link is up, and why; undefined: nothing is known. */
  down(attempts: number): Problem | undefined {
    const told = this.#told()
    if (told === '') return undefined
    const message = `no node could be reached in time: ${told}; try again`
    return problem('unavailable', message, { attempts })
  }

  #told(): string {
    const reasons = [...this.#causes.values()].map(({ reason }) => reason)
    const rest = reasons.length - toldMax
    const more = rest > 0 ? [`and ${rest} more`] : []
    return [...reasons.slice(0, toldMax), ...more].join('; ')
  }
}
