/**
 * The load of an audit: several callers put trips at once, half of them over HTTP, half through the
 * client library, each at both gateways. A failed put is sent again until it is acknowledged: every
 * put may be repeated.
 */
import { StoreError } from '../../src/base/errors.ts'
import type { Client } from '../../src/client/client.ts'
import { pause } from '../processes/workload.ts'
import { datastore, tripColumn, type Trip } from './trips.ts'

const callersPerWay = 16
const againMs = 50
const answerWaitMs = 10_000

export interface LoadingOptions {
  readonly trips: readonly Trip[]
  readonly gateways: readonly string[]
  readonly client: Client
  readonly signal: AbortSignal
  /** The n-th trip is not to be put yet: there is to be load while processes are killed. */
  isHeld(nth: number): boolean
}

export interface WayCount {
  readonly cells: number
  /** Cells acknowledged per second of the time that the load took. */
  readonly perSecond: number
}

export interface LoadReport {
  readonly seconds: number
  readonly http: WayCount
  readonly library: WayCount
  /** Failed tries, by their error. */
  readonly failures: Readonly<Record<string, number>>
  /** Answers that no put of this load should have had. */
  readonly problems: readonly string[]
}

type Way = 'http' | 'library'

export class Loading {
  readonly #options: LoadingOptions
  readonly #counts: Record<Way, number> = { http: 0, library: 0 }
  readonly #failures = new Map<string, number>()
  readonly #problems: string[] = []
  #next = 0

  constructor(options: LoadingOptions) {
    this.#options = options
  }

  get acknowledged(): number {
    const { http, library } = this.#counts
    return http + library
  }

  async run(): Promise<LoadReport> {
    const startedMs = performance.now()
    const callers = Array.from({ length: callersPerWay }, (_, nth) => nth)
    await Promise.all([
      ...callers.map((nth) =>
        this.#call('http', (trip, tries) => this.#overHttp(trip, nth + tries)),
      ),
      ...callers.map(() => this.#call('library', (trip) => this.#byLibrary(trip))),
    ])
    const seconds = (performance.now() - startedMs) / 1000
    const countWay = (way: Way): WayCount => {
      const cells = this.#counts[way]
      return { cells, perSecond: Math.round(cells / seconds) }
    }
    return {
      seconds,
      http: countWay('http'),
      library: countWay('library'),
      failures: Object.fromEntries(this.#failures),
      problems: this.#problems,
    }
  }

  async #call(
    way: Way,
    put: (trip: Trip, tries: number) => Promise<string | undefined>,
  ): Promise<void> {
    const { trips, signal, isHeld } = this.#options
    while (!signal.aborted) {
      const nth = this.#next
      const trip = trips[nth]
      if (trip === undefined) return
      if (isHeld(nth)) {
        await pause(againMs)
        continue
      }
      this.#next += 1
      for (let tries = 0; !signal.aborted; tries++) {
        const failure = await put(trip, tries)
        if (failure === undefined) break
        this.#failures.set(failure, (this.#failures.get(failure) ?? 0) + 1)
        await pause(againMs)
      }
      this.#counts[way] += 1
    }
  }

  /** Undefined once the trip is done; otherwise the error. */
  async #overHttp({ rowKey, body }: Trip, turn: number): Promise<string | undefined> {
    const { gateways } = this.#options
    const url = gateways[turn % gateways.length] ?? ''
    const path = `${url}/v1/datastores/${datastore}/cells/${rowKey}/${tripColumn}/0`
    try {
      const signal = AbortSignal.timeout(answerWaitMs)
      const response = await fetch(path, { method: 'PUT', body: JSON.stringify(body), signal })
      const text = await response.text()
      if (response.status === 200 || response.status === 201) return undefined
      if (response.status === 429 || response.status >= 500) return `HTTP ${response.status}`
      this.#problems.push(`a put of ${rowKey} was answered ${response.status}: ${text}`)
      return undefined
    } catch {
      // The gateway does not listen, or died before it answered.
      return 'HTTP without an answer'
    }
  }

  async #byLibrary({ rowKey, body }: Trip): Promise<string | undefined> {
    const cells = this.#options.client.cells(datastore)
    try {
      await cells.put({ rowKey, column: tripColumn, refKey: 0, body })
      return undefined
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
      if (error.retry !== 'never') return error.code
      this.#problems.push(`a put of ${rowKey} failed: ${error.code}, ${error.message}`)
      return undefined
    }
  }
}
