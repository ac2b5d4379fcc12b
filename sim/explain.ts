/**
 * Explains a scenario that fails: the rule in words, where and when it broke, the faults and the
 * operations, and then the causal slice of the run, one line a state change.
 */
import { fromLatin1, latin1 } from '../src/base/bytes.ts'
import { isUuid } from '../src/base/ids.ts'
import { decodeTuple } from '../src/base/tuple.ts'
import { rowKeyBytes, shardGroup } from '../src/cells/shard.ts'
import { datastore } from './cell-workload.ts'
import type { Violation } from './checkers/referee.ts'
import { inOrder } from './fault.ts'
import type { StoryLine } from './narrator.ts'
import type { RunResult } from './result.ts'
import { knobsOf } from './scenario-calm.ts'
import { isRecord } from './scenario-shape.ts'
import { describeSize, runScenario, sizeOf, type Scenario } from './scenario.ts'
import { positionsWith, sliceOf, type Place } from './explain-slice.ts'
import {
  describeFault,
  describeLine,
  describeOperation,
  describeRule,
  describeTime,
  Letters,
} from './explain-words.ts'

export interface Explanation {
  readonly scenario: Scenario
  readonly result: RunResult
  readonly place: Place | undefined
  readonly slice: readonly StoryLine[]
  /** Lines that the whole run told. */
  readonly lineCount: number
}

/** Lines of a run that are kept: the last ones. */
const linesKeptMax = 400_000
/** Lines of a slice that are told: the last ones. */
const linesToldMax = 120

/** Runs the scenario; `undefined` when it does not fail. */
export async function explain(scenario: Scenario): Promise<Explanation | undefined> {
  const lines: StoryLine[] = []
  let lineCount = 0
  const result = await runScenario(scenario, {
    story: (line) => {
      lineCount += 1
      lines.push(line)
      if (lines.length >= 2 * linesKeptMax) lines.splice(0, linesKeptMax)
    },
  })
  const [violation] = result.violations
  if (violation === undefined) return undefined
  const place = placeOf(violation, lines)
  const withReads = /^(LEASE|CELL|LIVE)-/.test(violation.rule)
  const slice =
    place === undefined ? lines.slice(-linesToldMax) : sliceOf(lines, { place, withReads })
  return { scenario, result, place, slice, lineCount }
}

/** Where a violation is: as it says itself, or else where the run was when it failed. */
function placeOf({ detail }: Violation, lines: readonly StoryLine[]): Place | undefined {
  const { group, position } = detail
  if (typeof group === 'string') {
    const name = latin1(Buffer.from(group, 'hex'))
    return { group: name, positions: typeof position === 'number' ? [position] : [] }
  }
  const cell = cellOf(detail)
  if (cell !== undefined) {
    const name = shardGroup(datastore, cell.shard)
    return { group: name, positions: positionsWith(lines, name, rowKeyBytes(cell.row)) }
  }
  return placeOfLast(lines)
}

/** The cell that a checker of cells names, under whichever name. */
function cellOf(
  detail: Violation['detail'],
): { readonly shard: number; readonly row: string } | undefined {
  for (const value of Object.values(detail)) {
    if (!isRecord(value)) continue
    const { shard, row } = value
    if (typeof shard === 'number' && typeof row === 'string' && isUuid(row)) return { shard, row }
  }
  return undefined
}

/** An assertion fails while something is handled: what was told last is about its place. */
function placeOfLast(lines: readonly StoryLine[]): Place | undefined {
  const last = lines.findLast(({ fields }) => typeof fields['position'] === 'number')
  const group = last?.fields['group']
  const position = last?.fields['position']
  if (typeof group !== 'string' || typeof position !== 'number') return undefined
  return { group, positions: [position] }
}

export function describeExplanation(explanation: Explanation): string {
  const { scenario, result, place, slice, lineCount } = explanation
  const { plan } = scenario
  const [violation] = result.violations
  const letters = new Letters()
  const told = slice.slice(-linesToldMax).map((line) => describeLine(line, letters))
  const knobs = knobsOf(plan.options)
  return [
    ...(violation === undefined ? [] : describeViolation(violation, place)),
    '',
    `The run: ${plan.options.nodeCount} nodes; ${describeSize(sizeOf(plan))}.`,
    ...section('Options that are not as usual', knobs),
    ...section('Faults', inOrder(plan.faults).map(describeFault)),
    ...section('Operations', (plan.operations ?? []).map(describeOperation)),
    ...section(`How it came about (${told.length} of ${lineCount} lines)`, told),
    ...section('Values', letters.legend()),
  ].join('\n')
}

function describeViolation(violation: Violation, place: Place | undefined): readonly string[] {
  const { rule, sentence, timeMicros, detail } = violation
  const facts = Object.entries(detail).filter(([name]) => !['group', 'position'].includes(name))
  return [
    `${rule}: ${sentence}`,
    `The rule: ${describeRule(rule)}`,
    `When: ${describeTime(timeMicros)} after the start.`,
    ...(place === undefined ? [] : [`Where: ${describePlace(place)}.`]),
    ...facts.map(([name, value]) => `  ${name}: ${JSON.stringify(value)}`),
  ]
}

function describePlace({ group, positions }: Place): string {
  const where = positions.length === 0 ? '' : `, position ${positions.join(', ')}`
  return `group ${describeGroup(group)}${where}`
}

/** The parts of a group's key, as its owner wrote them. */
function describeGroup(group: string): string {
  const parts = decodeTuple(fromLatin1(group))
  return parts === undefined ? group : parts.join('/')
}

function section(title: string, lines: readonly string[]): readonly string[] {
  return lines.length === 0 ? [] : ['', `${title}:`, ...lines.map((line) => `  ${line}`)]
}
