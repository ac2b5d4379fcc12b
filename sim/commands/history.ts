/** `sim history FILE`: judges a history of JSON lines, from wherever it comes. */
import { readFile } from 'node:fs/promises'
import { Option } from 'commander'
import { fileFailure } from '../../src/adapters/file-failure.ts'
import type { Anomaly } from '../history/anomaly.ts'
import { checkHistory, explain, type Verdict } from '../history/check.ts'
import type { Promised } from '../history/edges.ts'
import type { History } from '../history/operation.ts'
import { parseHistory, type LineProblem } from '../history/parse.ts'
import { exitCodes } from '../result.ts'
import { print, refuse, type AddCommand } from './flags.ts'

interface HistoryFlags {
  readonly promised: Promised
  readonly json: boolean
}

const promises: readonly Promised[] = ['serializable', 'strong-session', 'strict-serializable']

export const addHistory: AddCommand = (program, finish) => {
  program
    .command('history <file>')
    .description('look for anomalies in what clients were told, a history of JSON lines')
    .addOption(
      new Option('--promised <level>', 'what the history must keep')
        .choices(promises)
        .default('strict-serializable'),
    )
    .option('--json', 'print the verdict as JSON', false)
    .action(async (file: string, flags: HistoryFlags) => {
      finish(await check(file, flags))
    })
}

async function check(file: string, { promised, json }: HistoryFlags): Promise<number> {
  let text: string
  try {
    text = await readFile(file, 'utf8')
  } catch (error) {
    return refuse(`${file} cannot be read: ${fileFailure(error)}`)
  }
  const parsed = parseHistory(text)
  if (!parsed.ok) return refuse(describeProblems(file, parsed.problems))
  const { history } = parsed
  if (history.length === 0) return refuse(`${file} holds no operation`)
  const verdict = checkHistory(history, { promised })
  if (verdict.acknowledgedCount === 0) {
    return refuse(`no operation of ${file} was acknowledged: there is nothing to judge`)
  }
  print(json ? JSON.stringify(verdict) : describeVerdict(verdict, history))
  return verdict.anomalies.length === 0 ? exitCodes.clean : exitCodes.safety
}

/** The first one, with its line; of the others how many they are. */
function describeProblems(file: string, problems: readonly LineProblem[]): string {
  const [first] = problems
  const rest = problems.length - 1
  const more = rest === 0 ? '' : ` (and ${rest} more ${rest === 1 ? 'line' : 'lines'})`
  return `${file}:${first?.line ?? 0}: ${first?.reason ?? ''}${more}`
}

export function describeVerdict(verdict: Verdict, history: History): string {
  const { anomalies, operationCount, acknowledgedCount } = verdict
  const counts = `${operationCount} operations, ${acknowledgedCount} acknowledged`
  if (anomalies.length === 0) return `no anomaly in ${counts}`
  const told = anomalies.map((anomaly: Anomaly) => explain(anomaly, history))
  return [...told, `${anomalies.length} anomalies in ${counts}`].join('\n')
}
