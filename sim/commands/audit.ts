/**
 * `sim audit`: real trips through real processes that are killed at random, and then the reckoning.
 */
import { fileFailure } from '../../src/adapters/file-failure.ts'
import { runAudit, killsText, type AuditResult } from '../audit/run.ts'
import { readTrips, type Trip } from '../audit/trips.ts'
import { exitCodes } from '../result.ts'
import { Ending } from './ending.ts'
import { parseCount, print, refuse, say, type AddCommand } from './flags.ts'
import { parseMutant } from './mutant-flags.ts'
import { withProgram } from './planted.ts'
import { ProgressLine } from './progress-line.ts'

interface AuditFlags {
  readonly seed: number
  readonly seconds: number
  readonly rows: number
  readonly replace?: number
  readonly mutant?: string
  readonly json: boolean
}

/** An hour. */
const secondsMax = 3_600
const rowsDefault = 1_000_000
/** Where stderr is no terminal, a line reports the progress at this interval. */
const msPerLine = 10_000

export const addAudit: AddCommand = (program, finish) => {
  program
    .command('audit')
    .description(
      'load trips through two gateways into three nodes, with an index and two trigger services, kill at random, and account for everything',
    )
    .argument('<FILE>', 'trips as .csv or .csv.gz')
    .option('--seed <n>', 'who is killed when', parseCount, 1)
    .option('--seconds <n>', 'how long processes are killed', parseCount, 60)
    .option('--rows <n>', 'load so many rows at most', parseCount, rowsDefault)
    .option(
      '--replace <seconds>',
      'a node loses its disk about each <seconds> s, and an empty store takes its place',
      parseCount,
    )
    .option('--mutant <id>', 'run processes in which this known bug is planted', parseMutant)
    .option('--json', 'print the result as JSON', false)
    .action(async (file: string, flags: AuditFlags) => {
      finish(await run(file, flags))
    })
}

async function run(file: string, flags: AuditFlags): Promise<number> {
  const { seconds, rows, replace, mutant } = flags
  if (seconds < 1 || seconds > secondsMax) return refuse(`--seconds must be 1 to ${secondsMax}`)
  if (rows < 1) return refuse('--rows must be at least 1')
  if (replace === 0) return refuse('--replace must be at least 1')
  let trips: readonly Trip[]
  try {
    trips = await readTrips(file, rows)
  } catch (error) {
    return refuse(`${file} cannot be read: ${fileFailure(error)}`)
  }
  return withProgram(mutant, (program) => runProgram(program, trips, flags))
}

async function runProgram(
  program: string,
  trips: readonly Trip[],
  { seed, seconds, replace, json }: AuditFlags,
): Promise<number> {
  const ending = new Ending()
  const line = new ProgressLine()
  const onPhase = (text: string): void => {
    line.end()
    say(text)
  }
  const onProgress = (text: string): void => {
    line.show(String(Math.floor(performance.now() / msPerLine)), text)
  }
  try {
    const { signal } = ending
    const replaceSeconds = replace === undefined ? {} : { replaceSeconds: replace }
    const asked = { program, trips, seed, seconds, ...replaceSeconds }
    const result = await runAudit({ ...asked, signal, onPhase, onProgress })
    line.end()
    print(json ? JSON.stringify(result) : describe(result))
    if (result.outcome === 'clean' && replace !== undefined && result.replaced === 0) {
      say('error: no store was replaced: give it more seconds')
      return exitCodes.crash
    }
    return exitCodes[result.outcome]
  } catch (error) {
    line.end()
    if (ending.by === undefined) throw error
    say(`ended by ${ending.by}; nothing was reckoned`)
    return ending.exitCode
  } finally {
    ending.forget()
  }
}

function describe(result: AuditResult): string {
  const { load, trips, violations, violationCount, catchUpSeconds } = result
  const { http, library, failures } = load
  const more = violationCount - violations.length
  const tries = Object.entries(failures).map(([what, count]) => `${count} ${what}`)
  return [
    ...violations,
    ...(more > 0 ? [`and ${more} more`] : []),
    `killed: ${killsText(result.kills)}`,
    ...(result.replaced > 0 ? [`disks lost and stores replaced: ${result.replaced}`] : []),
    `loaded in ${load.seconds.toFixed(1)} s: ${http.cells} over HTTP (${http.perSecond}/s), ${library.cells} by the library (${library.perSecond}/s)`,
    `tries that failed: ${tries.join(', ') || 'none'}`,
    `index and triggers had caught up ${catchUpSeconds.toFixed(1)} s later; handled again: ${result.handledAgain}`,
    `seed ${result.seed}: ${result.outcome}; ${trips} trips, ${2 * trips} cells at each node, ${result.indexEntries} entries of the index, ${result.spans} queries of a span`,
  ].join('\n')
}
