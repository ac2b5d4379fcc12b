/**
 * `sim processes`: the fault plan of a seed, on real daemons. With `--mutant` these are built from a
 * copy of the sources in which a known bug is planted: a check that never fails shows nothing.
 */
import { existsSync } from 'node:fs'
import { mkdtemp, open, rm, type FileHandle } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { historyText } from '../history/lines.ts'
import type { Mutant } from '../mutant.ts'
import { build, plant } from '../mutant-copy.ts'
import { mutants } from '../mutants.ts'
import { drawProcessPlan } from '../processes/plan.ts'
import { runOnProcesses, type ProcessProgress, type ProcessRunResult } from '../processes/run.ts'
import { exitCodes } from '../result.ts'
import { parseCount, print, refuse, say, type AddCommand } from './flags.ts'
import { ProgressLine } from './progress-line.ts'

interface ProcessFlags {
  readonly seed: number
  readonly seconds: number
  readonly mutant?: string
  readonly history?: string
  readonly json: boolean
}

/** A day. */
const secondsMax = 86_400
/** Where stderr is no terminal, so often a line tells how far it is. */
const secondsPerLine = 15

export const addProcesses: AddCommand = (program, finish) => {
  program
    .command('processes')
    .description('carry the faults of a seed out on three real nodes, and judge the history')
    .option('--seed <n>', 'which faults', parseCount, 1)
    .option('--seconds <n>', 'how long they strike', parseCount, 60)
    .option('--mutant <id>', 'run nodes in which this known bug is planted')
    .option('--history <file>', 'write what clients were told as JSON lines')
    .option('--json', 'print the result as JSON', false)
    .action(async (flags: ProcessFlags) => {
      finish(await run(flags))
    })
}

async function run(flags: ProcessFlags): Promise<number> {
  const { seconds, mutant: id } = flags
  if (seconds < 1 || seconds > secondsMax) return refuse(`--seconds must be 1 to ${secondsMax}`)
  const mutant = mutants.find((one) => one.id === id)
  if (id !== undefined && mutant === undefined) return refuse(`no mutant is named ${id}`)
  const file = flags.history === undefined ? undefined : await openToWrite(flags.history)
  if (typeof file === 'string') return refuse(file)
  const ending = new Ending()
  try {
    if (mutant === undefined) return await runProgram(builtProgram(), flags, file, ending)
    return await inMutant(mutant, (program) => runProgram(program, flags, file, ending))
  } catch (error) {
    if (ending.by === undefined) throw error
    say(`ended by ${ending.by}; nothing was judged`)
    return ending.exitCode
  } finally {
    ending.forget()
    await file?.close()
  }
}

async function inMutant(
  mutant: Mutant,
  use: (program: string) => Promise<number>,
): Promise<number> {
  const copy = await mkdtemp(join(tmpdir(), `trilithon-${mutant.id}-`))
  try {
    say(`planting ${mutant.id}: ${mutant.title}`)
    await plant(mutant, copy)
    await build(copy)
    return await use(join(copy, 'dist', 'src', 'cli', 'main.js'))
  } finally {
    await rm(copy, { recursive: true, force: true })
  }
}

function builtProgram(): string {
  return fileURLToPath(new URL('../../src/cli/main.js', import.meta.url))
}

/** Before the run, so that a minute's history is not lost for a name that cannot be written. */
async function openToWrite(path: string): Promise<FileHandle | string> {
  try {
    return await open(path, 'w')
  } catch (error) {
    return `${path} cannot be written: ${error instanceof Error ? error.message : String(error)}`
  }
}

async function runProgram(
  program: string,
  { seed, seconds, json }: ProcessFlags,
  file: FileHandle | undefined,
  ending: Ending,
): Promise<number> {
  if (!existsSync(program)) return refuse(`${program} is missing: npm run build`)
  const plan = drawProcessPlan(seed, seconds)
  const line = new ProgressLine()
  let result: ProcessRunResult
  try {
    result = await runOnProcesses({
      ...{ plan, program, signal: ending.signal },
      onPhase: (text) => {
        line.end()
        say(text)
      },
      onProgress: (progress) => {
        const topic = String(Math.floor(progress.seconds / secondsPerLine))
        line.show(topic, describeProgress(progress, seconds))
      },
    })
  } finally {
    line.end()
  }
  await file?.writeFile(historyText(result.history))
  const { history: told, ...figures } = result
  print(json ? JSON.stringify({ ...figures, plan }) : describe(result))
  if (told.length === 0) return refuse('nothing was asked: give it more seconds')
  return exitCodes[result.outcome]
}

const exitCodeBySignal = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const

/** Signals that ask this process to end end the run, which then takes what it started with it. */
class Ending {
  readonly #abort = new AbortController()
  #by: keyof typeof exitCodeBySignal | undefined

  constructor() {
    for (const name of signalNames) process.on(name, this.#end)
  }

  get signal(): AbortSignal {
    return this.#abort.signal
  }

  get by(): string | undefined {
    return this.#by
  }

  get exitCode(): number {
    return this.#by === undefined ? 0 : exitCodeBySignal[this.#by]
  }

  forget(): void {
    for (const name of signalNames) process.off(name, this.#end)
  }

  /** Asked again, it is under way already. */
  readonly #end = (name: NodeJS.Signals): void => {
    this.#by ??= signalNames.find((one) => one === name)
    this.#abort.abort(new Error(`ended by ${name}`))
  }
}

const signalNames = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

function describeProgress({ seconds, calls, faults }: ProcessProgress, of: number): string {
  return `${seconds} of ${of} s, ${calls} calls, struck: ${counted(faults)}`
}

function counted(figures: Readonly<Record<string, number>>): string {
  const counts = Object.entries(figures).map(([name, count]) => `${count} ${name}`)
  return counts.join(', ') || 'none'
}

function describe(result: ProcessRunResult): string {
  const { seed, seconds, outcome, operations, acknowledged, judgedInSeconds, neverStruck } = result
  const missing = neverStruck.length === 0 ? '' : `; none of: ${neverStruck.join(', ')}`
  return [
    ...result.violations,
    `faults: ${counted(result.faults)}${missing}`,
    `errors: ${counted(result.codes)}`,
    `seed ${seed}: ${outcome} in ${seconds} s, ${operations} operations, ${acknowledged} acknowledged, judged in ${judgedInSeconds.toFixed(2)} s`,
  ].join('\n')
}
