/** `sim shrink`: makes a failing seed or scenario small, and writes it down. */
import type { RunPlan } from '../run.ts'
import {
  describeSize,
  buildScenario,
  measureScenario,
  type Scenario,
} from '../scenarios/scenario.ts'
import type { Shrunk } from '../scenarios/shrink.ts'
import { parseCount, parseRule, parseTime, print, refuse, type AddCommand } from './flags.ts'
import { ProgressLine } from './progress-line.ts'
import { isSameFile } from '../../src/adapters/same-file.ts'
import { obstacleTo, readScenario, writeScenario } from './scenario-file.ts'

interface ShrinkFlags {
  readonly seed?: number
  readonly file?: string
  readonly output: string
  readonly time: number
  readonly rules?: readonly string[]
  readonly json: boolean
  readonly quiet: boolean
}

const defaultSeconds = 120

export const addShrink: AddCommand = (program, finish) => {
  program
    .command('shrink')
    .description('leave out all that a failure does not need, and write it as a scenario file')
    .option('--seed <n>', 'the seed that fails', parseCount)
    .option('--file <file>', 'or a scenario that fails: shrinking goes on where it ended')
    .requiredOption('-o, --output <file>', 'where to write the scenario')
    .option('--time <t>', 'stop after this, such as 60s or 10m', parseTime, defaultSeconds)
    .option('--rules <ids...>', 'count violations of these rules only', parseRule)
    .option('--quiet', 'show no progress', false)
    .option('--json', 'print the result as JSON', false)
    .action(async (flags: ShrinkFlags) => {
      finish(await shrinkCommand(flags))
    })
}

interface Source {
  readonly name: string
  readonly plan: RunPlan
  readonly rules: readonly string[] | undefined
}

async function shrinkCommand(flags: ShrinkFlags): Promise<number> {
  const { seed, file, output, json, time } = flags
  if ((seed === undefined) === (file === undefined)) return refuse('give --seed N or --file FILE')
  const source =
    file === undefined ? await fromSeed(seed ?? 0, flags.rules) : await fromFile(file, flags.rules)
  if (typeof source === 'string') return refuse(source)
  if (file !== undefined && (await isSameFile(output, file))) {
    return refuse(`${output} is the scenario that is read; name another file`)
  }
  const obstacle = await obstacleTo(output)
  if (obstacle !== undefined) return refuse(obstacle)
  const startedAt = process.hrtime.bigint()
  const secondsSpent = (): number => Number(process.hrtime.bigint() - startedAt) / 1e9
  const line = new ProgressLine(flags.quiet)
  const { shrink } = await import('../scenarios/shrink.ts')
  const shrunk = await shrink({
    plan: source.plan,
    rules: source.rules,
    isTimeUp: () => secondsSpent() > time,
    onProgress: ({ step, runs, size }) => {
      line.show(
        step,
        `${step}: ${describeSize(size)}, ${runs} runs, ${secondsSpent().toFixed(0)} s`,
      )
    },
  })
  line.end()
  if (shrunk === undefined)
    return refuse(`${source.name} does not fail: there is nothing to shrink`)
  const scenario = withRules(buildScenario(source.name, shrunk.plan, shrunk.result), source.rules)
  await writeScenario(output, scenario)
  const summary = {
    ...measureScenario(shrunk.plan),
    runs: shrunk.runs,
    isMinimal: shrunk.isMinimal,
  }
  if (json) print(JSON.stringify({ file: output, expect: scenario.expect, ...summary }))
  else print(describeShrunk(scenario, shrunk, output))
  return 0
}

function describeShrunk({ expect, plan }: Scenario, shrunk: Shrunk, output: string): string {
  const { runs, isMinimal } = shrunk
  const end = isMinimal ? '' : '\nthe time was up: shrink the file again to go on'
  return `${output}: ${describeSize(measureScenario(plan))}, after ${runs} runs\n${expect.rule ?? ''}: ${expect.sentence ?? ''}${end}`
}

function withRules(scenario: Scenario, rules: readonly string[] | undefined): Scenario {
  return rules === undefined ? scenario : { ...scenario, rules }
}

async function fromSeed(seed: number, rules: readonly string[] | undefined): Promise<Source> {
  const { drawPlan } = await import('../run.ts')
  return { name: `seed ${seed}`, plan: drawPlan(seed), rules }
}

/** The source, or the problem with the file. */
async function fromFile(
  file: string,
  rules: readonly string[] | undefined,
): Promise<Source | string> {
  const read = await readScenario(file)
  if (!read.ok) return read.reason
  const { name, plan } = read.scenario
  return { name, plan, rules: rules ?? read.scenario.rules }
}
