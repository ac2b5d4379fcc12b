/** `sim history check`: judges a history of JSON lines, from wherever it comes. */
import { readFile } from 'node:fs/promises'
import { Option } from 'commander'
import type { Anomaly } from '../history/anomaly.ts'
import { checkHistory, explain, type Verdict } from '../history/check.ts'
import type { Promised } from '../history/edges.ts'
import type { History } from '../history/operation.ts'
import { parseHistory } from '../history/parse.ts'
import { exitCodes } from '../result.ts'
import { print, refuse, say, type AddCommand } from './flags.ts'

interface HistoryFlags {
  readonly promised: Promised
  readonly json: boolean
}

/** Of lines that are no operations so many are told. */
const problemsToldMax = 20
const promises: readonly Promised[] = ['serializable', 'strong-session', 'strict-serializable']

export const addHistory: AddCommand = (program, finish) => {
  program
    .command('history')
    .description('judge what clients were told')
    .command('check <file>')
    .description('look for anomalies in a history of JSON lines')
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
    return refuse(`${file} cannot be read: ${error instanceof Error ? error.message : ''}`)
  }
  const parsed = parseHistory(text)
  if (!parsed.ok) {
    const { problems } = parsed
    for (const { line, reason } of problems.slice(0, problemsToldMax)) {
      say(`${file}:${line}: ${reason}`)
    }
    return refuse(`${problems.length} lines of ${file} are no operations`)
  }
  const { history } = parsed
  const verdict = checkHistory(history, { promised })
  print(json ? JSON.stringify(verdict) : describeVerdict(verdict, history))
  return verdict.anomalies.length === 0 ? exitCodes.clean : exitCodes.safety
}

export function describeVerdict(verdict: Verdict, history: History): string {
  const { anomalies, operationCount, acknowledgedCount } = verdict
  const counts = `${operationCount} operations, ${acknowledgedCount} acknowledged`
  if (anomalies.length === 0) return `no anomaly in ${counts}`
  const told = anomalies.map((anomaly: Anomaly) => explain(anomaly, history))
  return [...told, `${anomalies.length} anomalies in ${counts}`].join('\n')
}
