/** `sim replay FILE`: runs a scenario again, and says whether it ends in the same way. */
import { describeViolation } from '../checkers/referee.ts'
import { exitCodes, type RunResult } from '../result.ts'
import {
  describeSize,
  isAsExpected,
  runScenario,
  measureScenario,
  type Scenario,
} from '../scenarios/scenario.ts'
import { print, refuse, say, type AddCommand } from './flags.ts'
import { readScenario } from './scenario-file.ts'

interface ReplayFlags {
  readonly json: boolean
  readonly trace: boolean
}

export const addReplay: AddCommand = (program, finish) => {
  program
    .command('replay')
    .description('run a scenario file again')
    .argument('<file>', 'what shrink or nightly has written')
    .option('--trace', 'write what happens to stderr', false)
    .option('--json', 'print the result as JSON', false)
    .action(async (file: string, flags: ReplayFlags) => {
      finish(await replay(file, flags))
    })
}

async function replay(file: string, flags: ReplayFlags): Promise<number> {
  const read = await readScenario(file)
  if (!read.ok) return refuse(read.reason)
  const { scenario } = read
  const result = await runScenario(scenario, flags.trace ? { watch: say } : {})
  const isSame = isAsExpected(scenario.expect, result)
  if (flags.json) print(JSON.stringify({ ...result, isAsExpected: isSame }))
  else print(describeReplay(scenario, result))
  return exitCodes[result.outcome]
}

function describeReplay(scenario: Scenario, result: RunResult): string {
  const { name, plan, expect } = scenario
  const { outcome, hash, events, commits, simulatedSeconds, violations } = result
  return [
    `${name}: ${describeSize(measureScenario(plan))}`,
    `${outcome}, hash ${hash}, ${events} steps, ${commits} commits, ${simulatedSeconds.toFixed(1)} simulated s`,
    ...violations.map(describeViolation),
    describeVerdict(expect, result),
  ].join('\n')
}

function describeVerdict(expect: Scenario['expect'], result: RunResult): string {
  const expected = [expect.outcome, expect.rule].filter((word) => word !== undefined).join(' ')
  if (!isAsExpected(expect, result)) return `not as expected: this was to be ${expected}`
  if (expect.hash === undefined) return 'as expected'
  if (expect.hash === result.hash) return 'as expected, step for step'
  return `as expected, ${expected}, but by another course: the code is not the same`
}
