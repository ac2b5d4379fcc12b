/**
 * Explains a scenario that fails: the rule in words, where and when it broke, the faults and the
 * operations, and then the causal slice of the run, one line a state change.
 */
import { latin1 } from '../../src/base/bytes.ts'
import { isUuid } from '../../src/base/ids.ts'
import { rowKeyBytes, shardGroup } from '../../src/cells/shard.ts'
import { datastore } from '../workloads/datastore.ts'
import type { Violation } from '../checkers/referee.ts'
import { inOrder, type Fault } from '../faults/fault.ts'
import type { StoryLine } from '../cluster/narrator.ts'
import type { RunResult } from '../result.ts'
import { calmFor, listKnobs, optionAt } from './scenario-calm.ts'
import { isRecord } from './scenario-shape.ts'
import type { SwarmOptions } from '../swarm.ts'
import { describeSize, runScenario, measureScenario, type Scenario } from './scenario.ts'
import { positionsWith, sliceStory, type Place } from './explain-slice.ts'
import { describeRule } from './explain-rules.ts'
import { describeGroup, Letters } from './explain-values.ts'
import {
  describeAside,
  describeFact,
  describeFault,
  describeLine,
  describeOperation,
  describeTime,
  faultWords,
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
/** The lines of a slice that the explanation shows: the last ones. */
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
  const place = findPlace(violation, lines)
  const withCalls = !violation.rule.startsWith('PAX-')
  const slice =
    place === undefined ? lines.slice(-linesToldMax) : sliceStory(lines, { place, withCalls })
  return { scenario, result, place, slice, lineCount }
}

/** Where a violation is: as it says itself, or else where the run was when it failed. */
function findPlace({ detail }: Violation, lines: readonly StoryLine[]): Place | undefined {
  const { group, position } = detail
  if (typeof group === 'string') {
    const name = latin1(Buffer.from(group, 'hex'))
    // Before the first position there is nothing to tell: then it is the group as a whole.
    const isPlaced = typeof position === 'number' && position > 0
    return { group: name, positions: isPlaced ? [position] : [] }
  }
  const cell = findCell(detail)
  if (cell !== undefined) {
    const name = shardGroup(datastore, cell.shard)
    return { group: name, positions: positionsWith(lines, name, rowKeyBytes(cell.row)) }
  }
  return placeOfLast(lines)
}

/** The cell that a checker of cells names, under whichever name. */
function findCell(
  detail: Violation['detail'],
): { readonly shard: number; readonly row: string } | undefined {
  for (const value of Object.values(detail)) {
    if (!isRecord(value)) continue
    const { shard, row } = value
    if (typeof shard === 'number' && typeof row === 'string' && isUuid(row)) return { shard, row }
  }
  return undefined
}

/** An assertion fails in the middle of a step: the last traced line names its place. */
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
  const told = slice.slice(-linesToldMax)
  const position = place?.positions.length === 1 ? place.positions[0] : undefined
  const story = told.map((line) => ({
    timeMicros: line.timeMicros,
    text: describeLine(line, { letters, position }),
  }))
  const endMicros = violation?.timeMicros ?? Number.POSITIVE_INFINITY
  const asides = strikes(plan.faults, told[0]?.timeMicros ?? 0, endMicros)
  return [
    ...(violation === undefined ? [] : describeViolation(violation, place)),
    '',
    `The run: ${plan.options.nodeCount} nodes; ${describeSize(measureScenario(plan))}.`,
    ...section('Options that are not as usual', describeKnobs(plan.options)),
    ...section('Faults', inOrder(plan.faults).map(describeFault)),
    ...section('Operations', (plan.operations ?? []).map(describeOperation)),
    ...section(`How it came about (${told.length} of ${lineCount} lines)`, [
      ...[...asides, ...story].sort((a, b) => a.timeMicros - b.timeMicros).map(({ text }) => text),
      ...(violation === undefined ? [] : [describeEnd(violation)]),
    ]),
    ...section('Values', letters.legend()),
  ].join('\n')
}

interface TimedText {
  readonly timeMicros: number
  readonly text: string
}

/** Faults between the lines; those from before the first line are in their own section. */
function strikes(
  faults: readonly Fault[],
  fromMicros: number,
  toMicros: number,
): readonly TimedText[] {
  return inOrder(faults)
    .filter(({ atMicros }) => fromMicros <= atMicros && atMicros <= toMicros)
    .map((fault) => ({
      timeMicros: fault.atMicros,
      text: describeAside(fault.atMicros, `strikes: ${faultWords(fault)}`),
    }))
}

function describeEnd({ rule, sentence, timeMicros }: Violation): string {
  return describeAside(timeMicros, `${rule} is broken: ${sentence}`)
}

/** Options that differ from the calm world's, with their values and the usual ones. */
function describeKnobs(options: SwarmOptions): readonly string[] {
  const usual = calmFor(options.nodeCount)
  return listKnobs(options).map(
    (path) => `${path} ${optionAt(options, path)} instead of ${optionAt(usual, path)}`,
  )
}

function describeViolation(violation: Violation, place: Place | undefined): readonly string[] {
  const { rule, sentence, timeMicros, detail } = violation
  const facts = Object.entries(detail).filter(([name]) => !['group', 'position'].includes(name))
  return [
    `${rule}: ${sentence}`,
    `The rule: ${describeRule(rule)}`,
    `When: ${describeTime(timeMicros)} after the start.`,
    ...(place === undefined ? [] : [`Where: ${describePlace(place)}.`]),
    ...facts.flatMap(([name, value]) => describeFact(name, value)).map((line) => `  ${line}`),
  ]
}

function describePlace({ group, positions }: Place): string {
  const where = positions.length === 0 ? '' : `, position ${positions.join(', ')}`
  return `group ${describeGroup(group)}${where}`
}

function section(title: string, lines: readonly string[]): readonly string[] {
  return lines.length === 0 ? [] : ['', `${title}:`, ...lines.map((line) => `  ${line}`)]
}
