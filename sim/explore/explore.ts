/**
 * Exhaustive search of small scopes on the real core: every order of deliveries, losses, time-outs,
 * disk writes and crashes within a scope, each state once, every rule checked in every one.
 */
import { Model } from './model.ts'
import { narrate } from './narrate.ts'
import type { Scope } from './scope.ts'
import { search } from './search.ts'

export interface ExploreOptions {
  readonly scope: Scope
  /** Only breaches of these rules count. */
  readonly rules?: readonly string[]
  /** The search ends where it is after this many seconds. */
  readonly secondsMax?: number
  readonly statesMax?: number
  /** Real time in seconds; without it there is no end by time. */
  readonly seconds?: () => number
  readonly onDepth?: (depth: number, states: number) => void
}

export interface ExploreReport {
  readonly scope: string
  readonly title: string
  /** Every state within the scope was seen: not so when time was up, or a rule was broken. */
  readonly isComplete: boolean
  readonly states: number
  readonly transitions: number
  readonly depth: number
  /** Different states of one node, and different messages: what the code itself was run on. */
  readonly nodeStates: number
  readonly messages: number
  readonly seconds: number
  readonly breach?: {
    readonly rule: string
    readonly sentence: string
    /** A shortest way to it, one line an action. */
    readonly path: readonly string[]
  }
}

export function explore(options: ExploreOptions): ExploreReport {
  const { scope, secondsMax = Number.POSITIVE_INFINITY } = options
  const seconds = options.seconds ?? ((): number => 0)
  const startedAt = seconds()
  const model = new Model(scope)
  const { breach, ...counts } = search(model, {
    ...options,
    isOver: () => seconds() - startedAt > secondsMax,
  })
  const { nodeStates, messages } = model.counts
  const report = {
    scope: scope.name,
    title: scope.title,
    ...counts,
    nodeStates,
    messages,
    seconds: seconds() - startedAt,
  }
  if (breach === undefined) return report
  const { rule, sentence } = breach
  return { ...report, breach: { rule, sentence, path: narrate(model, breach.path) } }
}

export function describeReport(report: ExploreReport): string {
  const { scope, states, transitions, depth, nodeStates, messages, seconds, breach } = report
  const extent = report.isComplete ? 'searched whole, clean' : 'CUT SHORT, clean so far'
  const figures =
    `${states} states, ${transitions} transitions, depth ${depth}, ${nodeStates} states of a node, ` +
    `${messages} messages, ${seconds.toFixed(1)} s`
  if (breach === undefined) return `${scope.padEnd(16)} ${extent}: ${figures}`
  const head = `${scope.padEnd(16)} ${breach.rule}: ${breach.sentence} (${figures})`
  return [head, ...breach.path.map((line) => `  ${line}`)].join('\n')
}

/** The searched part, and the part left out. */
export function describeTotals(
  reports: readonly ExploreReport[],
  notBegun: readonly string[],
): string {
  const broken = reports.filter(({ breach }) => breach !== undefined)
  const whole = reports.filter(({ isComplete }) => isComplete)
  const cut = reports.filter(({ breach, isComplete }) => breach === undefined && !isComplete)
  const total = reports.length + notBegun.length
  const states = reports.reduce((sum, report) => sum + report.states, 0)
  const named = (what: string, names: readonly string[]): readonly string[] =>
    names.length === 0 ? [] : [`${what}: ${names.join(', ')}`]
  return [
    `${whole.length} of ${total} scopes searched whole, ${states} states in all`,
    ...named(
      'broken',
      broken.map(({ scope }) => scope),
    ),
    ...named(
      'cut short',
      cut.map(({ scope }) => scope),
    ),
    ...named('not begun', notBegun),
  ].join('; ')
}
