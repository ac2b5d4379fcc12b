/**
 * An audit: real trips are loaded into real processes through gateways while an index over them is
 * built, triggers work on them, and anything is killed at any moment. In the end every cell, every
 * entry of the index and every effect of a trigger is accounted for.
 */
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../../src/adapters/system-clock.ts'
import { systemRandom } from '../../src/adapters/system-random.ts'
import { StoreError } from '../../src/base/errors.ts'
import { shardOf } from '../../src/client/row-shard.ts'
import type { Client } from '../../src/client/client.ts'
import { connect } from '../../src/client/connect.ts'
import type { Progress } from '../../src/indexes/report.ts'
import { buildOverFew } from '../workloads/build-index.ts'
import { Replacements } from '../processes/replacements.ts'
import { pause } from '../processes/workload.ts'
import { SeededRandom } from '../world/random.ts'
import { faresTrigger } from './fares-service.ts'
import { Fleet } from './fleet.ts'
import { killAtRandom, type Kills } from './killing.ts'
import { ledgerTrigger } from './ledger-service.ts'
import { Loading, type LoadReport } from './loading.ts'
import { entriesIn, readEntries, logsAt, unhandled } from './looking.ts'
import {
  cellComplaints,
  indexComplaints,
  ledgerReport,
  logComplaints,
  readMicros,
  spanComplaints,
  listZones,
  type Logs,
  type SeenEntry,
} from './reckoning.ts'
import { datastore, indexDefinition, indexName, type Trip } from './trips.ts'

export interface AuditOptions {
  /** The built command line. */
  readonly program: string
  readonly trips: readonly Trip[]
  readonly seed: number
  /** How long processes are killed. */
  readonly seconds: number
  /** Seconds from the replacement of a lost disk to the next such loss, on average; absent: none is lost. */
  readonly replaceSeconds?: number
  readonly signal: AbortSignal
  /** Said when something new begins. */
  readonly onPhase: (text: string) => void
  /** Said again and again: how far it is. */
  readonly onProgress: (text: string) => void
}

export interface AuditResult {
  readonly seed: number
  readonly seconds: number
  readonly outcome: 'clean' | 'safety' | 'liveness'
  readonly trips: number
  readonly kills: Kills
  /** Stores that were replaced by empty ones. */
  readonly replaced: number
  readonly load: LoadReport
  /** From the last acknowledgement until index and triggers had caught up. */
  readonly catchUpSeconds: number
  readonly indexEntries: number
  readonly spans: number
  /** Calls of a trigger for a cell that it had handled before. */
  readonly handledAgain: number
  /** The first of them, in words. */
  readonly violations: readonly string[]
  readonly violationCount: number
}

/** No call may take longer than the time that an index waits until all nodes know of it. */
const callTimeoutMs = 12_000
const graceMs = 15_000
/** The audit gives up after this long without any progress. */
const stuckMs = 90_000
const lookMs = 1_000
const dayMicros = 86_400_000_000
const spanCount = 300
const violationsMax = 20

export async function runAudit(options: AuditOptions): Promise<AuditResult> {
  const folder = await mkdtemp(join(tmpdir(), 'trilithon-audit-'))
  const fleet = await Fleet.create({ program: options.program, folder })
  const replacements = new Replacements({
    ...{ seed: options.seed, daemons: fleet.nodes },
    everySeconds: options.replaceSeconds ?? Number.POSITIVE_INFINITY,
    dataFolder: (id) => fleet.dataFolder(id),
  })
  let client: Client | undefined
  try {
    options.onPhase('starting three nodes and two gateways')
    await fleet.start()
    const nodes = fleet.gateways.map(({ place }) => place.url ?? '')
    client = await connect({ endpoints: nodes, timeoutMs: callTimeoutMs })
    return await new Audit(options, fleet, client, replacements).carryOut()
  } finally {
    await replacements.abandon()
    await client?.close()
    await fleet.close()
    await rm(folder, { recursive: true, force: true })
  }
}

class Audit {
  readonly #options: AuditOptions
  readonly #fleet: Fleet
  readonly #client: Client
  /** Violations that last, and work that did not get done. */
  readonly #complaints: string[] = []
  readonly #stuck: string[] = []
  /** When processes began to be killed. */
  #killingSinceMs = Infinity
  readonly #replacements: Replacements

  constructor(options: AuditOptions, fleet: Fleet, client: Client, replacements: Replacements) {
    this.#options = options
    this.#fleet = fleet
    this.#client = client
    this.#replacements = replacements
  }

  async carryOut(): Promise<AuditResult> {
    const { trips, seed, seconds, onPhase } = this.#options
    this.#fleet.keep()
    onPhase('loading, and building the index meanwhile')
    const loading = this.#startLoading()
    const loaded = loading.run()
    // It is waited for below, unless something fails before.
    loaded.catch(() => undefined)
    await this.#buildIndex(loading)
    const kills = await this.#killAtRandom(loading)
    onPhase('healing, and loading the rest')
    await this.#fleet.heal(async () => {
      const late = await this.#replacements.end()
      if (late !== undefined) this.#stuck.push(late)
    })
    await this.#progress('trips acknowledged', () => loading.acknowledged, trips.length)
    const load = await loaded
    this.#complaints.push(...load.problems, ...this.#fleet.failures)
    const catchUpSeconds = await this.#catchUp()
    onPhase('reckoning')
    const found = await this.#reckon()
    const all = [...this.#complaints, ...this.#stuck]
    const broken = this.#stuck.length > 0 ? 'liveness' : 'clean'
    return {
      seed,
      seconds,
      outcome: this.#complaints.length > 0 ? 'safety' : broken,
      trips: trips.length,
      kills,
      replaced: this.#replacements.count,
      load,
      catchUpSeconds,
      ...found,
      violations: all.slice(0, violationsMax),
      violationCount: all.length,
    }
  }

  /** Those of the trips: nothing else is ever written. The reckoning reads the others too. */
  get #shards(): readonly number[] {
    return [...new Set(this.#options.trips.map(({ rowKey }) => shardOf(rowKey)))]
  }

  #startLoading(): Loading {
    const { trips, signal } = this.#options
    const gateways = this.#fleet.gateways.map(({ place }) => place.url ?? '')
    const isHeld = (nth: number): boolean => this.#isHeld(nth)
    return new Loading({ trips, gateways, client: this.#client, signal, isHeld })
  }

  /**
   * Half of the trips come evenly while processes are killed, so that no kill strikes an idle
   * cluster.
   */
  #isHeld(nth: number): boolean {
    const { trips, seconds } = this.#options
    const half = trips.length / 2
    const part = (performance.now() - this.#killingSinceMs) / (seconds * 1000)
    return nth >= half && part < (nth - half) / half
  }

  async #buildIndex(loading: Loading): Promise<void> {
    const { trips, onProgress } = this.#options
    const indexes = this.#client.cells(datastore).indexes
    await again(() => indexes.apply(indexDefinition))
    const onBuild = ({ phase, done, total }: Progress): void => {
      const loaded = `${loading.acknowledged} of ${trips.length} trips`
      onProgress(`${loaded}; index: ${phase} ${done} of ${total}`)
    }
    const options = { graceMs, shards: this.#shards, onProgress: onBuild }
    const parts = { clock: systemClock, random: systemRandom }
    await again(() => buildOverFew(this.#client, parts, { datastore, name: indexName }, options))
  }

  async #killAtRandom(loading: Loading): Promise<Kills> {
    const { trips, seed, seconds, signal, onPhase, onProgress } = this.#options
    onPhase(`killing for ${seconds} s`)
    this.#killingSinceMs = performance.now()
    const onKill = (kills: Kills): void => {
      onProgress(`${loading.acknowledged} of ${trips.length} trips; killed: ${killsText(kills)}`)
    }
    if (this.#options.replaceSeconds !== undefined) this.#replacements.start()
    return killAtRandom(this.#fleet, { seed, seconds, signal, onKill })
  }

  /** Until index, triggers and every replica have what there is; how long that took, in seconds. */
  async #catchUp(): Promise<number> {
    const { trips, onPhase } = this.#options
    const startedMs = performance.now()
    onPhase('waiting for index, triggers and replicas')
    const logs = await again(() => logsAt(this.#readUrl(0), 'current', this.#shards))
    for (const trigger of [faresTrigger, ledgerTrigger]) {
      const passed = async (): Promise<number> =>
        trips.length - (await again(() => unhandled(this.#client, trigger, logs)))
      await this.#progress(`trips passed by ${trigger.service}`, passed, trips.length)
    }
    const entries = async (): Promise<number> => countItems(await this.#entries())
    await this.#progress('entries of the index', entries, trips.length)
    for (const [nth, { id }] of this.#fleet.nodes.entries()) {
      const cells = async (): Promise<number> =>
        countItems(await logsAt(this.#readUrl(nth), 'snapshot', this.#shards))
      await this.#progress(`cells at ${id}`, cells, 2 * trips.length)
    }
    return (performance.now() - startedMs) / 1000
  }

  async #reckon(): Promise<Pick<AuditResult, 'indexEntries' | 'spans' | 'handledAgain'>> {
    const { trips } = this.#options
    const byNode = new Map<string, Logs>()
    for (const [nth, { id }] of this.#fleet.nodes.entries()) {
      const logs = await logsAt(this.#readUrl(nth), 'snapshot')
      byNode.set(id, logs)
      this.#complaints.push(...cellComplaints(trips, logs).map((text) => `at ${id}: ${text}`))
    }
    this.#complaints.push(...logComplaints(byNode))
    const byZone = await this.#entries()
    this.#complaints.push(...indexComplaints(trips, byZone))
    await this.#reckonSpans()
    await this.#reckonRows()
    const lines = (await readFile(this.#fleet.ledger, 'utf8')).split('\n').filter(Boolean)
    const ledger = ledgerReport(lines, [...byNode.values()][0] ?? new Map())
    this.#complaints.push(...ledger.complaints)
    return { indexEntries: countItems(byZone), spans: spanCount, handledAgain: ledger.again }
  }

  /** Queries of a zone and a span of time, as people ask them. */
  async #reckonSpans(): Promise<void> {
    const { trips, seed } = this.#options
    const random = new SeededRandom(`${seed}/audit/spans`)
    for (let i = 0; i < spanCount; i++) {
      const { body } = random.pick(trips)
      const from = readMicros(body)
      const to = from + random.exponential(30 * dayMicros)
      const span = { zone: body.zone, from, to }
      const found = await again(() => entriesIn(this.#client, span))
      this.#complaints.push(...spanComplaints(trips, span, found))
    }
  }

  /** Compares each row with its own entry. */
  async #reckonRows(): Promise<void> {
    const indexes = this.#client.cells(datastore).indexes
    const { faults } = await again(() => indexes.check(indexName, { shards: this.#shards }))
    this.#complaints.push(...faults.map(({ entry, kind }) => `index check: ${entry} is ${kind}`))
  }

  #entries(): Promise<ReadonlyMap<number, readonly SeenEntry[]>> {
    return again(() => readEntries(this.#client, listZones(this.#options.trips)))
  }

  #readUrl(nth: number): string {
    return this.#fleet.nodes[nth]?.place.url ?? ''
  }

  /** Until there are as many as wanted, or there were no more of them for too long. */
  async #progress(
    what: string,
    look: () => number | Promise<number>,
    wanted: number,
  ): Promise<void> {
    const { signal, onProgress } = this.#options
    let most = -1
    for (let untilMs = Infinity; performance.now() < untilMs;) {
      const count = await look()
      onProgress(`${count} of ${wanted} ${what}`)
      if (count >= wanted) return
      if (count > most) untilMs = performance.now() + stuckMs
      most = Math.max(most, count)
      await pause(lookMs, signal)
      signal.throwIfAborted()
    }
    this.#stuck.push(`${most} of ${wanted} ${what}, and no more for ${stuckMs / 1000} s`)
  }
}

function countItems(lists: ReadonlyMap<unknown, readonly unknown[]>): number {
  return [...lists.values()].reduce((sum, { length }) => sum + length, 0)
}

/** Asks again for a while when it cannot be answered now. */
async function again<T>(ask: () => Promise<T>): Promise<T> {
  const untilMs = performance.now() + stuckMs
  for (;;) {
    try {
      return await ask()
    } catch (error) {
      const isPassing = error instanceof StoreError && error.retry !== 'never'
      if (!isPassing || performance.now() > untilMs) throw error
      await pause(lookMs)
    }
  }
}

export function killsText(kills: Kills): string {
  return Object.entries(kills)
    .map(([kind, count]) => `${count} ${kind}`)
    .join(', ')
}
