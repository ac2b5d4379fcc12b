/**
 * Random walks over the actions of a scope that is too large to be searched whole: uniform ones,
 * and ones by priority (PCT: Burckhardt, Kothari, Musuvathi and Nagarakatte, ASPLOS 2010). There
 * each chain has a random priority and the highest that can act does; at d - 1 moments drawn
 * beforehand the chain about to act falls below all others. A bug that needs d events in order is
 * found by one walk in about n * k^(d-1), n the chains and k the steps, whatever the other events
 * are.
 *
 * A chain is a disk, a timer, a client's request, the fate of a node, or a message and the first
 * message that its delivery causes, and so on (Ozkan and others, OOPSLA 2018); further messages
 * begin chains of their own.
 */
import { present } from '../../src/base/assert.ts'
import type { SeededRandom } from '../world/random.ts'
import type { Model } from './model.ts'
import { flightAt, unpackAction, type ActionCode } from './state-vector.ts'
import type { Breach } from './observation.ts'
import { countedBreach } from './search.ts'

/**
 * `uniform`; `pct`: by priority of chains, for bugs of `depth` events in order; `pos`: by priority
 * of single events, drawn anew for those at the node that has just acted (POS: Yuan, Yang and Gu,
 * CAV 2018).
 */
export type Schedule =
  | { readonly kind: 'uniform' }
  | { readonly kind: 'pct'; readonly depth: number }
  | { readonly kind: 'pos' }

/** Longer walks end: scopes are small, so none should. */
const stepsMax = 500
/** Walks that are made to see how long walks are. */
const lengthWalks = 50
/** How finely priorities are drawn: ties are as good as impossible. */
const prioritiesMax = 2 ** 31

export interface WalkResult {
  readonly steps: number
  readonly breach?: Breach
  readonly path: readonly ActionCode[]
}

interface Chooser {
  choose(codes: readonly ActionCode[], step: number): ActionCode
  /** The action was taken; these messages are new in flight. */
  taken(code: ActionCode, flights: readonly number[]): void
}

/** One walk, until nothing can happen any more or a rule is broken. */
export function walk(
  model: Model,
  random: SeededRandom,
  schedule: Schedule,
  options: { readonly steps: number; readonly rules?: readonly string[] },
): WalkResult {
  const chooser = makeChooser(schedule, random, options.steps)
  const path: ActionCode[] = []
  let vector = model.initial
  for (let step = 0; step < stepsMax; step++) {
    const codes = model.actions(vector)
    if (codes.length === 0) break
    const code = chooser.choose(codes, step)
    path.push(code)
    const successor = model.successor(vector, code)
    const breach = countedBreach(successor.breaches, options.rules)
    if (breach !== undefined) return { steps: path.length, breach, path }
    if (successor.isHalted) break
    const before = new Set(vector.slice(flightAt))
    chooser.taken(
      code,
      successor.vector.slice(flightAt).filter((flight) => !before.has(flight)),
    )
    vector = successor.vector
  }
  return { steps: path.length, path }
}

function makeChooser(schedule: Schedule, random: SeededRandom, steps: number): Chooser {
  switch (schedule.kind) {
    case 'uniform':
      return { choose: (codes) => random.pick(codes), taken: () => undefined }
    case 'pct':
      return new Priorities(random, schedule.depth, steps)
    case 'pos':
      return new EventPriorities(random)
  }
}

class EventPriorities implements Chooser {
  readonly #random: SeededRandom
  readonly #priorityByEvent = new Map<ActionCode, number>()

  constructor(random: SeededRandom) {
    this.#random = random
  }

  choose(codes: readonly ActionCode[]): ActionCode {
    let highest: { readonly code: ActionCode; readonly priority: number } | undefined
    for (const code of codes) {
      const priority = this.#priorityByEvent.get(code) ?? this.#random.int(1, prioritiesMax)
      this.#priorityByEvent.set(code, priority)
      if (highest === undefined || priority > highest.priority) highest = { code, priority }
    }
    return present(highest, 'explore: nothing to choose from').code
  }

  taken(code: ActionCode): void {
    const { node } = unpackAction(code)
    for (const one of this.#priorityByEvent.keys()) {
      if (unpackAction(one).node === node) this.#priorityByEvent.delete(one)
    }
  }
}

class Priorities implements Chooser {
  readonly #random: SeededRandom
  readonly #depth: number
  readonly #changes: readonly number[]
  readonly #priorityByChain = new Map<string, number>()
  readonly #chainByFlight = new Map<number, string>()
  #chains = 0

  constructor(random: SeededRandom, depth: number, steps: number) {
    this.#random = random
    this.#depth = depth
    this.#changes = Array.from({ length: depth - 1 }, () => random.int(0, Math.max(steps - 1, 0)))
  }

  choose(codes: readonly ActionCode[], step: number): ActionCode {
    for (const [at, change] of this.#changes.entries()) {
      // The lowest that are left: each change point has a priority of its own.
      if (change !== step) continue
      this.#priorityByChain.set(this.#highest(codes), at - this.#depth)
    }
    const chain = this.#highest(codes)
    return this.#random.pick(codes.filter((code) => this.#findChain(code) === chain))
  }

  #highest(codes: readonly ActionCode[]): string {
    let highest: string | undefined
    for (const code of codes) {
      const chain = this.#findChain(code)
      if (highest === undefined || this.#ensurePriority(chain) > this.#ensurePriority(highest)) {
        highest = chain
      }
    }
    return present(highest, 'explore: nothing to choose from')
  }

  #ensurePriority(chain: string): number {
    let priority = this.#priorityByChain.get(chain)
    if (priority === undefined) {
      priority = this.#random.int(1, prioritiesMax)
      this.#priorityByChain.set(chain, priority)
    }
    return priority
  }

  #findChain(code: ActionCode): string {
    const { kind, node, argument } = unpackAction(code)
    switch (kind) {
      case 'deliver':
        return this.#chainByFlight.get(argument) ?? 'flights'
      // Whichever message it is: how often they come is bounded.
      case 'repeat':
      case 'crash':
      case 'flush':
        return `${kind} ${node}`
      default:
        return `${kind} ${node} ${argument}`
    }
  }

  taken(code: ActionCode, flights: readonly number[]): void {
    const { kind } = unpackAction(code)
    const isContinued = kind === 'deliver' || kind === 'submit' || kind === 'read'
    const own = isContinued ? this.#findChain(code) : undefined
    for (const [at, flight] of flights.entries()) {
      const isFirst = at === 0 && own !== undefined
      this.#chainByFlight.set(flight, isFirst ? own : `chain ${(this.#chains += 1)}`)
    }
  }
}

export interface ScheduleResult {
  readonly schedule: Schedule
  readonly walks: number
  readonly found: number
  /** The first walk that found it, from 1. */
  readonly firstAt?: number
  readonly breach?: Breach
}

/** How often walks of each kind find a breach. A function of (scope, seed, walks). */
export function compareSchedules(
  model: Model,
  random: SeededRandom,
  schedules: readonly Schedule[],
  options: { readonly walks: number; readonly rules?: readonly string[] },
): readonly ScheduleResult[] {
  let steps = 1
  for (let at = 0; at < lengthWalks; at++) {
    const { steps: length } = walk(
      model,
      random.fork(`length ${at}`),
      { kind: 'uniform' },
      { steps },
    )
    steps = Math.max(steps, length)
  }
  return schedules.map((schedule) => {
    let found = 0
    let first: { readonly firstAt: number; readonly breach: Breach } | undefined
    for (let at = 1; at <= options.walks; at++) {
      const stream = random.fork(`${describeSchedule(schedule)} ${at}`)
      const { breach } = walk(model, stream, schedule, { ...options, steps })
      if (breach === undefined) continue
      found += 1
      first ??= { firstAt: at, breach }
    }
    return { schedule, walks: options.walks, found, ...first }
  })
}

export function describeSchedule(schedule: Schedule): string {
  return schedule.kind === 'pct' ? `pct-${schedule.depth}` : schedule.kind
}
