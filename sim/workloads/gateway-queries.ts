/**
 * A client that queries the index of the indexed datastore over HTTP, page by page, while others
 * put its cells (`cell-index-workload.ts`). Its queries are verified, so no answer may contradict
 * the cells (IDX-2).
 */
import type { StoreError } from '../../src/base/errors.ts'
import { toStoreError, captureOutcome } from '../../src/base/problem.ts'
import type { Referee } from '../checkers/referee.ts'
import { createClock } from '../world/clock.ts'
import type { Coverage } from '../coverage.ts'
import type { Gateways } from '../cluster/gateways.ts'
import { readProblem, type HttpCaller } from './http-caller.ts'
import type { HttpAnswer } from '../cluster/http-wire.ts'
import type { Load } from './load.ts'
import { SimProcess } from '../world/sim-process.ts'
import type { WorkloadOptions } from '../swarm.ts'
import type { World } from '../world/world.ts'

export interface GatewayQueriesParts {
  readonly world: World
  readonly coverage: Coverage
  readonly referee: Referee
  readonly load: Load
  readonly gateways: Gateways
  readonly options: WorkloadOptions
  mayBeCorrupt(): boolean
  onFailed(error: unknown): void
}

interface Page {
  readonly items: readonly { readonly fields: Readonly<Record<string, unknown>> }[]
  readonly cursor?: string
}

const path = '/v1/datastores/indexed/indexes/by_city'
const rowPath = '/v1/datastores/indexed/cells/00000000-0000-4000-8000-000000000001'
const cities = ['Oslo', 'Rome', 'Bern'] as const
const queryCount = 12
const pagesMax = 3

export class GatewayQueries {
  readonly #parts: GatewayQueriesParts
  #isEnding = false
  #busy = 0

  constructor(parts: GatewayQueriesParts) {
    this.#parts = parts
  }

  isDone(): boolean {
    return this.#busy === 0
  }

  start(): void {
    const { options, onFailed } = this.#parts
    if (options.gateways === undefined || options.indexClientCount === 0) return
    this.#busy += 1
    this.#run().then(() => (this.#busy -= 1), onFailed)
  }

  end(): void {
    this.#isEnding = true
  }

  async #run(): Promise<void> {
    const { world, gateways, load } = this.#parts
    const random = world.random.fork('gateway queries')
    const process = new SimProcess(world, 'queries')
    const skew = { offsetMicros: 0, driftPpm: 0, timerLatenessMicros: 0 }
    const clock = createClock(process, skew, random.fork('clock'))
    const caller = gateways.connect(process, clock, random.fork('gateways'))
    await this.#untilWritten(caller)
    for (let i = 0; i < queryCount && !this.#isEnding; i++) {
      await world.sleep(1 + random.exponential(300_000) + load.idleMicros)
      const [city, from, limit] = [random.pick(cities), random.int(1, 9), random.pick([1, 3])]
      const query = `city=${city}&at.gte=${from}&limit=${limit}&verify=true`
      let cursor: string | null = ''
      for (let page = 0; page < pagesMax && cursor !== null; page++) {
        const next: string = cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`
        const answer = await this.#get(caller, `${path}?${query}${next}`)
        cursor = answer === undefined ? null : this.#judge(answer, city, from)
      }
    }
  }

  /**
   * A node that sees a query too early behaves for a while as if there were no index. The grace
   * before a build covers that; here the index is built without one.
   */
  async #untilWritten(caller: HttpCaller): Promise<void> {
    const { world } = this.#parts
    while (!this.#isEnding) {
      if ((await this.#get(caller, rowPath)) !== undefined) return
      await world.sleep(200_000 + this.#parts.load.idleMicros)
    }
  }

  /** Undefined when there is nothing, or the world was in the way. */
  async #get(caller: HttpCaller, asked: string): Promise<HttpAnswer | undefined> {
    const request = { method: 'GET', path: asked, headers: {} } as const
    const told = await captureOutcome(() => caller.ask(request, false))
    const wrong = told.kind === 'ok' ? readProblem(told.value.answer) : toStoreError(told.problem)
    if (wrong !== undefined) this.#excuse(wrong)
    return told.kind === 'ok' && wrong === undefined ? told.value.answer : undefined
  }

  /** Where the next page begins; null when there is none. */
  #judge(answer: HttpAnswer, city: string, from: number): string | null {
    const { coverage, referee } = this.#parts
    coverage.count('gateway: query of an index')
    const { items, cursor }: Page = JSON.parse(answer.body)
    for (const { fields } of items) {
      const fits = fields['city'] === city && Number(fields['at']) >= from
      const sentence = 'A query of an index over HTTP gave what contradicts it.'
      referee.check(fits, 'IDX-2', sentence, () => ({ city, from, fields }))
    }
    return cursor ?? null
  }

  #excuse(error: StoreError): void {
    // `invalid`: the index was dropped, and is declared anew by another shard field
    // (`cell-index-life.ts`).
    const excused = ['not-found', 'expired', 'snapshot-too-old', 'closed', 'invalid']
    const isDamage = error.code === 'corrupt' && this.#parts.mayBeCorrupt()
    if (error.retry === 'never' && !excused.includes(error.code) && !isDamage) throw error
  }
}
