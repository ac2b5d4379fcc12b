/** `npm run bench -- …`: one verb a bench. Figures on stdout, talk on stderr. */
import { writeFile } from 'node:fs/promises'
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander'
import {
  benchCompare,
  peers,
  type CompareOptions,
  type PeerName,
  type Progress,
} from './compare/compare.ts'
import { pageOf } from './compare/page.ts'
import { benchCommits } from './commits.ts'
import { describeCommits, describeCompare, describeTrips } from './describe.ts'
import { benchRoundTrips } from './round-trips.ts'

const usageExitCode = 2
const stoppedExitCode = 130

const program = new Command('bench')
  .description('Measure Trilithon on this machine.')
  .exitOverride()

program
  .command('commits')
  .description('durable single-cell puts through three node processes on loopback')
  .option('--clients <n>', 'requests under way at once', positive, 64)
  .option('--seconds <n>', 'how long to measure, after ten seconds of warm-up', positive, 10)
  .option('--value-bytes <n>', 'size of the body written', positive, 100)
  .option('--json', 'print the report as JSON')
  .action(async (options: CommitsFlags) => {
    const report = await benchCommits(options, (second, backlog) => {
      const text = backlog.map((bytes) => `${Math.round(bytes / 1024)} KiB`).join(' ')
      process.stderr.write(`second ${second}: backlog ${text}\n`)
    })
    process.stdout.write(
      options.json === true ? `${JSON.stringify(report)}\n` : describeCommits(report),
    )
    if (report.failures > 0) process.exitCode = 1
  })

program
  .command('round-trips')
  .description('what commits and reads cost between regions, in the simulated world')
  .addOption(new Option('--regions <n>', 'how many').choices(['3', '5']).default('3'))
  .option('--json', 'print the report as JSON')
  .action(async ({ regions, json }: { readonly regions: string; readonly json?: boolean }) => {
    const report = await benchRoundTrips(regions === '5' ? 5 : 3)
    process.stdout.write(json === true ? `${JSON.stringify(report)}\n` : describeTrips(report))
  })

program
  .command('compare')
  .description('commits and current reads beside other systems, in alternating rounds of one run')
  .option('--against <names>', 'etcd, postgres', peerNames, ['etcd', 'postgres'])
  .option(
    '--clients <counts>',
    'requests under way at once, one after the other',
    counts,
    [1, 16, 64, 256],
  )
  .option('--rounds <n>', 'how often each is measured', positive, 3)
  .option('--seconds <n>', 'of each measurement; from 60 on it counts', positive, 60)
  .option('--page <file>', 'write an HTML page with charts')
  .option('--json', 'print the report as JSON')
  .action(async ({ page, json, ...options }: CompareFlags) => {
    const stopping = new AbortController()
    for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => stopping.abort())
    const { signal } = stopping
    const watcher = { signal, onMissing: sayMissing, onRun: sayRun }
    const report = await benchCompare(options, watcher).catch((error: unknown) => {
      // What is running is ended either way, and its folders are removed.
      if (!signal.aborted) throw error
      process.stderr.write('stopped; nothing is reported\n')
    })
    if (report === undefined) return void (process.exitCode = stoppedExitCode)
    if (page !== undefined) await writeFile(page, await pageOf(report))
    process.stdout.write(json === true ? `${JSON.stringify(report)}\n` : describeCompare(report))
    if (report.runs.some(({ failures }) => failures > 0)) process.exitCode = 1
  })

interface CompareFlags extends CompareOptions {
  readonly page?: string
  readonly json?: boolean
}

interface CommitsFlags {
  readonly clients: number
  readonly seconds: number
  readonly valueBytes: number
  readonly json?: boolean
}

function positive(text: string): number {
  const value = Number(text)
  if (!Number.isSafeInteger(value) || value < 1) {
    throw new InvalidArgumentError('a whole number of 1 or more is wanted')
  }
  return value
}

function counts(text: string): number[] {
  return text.split(',').map(positive)
}

function peerNames(text: string): PeerName[] {
  return text.split(',').map((name) => {
    if (name === 'etcd' || name === 'postgres') return name
    throw new InvalidArgumentError(`${Object.keys(peers).join(' and ')} can be compared with`)
  })
}

function sayMissing(name: string, install: string): void {
  process.stderr.write(`${name} is not on this machine and is left out: ${install}\n`)
}

function sayRun({ done, all, run }: Progress): void {
  const { round, system, clients, operation, perSecond, backlogBytes } = run
  const backlog = Math.max(0, ...backlogBytes) / 1024
  const most = backlog > 0 ? `, backlog at most ${backlog.toFixed(0)} KiB` : ''
  process.stderr.write(
    `${done} of ${all}: round ${round + 1}, ${clients} clients, ${system} ${perSecond.toFixed(0)} ${operation}/s${most}\n`,
  )
}

try {
  await program.parseAsync()
} catch (error) {
  if (!(error instanceof CommanderError)) throw error
  process.exitCode = error.exitCode === 0 ? 0 : usageExitCode
}
