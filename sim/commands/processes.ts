/** `sim processes`: the fault plan of a seed, on real daemons. */
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { historyText } from '../history/lines.ts'
import { drawProcessPlan } from '../processes/plan.ts'
import { runOnProcesses, type ProcessRunResult } from '../processes/run.ts'
import { exitCodes } from '../result.ts'
import { parseCount, print, refuse, say, type AddCommand } from './flags.ts'

interface ProcessFlags {
  readonly seed: number
  readonly seconds: number
  readonly history?: string
  readonly json: boolean
}

export const addProcesses: AddCommand = (program, finish) => {
  program
    .command('processes')
    .description('carry the faults of a seed out on three real nodes, and judge the history')
    .option('--seed <n>', 'which faults', parseCount, 1)
    .option('--seconds <n>', 'how long they strike', parseCount, 60)
    .option('--history <file>', 'write what clients were told as JSON lines')
    .option('--json', 'print the result as JSON', false)
    .action(async (flags: ProcessFlags) => {
      finish(await run(flags))
    })
}

async function run({ seed, seconds, history, json }: ProcessFlags): Promise<number> {
  const program = fileURLToPath(new URL('../../src/cli/main.js', import.meta.url))
  if (!existsSync(program)) return refuse(`${program} is missing: npm run build`)
  const plan = drawProcessPlan(seed, seconds)
  const abort = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      abort.abort(new Error(`ended by ${signal}`))
    })
  }
  const result = await runOnProcesses({ plan, program, onPhase: say, signal: abort.signal })
  if (history !== undefined) await writeFile(history, historyText(result.history))
  const { history: told, ...figures } = result
  print(json ? JSON.stringify({ ...figures, plan }) : describe(result))
  if (told.length === 0) return refuse('nothing was asked: give it more seconds')
  return exitCodes[result.outcome]
}

function describe(result: ProcessRunResult): string {
  const { seed, seconds, outcome, operations, acknowledged, judgedInSeconds } = result
  const counts = (figures: Readonly<Record<string, number>>): string =>
    Object.entries(figures)
      .map(([name, count]) => `${count} ${name}`)
      .join(', ') || 'none'
  return [
    ...result.violations,
    `faults: ${counts(result.faults)}`,
    `errors: ${counts(result.codes)}`,
    `seed ${seed}: ${outcome} in ${seconds} s, ${operations} operations, ${acknowledged} acknowledged, judged in ${judgedInSeconds.toFixed(2)} s`,
  ].join('\n')
}
