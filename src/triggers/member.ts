/**
 * A worker's part in its service: a heartbeat a while, a look at what the others have written, an
 * election when the leader is silent, and, as the leader, the assignment of shards. One heartbeat per
 * worker, however many shards it has. What cannot be reached now is tried again at the next one; until
 * then the worker goes on with the shards that it has.
 */
import { StoreError } from '../base/errors.ts'
import type { Clock } from '../ports/clock.ts'
import type { Random } from '../ports/random.ts'
import { pause } from '../time/moments.ts'
import { decodeHoldings, spread } from './assignment.ts'
import type { TriggerLimits } from './limits.ts'
import type { ServiceStore, ServiceView } from './service-store.ts'
import { Silence } from './silence.ts'

export interface MemberParts {
  readonly store: ServiceStore
  readonly clock: Clock
  readonly random: Random
  readonly worker: string
  readonly limits: TriggerLimits
  /** All shards that are to be worked on, in order. */
  readonly shards: readonly number[]
  /** The generation up to which this worker works on nothing that it has had to give up. */
  released(): number
  onView(view: ServiceView): void
  /** The group could not be reached, or can be again. */
  onReach(isReached: boolean, error?: StoreError): void
  onElected(term: number): void
}

export class Member {
  readonly #parts: MemberParts
  readonly #silence: Silence
  #beat = 0
  #isEnding = false
  #isHurried = false
  #round: Promise<void> | undefined
  #wake: () => void = () => undefined

  constructor(parts: MemberParts) {
    this.#parts = parts
    this.#silence = new Silence(parts.limits.leaseMs)
  }

  /** Until `end`. Rejects with what is no outage. */
  async run(): Promise<void> {
    while (!this.#isEnding) {
      this.#isHurried = false
      this.#round = this.#tryRound()
      await this.#round
      if (!this.#isEnding && !this.#isHurried) await this.#pause()
    }
  }

  /** No more heartbeats; waits for the one under way. If that fails, `run` rejects with the error. */
  async end(): Promise<void> {
    this.#isEnding = true
    this.#wake()
    await this.#round?.catch(() => undefined)
  }

  /** The next heartbeat is now: there is something to be said. */
  hurry(): void {
    this.#isHurried = true
    this.#wake()
  }

  async #pause(): Promise<void> {
    const { clock, random, limits } = this.#parts
    const { heartbeatMs } = limits
    const delayMs = random.int(Math.ceil(heartbeatMs * 0.8), heartbeatMs)
    await new Promise<void>((resolve) => {
      const timer = clock.setTimer(delayMs, resolve)
      this.#wake = () => {
        timer.cancel()
        resolve()
      }
    })
  }

  async #tryRound(): Promise<void> {
    const { onReach } = this.#parts
    try {
      await this.#goRound()
      onReach(true)
    } catch (error) {
      if (!isOutage(error)) throw error
      onReach(false, error)
      await pause(this.#parts, this.#parts.limits.pauseMs)
    }
  }

  async #goRound(): Promise<void> {
    const { store, clock, worker, released, onView } = this.#parts
    this.#beat += 1
    await store.beat({ worker, beat: this.#beat, released: released() })
    const view = await store.view()
    this.#silence.look(view.workers, clock.monotonicMs())
    if (this.#isEnding) return
    onView(view)
    if (view.service?.leader === worker) await this.#lead(view)
    else if (!this.#isLed(view)) await this.#stand(view)
  }

  #isLed({ service }: ServiceView): boolean {
    return service !== undefined && this.#isAlive(service.leader)
  }

  #isAlive(worker: string): boolean {
    return this.#silence.isAlive(worker)
  }

  async #stand(view: ServiceView): Promise<void> {
    const { store, worker, onElected } = this.#parts
    if (!(await store.elect(worker, view))) return
    onElected((view.service?.term ?? 0) + 1)
    const elected = await store.view()
    if (elected.service?.leader === worker) await this.#lead(elected)
  }

  async #lead({ service, workers }: ServiceView): Promise<void> {
    if (service === undefined) return
    const { store, shards } = this.#parts
    const present = workers.filter(({ worker }) => this.#isAlive(worker))
    const gone = workers.filter((one) => !present.includes(one)).map(({ worker }) => worker)
    const holdings = decodeHoldings(service.assignment)
    const next = spread(holdings, shards, present, service.generation + 1)
    if (next === undefined && gone.length === 0) return
    if (await store.assign(service, next, gone)) this.hurry()
  }
}

/** An error that passes by itself: no majority, no node, too much to do, another writer was faster. */
export function isOutage(error: unknown): error is StoreError {
  return error instanceof StoreError && passing.has(error.code)
}

const passing: ReadonlySet<string> = new Set([
  ...['unavailable', 'unknown-outcome', 'timeout', 'overloaded', 'contention', 'expired'],
  'snapshot-too-old',
])
