/**
 * Shrinks a failing plan: leaves out faults, clients, operations and options one after another, and
 * keeps each smaller plan that still breaks the same rule. Its current plan always fails.
 */
import { present } from '../../src/base/assert.ts'
import type { Operation } from './scenario-operation.ts'
import { runPlan, type RunHooks, type RunPlan } from '../run.ts'
import type { RunResult } from '../result.ts'
import { listKnobs } from './scenario-calm.ts'
import { findContradiction } from './scenario-check.ts'
import { simplerFaults } from './scenario-fault.ts'
import { measureScenario, type ScenarioSize } from './scenario.ts'
import {
  compressed,
  filterOperations,
  until,
  withCalm,
  withChanges,
  withClientsAtWork,
  withNodes,
  withOptions,
} from './shrink-candidates.ts'
import { minimise } from './shrink-minimise.ts'

export interface ShrinkOptions {
  readonly plan: RunPlan
  /** Rules that count; all of them when absent. */
  readonly rules?: readonly string[] | undefined
  /** True when no more time is left; asked before each run. */
  isTimeUp(): boolean
  /** A reduction was found, or a step begins. */
  onProgress(progress: ShrinkProgress): void
}

export interface ShrinkProgress {
  readonly step: string
  readonly runs: number
  readonly size: ScenarioSize
}

export interface Shrunk {
  readonly plan: RunPlan
  /** Of the plan, run without any hook. */
  readonly result: RunResult
  readonly runs: number
  /** Whether nothing more could be left out; false when the time was up first. */
  readonly isMinimal: boolean
}

/**
 * A failure found in another course of messages is the same failure: shrinking tries this many
 * seeds.
 */
const seedsTriedMax = 6
/** With runs of more events than this, only one seed is tried. */
const eventsForSeedsMax = 6_000
/**
 * A candidate may take this many times the events of its original, and this many events at least.
 */
const eventsFactor = 3
const eventsLeastMax = 20_000
/** Mostly few operations matter, those just before the failure; runs with few take no time. */
const lastCounts = [1, 4, 16, 64]
/** How long a candidate may take longer to fail. */
const marginMicros = 500_000

/** Undefined when the plan does not fail. */
export async function shrink(options: ShrinkOptions): Promise<Shrunk | undefined> {
  const operations: Operation[] = []
  const { plan, rules } = options
  const onOperation = (operation: Operation): void => void operations.push(operation)
  const result = await runPlan(plan, { rules, onOperation })
  if (result.outcome === 'clean') return undefined
  return new Shrinker(options, result).run(operations)
}

class Shrinker {
  readonly #options: ShrinkOptions
  readonly #rule: string
  #plan: RunPlan
  #result: RunResult
  #runs = 1
  #step = ''
  #wasCutShort = false

  constructor(options: ShrinkOptions, result: RunResult) {
    this.#options = options
    this.#plan = options.plan
    this.#result = result
    this.#rule = present(result.violations[0], 'shrink: a failure has a violation').rule
  }

  async run(recorded: readonly Operation[]): Promise<Shrunk> {
    await this.#listOperations(recorded)
    for (let round = 1; ; round++) {
      const before = measureScenario(this.#plan).events
      await this.#round(recorded)
      if (this.#wasCutShort) break
      if (round > 1 && measureScenario(this.#plan).events >= before) break
    }
    await this.#tidy()
    const result = await runPlan(this.#plan, { rules: this.#options.rules })
    return { plan: this.#plan, result, runs: this.#runs, isMinimal: !this.#wasCutShort }
  }

  /** From what was drawn to a list: the same operations, each at its moment. */
  async #listOperations(recorded: readonly Operation[]): Promise<void> {
    this.#begin('operations as a list')
    if (this.#plan.operations !== undefined) return
    await this.#attempt(this.#cut({ ...this.#plan, operations: recorded }))
  }

  async #round(recorded: readonly Operation[]): Promise<void> {
    this.#begin('what comes after the failure')
    await this.#attempt(this.#cut(this.#plan))
    this.#begin('faults')
    await minimise(this.#plan.faults, (faults) => this.#attempt({ ...this.#plan, faults }))
    if (this.#plan.operations === undefined) await this.#listOperations(recorded)
    await this.#calmerWorld()
    await this.#fewerOperations()
    this.#begin('nodes')
    if (this.#plan.options.nodeCount > 3) await this.#attempt(withNodes(this.#plan, 3))
    this.#begin('options')
    const knobs = listKnobs(this.#plan.options)
    await minimise(knobs, (kept) => this.#attempt(this.#withoutKnobs(knobs, kept)))
    const changes = this.#plan.options.priorities?.changesAtMicros ?? []
    await minimise(changes, (kept) => this.#attempt(withChanges(this.#plan, kept)))
  }

  /** Whole kinds of options at first: the smaller plan makes all later attempts faster. */
  async #calmerWorld(): Promise<void> {
    this.#begin('kinds of options')
    const knobs = listKnobs(this.#plan.options)
    const readKind = (path: string): string => path.split('.')[0] ?? path
    const kinds = [...new Set(knobs.map(readKind))]
    if (kinds.length < 2) return
    await minimise(kinds, (keptKinds) =>
      this.#attempt(
        this.#withoutKnobs(
          knobs,
          knobs.filter((path) => keptKinds.includes(readKind(path))),
        ),
      ),
    )
  }

  async #fewerOperations(): Promise<void> {
    const { operations } = this.#plan
    if (operations === undefined) return this.#fewerDrawn()
    this.#begin('the last operations')
    for (const count of lastCounts.filter((one) => one < operations.length)) {
      const last = operations.slice(-count)
      if (await this.#attempt({ ...this.#plan, operations: last })) break
    }
    await this.#fewerListed(this.#plan.operations ?? [])
  }

  async #fewerListed(operations: readonly Operation[]): Promise<void> {
    this.#begin('clients')
    const clients = [...new Set(operations.map((one) => one.client))]
    await minimise(clients, (kept) =>
      this.#attempt({ ...this.#plan, operations: filterOperations(operations, kept) }),
    )
    this.#begin('operations')
    await minimise(this.#plan.operations ?? [], (kept) =>
      this.#attempt({ ...this.#plan, operations: kept }),
    )
    await this.#attempt(withClientsAtWork(this.#plan))
  }

  /** Where the failure hangs on how the operations were drawn, there can only be fewer of them. */
  async #fewerDrawn(): Promise<void> {
    this.#begin('operations as they are drawn')
    for (const name of [
      'operationsPerClient',
      'blindWrites',
      'listOperations',
      'pastOperations',
      'tableOperations',
      'clientCount',
    ] as const) {
      for (let isSmaller = true; isSmaller;) {
        const { workload } = this.#plan.options
        const value = Math.floor(workload[name] / 2)
        if (value < (name === 'clientCount' ? 1 : 0) || value === workload[name]) break
        isSmaller = await this.#attempt(
          withOptions(this.#plan, { workload: { ...workload, [name]: value } }),
        )
      }
    }
  }

  #withoutKnobs(all: readonly string[], kept: readonly string[]): RunPlan {
    return withCalm(
      this.#plan,
      all.filter((path) => !kept.includes(path)),
    )
  }

  /** Simplifies the rest: this makes no number smaller. */
  async #tidy(): Promise<void> {
    this.#begin('lengths')
    for (const gapMicros of [10_000, 100_000, 1_000_000]) {
      if (await this.#attempt(compressed(this.#plan, gapMicros))) break
    }
    for (let index = 0; index < this.#plan.faults.length; index++) await this.#simplify(index)
    await this.#attempt(this.#cut(this.#plan))
  }

  /** Tells one fault more simply, as long as that works. */
  async #simplify(index: number): Promise<void> {
    for (let isSimpler = true; isSimpler;) {
      isSimpler = false
      const { faults } = this.#plan
      for (const simpler of simplerFaults(present(faults[index], 'shrink: in range'))) {
        isSimpler = await this.#attempt({ ...this.#plan, faults: faults.with(index, simpler) })
        if (isSimpler) break
      }
    }
  }

  /** Up to the failure, and a little longer, if it came before the world healed. */
  #cut(plan: RunPlan): RunPlan {
    if (!this.#isBeforeHealing) return plan
    return until(plan, this.#failedAtMicros + marginMicros)
  }

  get #failedAtMicros(): number {
    return this.#result.violations[0]?.timeMicros ?? 0
  }

  get #isBeforeHealing(): boolean {
    return this.#failedAtMicros < this.#plan.options.faultRates.lengthMicros
  }

  #begin(step: string): void {
    this.#step = step
    this.#tell()
  }

  #tell(): void {
    this.#options.onProgress({
      step: this.#step,
      runs: this.#runs,
      size: measureScenario(this.#plan),
    })
  }

  /** Whether the plan breaks the same rule, with its own seed or with another; then it is kept. */
  async #attempt(plan: RunPlan): Promise<boolean> {
    if (findContradiction(plan) !== undefined) return false
    const seeds = this.#result.events <= eventsForSeedsMax ? seedsTriedMax : 1
    for (let i = 0; i < seeds; i++) {
      const seed = plan.options.seed + i
      if (await this.#fails(i === 0 ? plan : withOptions(plan, { seed }))) return true
    }
    return false
  }

  async #fails(plan: RunPlan): Promise<boolean> {
    if (this.#options.isTimeUp()) {
      this.#wasCutShort = true
      return false
    }
    this.#runs += 1
    const result = await runPlan(plan, this.#hooks())
    if (result.violations[0]?.rule !== this.#rule) return false
    this.#plan = plan
    this.#result = result
    this.#tell()
    return true
  }

  #hooks(): RunHooks {
    const { rules } = this.#options
    const eventsMax = Math.max(eventsLeastMax, eventsFactor * this.#result.events)
    const isStorm = this.#rule === 'LIVE-5'
    const endsAtHealing = this.#isBeforeHealing
    return { rules, endsAtHealing, ...(isStorm ? {} : { eventsMax }) }
  }
}
