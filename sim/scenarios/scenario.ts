/**
 * A scenario: a run's plan and what is expected of it, as a file that replays by itself. It needs
 * neither the seed's drawing nor the version of the swarm that drew it, only the code it is run on.
 */
import type { Violation } from '../checkers/referee.ts'
import { findUnknownRule } from './explain-rules.ts'
import type { RunHooks, RunPlan } from '../run.ts'
import type { RunOutcome, RunResult } from '../result.ts'
import { findContradiction, misfitOfPlan } from './scenario-check.ts'
import { listKnobs } from './scenario-calm.ts'
import { isRecord, findMisfit, optional } from './scenario-shape.ts'

export const scenarioFormat = 'trilithon-scenario'
/** Of the file's format: a reader refuses an unknown version. */
export const scenarioVersion = 1

export interface Expectation {
  readonly outcome: RunOutcome
  /** The rule that is broken first, when the run is not clean. */
  readonly rule?: string
  readonly sentence?: string
  /** Of the run's whole course; another build of the code may take another to the same end. */
  readonly hash?: string
}

export interface Scenario {
  readonly name: string
  readonly plan: RunPlan
  readonly expect: Expectation
  /** Rules that count; all of them when absent. */
  readonly rules?: readonly string[]
}

export type ReadScenario =
  | { readonly ok: true; readonly scenario: Scenario }
  | { readonly ok: false; readonly reason: string }

/** The size of a scenario for its reader. */
export interface ScenarioSize {
  readonly faults: number
  readonly operations: number
  readonly knobs: number
  readonly events: number
}

export function measureScenario({ options, faults, operations = [] }: RunPlan): ScenarioSize {
  const knobs = listKnobs(options).length
  const events = faults.length + operations.length + knobs
  return { faults: faults.length, operations: operations.length, knobs, events }
}

export function describeSize({ events, faults, operations, knobs }: ScenarioSize): string {
  return `${events} events: ${faults} faults, ${operations} operations, ${knobs} knobs`
}

const outcomes: Readonly<Record<RunOutcome, true>> = {
  clean: true,
  safety: true,
  liveness: true,
  crash: true,
  nondeterminism: true,
}

const headShape = {
  format: '',
  version: 0,
  name: '',
  rules: optional(['']),
  plan: () => undefined,
  expect: { outcome: '', rule: optional(''), sentence: optional(''), hash: optional('') },
}

/** Reads a scenario file's text; the reason says the first thing that is wrong with it. */
export function decodeScenario(text: string): ReadScenario {
  const value = parsed(text)
  if (value === undefined) return refused('it is not JSON')
  if (!isRecord(value) || value['format'] !== scenarioFormat) {
    return refused(`it is not a scenario: "format" is not "${scenarioFormat}"`)
  }
  if (value['version'] !== scenarioVersion) {
    return refused(
      `its version is ${String(value['version'])}, and only ${scenarioVersion} is known`,
    )
  }
  const misfit = findMisfit(value, headShape, 'scenario') ?? misfitOfPlan(value['plan'])
  if (misfit !== undefined) return refused(misfit)
  if (!isShaped(value)) return refused('it is not a scenario')
  const { name, plan, expect, rules } = value
  if (!Object.hasOwn(outcomes, expect.outcome)) {
    return refused(`scenario.expect.outcome: expected one of ${Object.keys(outcomes).join(', ')}`)
  }
  const unknownRule = findUnknownRule(rules ?? [])
  if (unknownRule !== undefined) return refused(`scenario.rules: there is no ${unknownRule}`)
  const contradiction = findContradiction(plan)
  if (contradiction !== undefined) return refused(contradiction)
  return { ok: true, scenario: { name, plan, expect, ...(rules && { rules }) } }
}

/** Whether a value is a scenario: the shapes have been compared, which the compiler cannot follow. */
function isShaped(value: unknown): value is Scenario {
  return isRecord(value)
}

function refused(reason: string): ReadScenario {
  return { ok: false, reason }
}

function parsed(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text)
    return value
  } catch {
    // The caller says that it is not JSON.
    return undefined
  }
}

/** The file's text: one line a fault, an operation, a group of options. */
export function encodeScenario(scenario: Scenario): string {
  const { name, plan, expect, rules } = scenario
  const { options, faults, operations, nodesByClient } = plan
  const head = { format: scenarioFormat, version: scenarioVersion, name, expect }
  const planLines = [
    `"options": ${block(printMembers(options), '{}')}`,
    `"faults": ${block(
      faults.map((one) => JSON.stringify(one)),
      '[]',
    )}`,
    ...(nodesByClient === undefined ? [] : [member('nodesByClient', nodesByClient)]),
    ...(operations === undefined
      ? []
      : [
          `"operations": ${block(
            operations.map((one) => JSON.stringify(one)),
            '[]',
          )}`,
        ]),
  ]
  const lines = [
    ...Object.entries(head).map(([key, value]) => member(key, value)),
    ...(rules === undefined ? [] : [member('rules', rules)]),
    `"plan": ${block(planLines, '{}')}`,
  ]
  return `${block(lines, '{}')}\n`
}

/** A knob that was turned off when the plan was shrunk may stand there without a value. */
function printMembers(options: object): string[] {
  const given = Object.entries(options).filter(([, value]) => value !== undefined)
  return given.map(([key, value]) => member(key, value))
}

function member(key: string, value: unknown): string {
  return `${JSON.stringify(key)}: ${JSON.stringify(value)}`
}

function block(lines: readonly string[], [open, close]: string): string {
  if (lines.length === 0) return `${open}${close}`
  const inner = lines.map((line) => line.replaceAll('\n', '\n  ')).join(',\n  ')
  return `${open}\n  ${inner}\n${close}`
}

export function buildScenario(name: string, plan: RunPlan, result: RunResult): Scenario {
  const { outcome, hash } = result
  const violation: Violation | undefined = result.violations[0]
  if (violation === undefined) return { name, plan, expect: { outcome, hash } }
  const { rule, sentence } = violation
  return { name, plan, expect: { outcome, rule, sentence, hash } }
}

export async function runScenario(
  { plan, rules }: Scenario,
  hooks: RunHooks = {},
): Promise<RunResult> {
  const { runPlan } = await import('../run.ts')
  return runPlan(plan, { ...hooks, rules })
}

/** Whether a run ended as expected: the same outcome, and the same rule broken first. */
export function isAsExpected({ outcome, rule }: Expectation, result: RunResult): boolean {
  return result.outcome === outcome && result.violations[0]?.rule === rule
}
