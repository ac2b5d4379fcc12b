/**
 * `sim processes`: the fault plan of a seed, on real daemons. With `--mutant` these are built from
 * a copy of the sources in which a known bug is planted: a check that never fails shows nothing.
 */
import { open, type FileHandle } from 'node:fs/promises'
import { historyText } from '../history/lines.ts'
import { drawProcessPlan } from '../processes/plan.ts'
import { runOpenLoad, type OpenLoadResult } from '../processes/open-load.ts'
import { runOnProcesses, type ProcessProgress, type ProcessRunResult } from '../processes/run.ts'
import { exitCodes } from '../result.ts'
import { Ending } from './ending.ts'
import { parseCount, print, refuse, say, type AddCommand } from './flags.ts'
import { parseMutant } from './mutant-flags.ts'
import { withProgram } from './planted.ts'
import { ProgressLine } from './progress-line.ts'

interface ProcessFlags {
  readonly seed: number
  readonly seconds: number
  readonly mutant?: string
  readonly history?: string
  readonly load?: number
  readonly replace?: number
  readonly json: boolean
}

/** A day. */
const secondsMax = 86_400
/** Where stderr is no terminal, a line reports the progress at this interval. */
const secondsPerLine = 15

export const addProcesses: AddCommand = (program, finish) => {
  program
    .command('processes')
    .description('carry the faults of a seed out on three real nodes, and judge the history')
    .option('--seed <n>', 'which faults', parseCount, 1)
    .option('--seconds <n>', 'how long they strike', parseCount, 60)
    .option('--mutant <id>', 'run nodes in which this known bug is planted', parseMutant)
    .option('--history <file>', 'write what clients were told as JSON lines')
    .option(
      '--load <rate>',
      'offer <rate> puts a second, answered or not, instead of faults',
      parseCount,
    )
    .option(
      '--replace <seconds>',
      'a node loses its disk about each <seconds> s, and an empty store takes its place',
      parseCount,
    )
    .option('--json', 'print the result as JSON', false)
    .action(async (flags: ProcessFlags) => {
      finish(await run(flags))
    })
}

async function run(flags: ProcessFlags): Promise<number> {
  const { seconds, mutant } = flags
  if (seconds < 1 || seconds > secondsMax) return refuse(`--seconds must be 1 to ${secondsMax}`)
  if (flags.replace === 0) return refuse('--replace must be at least 1')
  if (flags.load === 0) return refuse('--load must be at least 1')
  if (flags.load !== undefined && flags.history !== undefined) {
    return refuse('--load records no history')
  }
  if (flags.load !== undefined && flags.replace !== undefined) {
    return refuse('--load goes without faults, --replace among them')
  }
  const file = flags.history === undefined ? undefined : await openToWrite(flags.history)
  if (typeof file === 'string') return refuse(file)
  const ending = new Ending()
  try {
    return await withProgram(mutant, (program) =>
      flags.load === undefined
        ? runProgram(program, flags, file, ending)
        : runLoad(program, flags, flags.load, ending),
    )
  } catch (error) {
    if (ending.by === undefined) throw error
    say(`ended by ${ending.by}; nothing was judged`)
    return ending.exitCode
  } finally {
    ending.forget()
    await file?.close()
  }
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
  { seed, seconds, replace, json }: ProcessFlags,
  file: FileHandle | undefined,
  ending: Ending,
): Promise<number> {
  const plan = drawProcessPlan(seed, seconds)
  const line = new ProgressLine()
  let result: ProcessRunResult
  try {
    result = await runOnProcesses({
      plan,
      program,
      ...(replace !== undefined && { replaceSeconds: replace }),
      signal: ending.signal,
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
  if (result.outcome === 'clean' && result.acknowledged === 0) {
    say('error: nothing was acknowledged, so nothing was judged')
    return exitCodes.crash
  }
  if (result.outcome === 'clean' && replace !== undefined && result.replaced === 0) {
    say('error: no store was replaced: give it more seconds')
    return exitCodes.crash
  }
  if (result.outcome === 'clean' && Object.keys(result.faults).length === 0) {
    say('error: no fault struck: give it more seconds')
    return exitCodes.crash
  }
  return exitCodes[result.outcome]
}

async function runLoad(
  program: string,
  { seed, seconds, json }: ProcessFlags,
  rate: number,
  { signal }: Ending,
): Promise<number> {
  const result = await runOpenLoad({ seed, rate, seconds, program, signal, onPhase: say })
  print(json ? JSON.stringify(result) : describeLoad(result))
  return exitCodes[result.outcome]
}

function describeLoad(result: OpenLoadResult): string {
  const { seed, rate, seconds, outcome, asked, acknowledged, refused, late } = result
  return [
    ...result.violations,
    `errors: ${counted(result.codes)}`,
    `seed ${seed}: ${outcome} in ${seconds} s at ${rate} puts a second, ${asked} asked, ${acknowledged} acknowledged, ${refused} refused, ${late} late`,
  ].join('\n')
}

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
    ...(result.replaced > 0 ? [`disks lost and stores replaced: ${result.replaced}`] : []),
    `errors: ${counted(result.codes)}`,
    `seed ${seed}: ${outcome} in ${seconds} s, ${operations} operations, ${acknowledged} acknowledged, judged in ${judgedInSeconds.toFixed(2)} s`,
  ].join('\n')
}
