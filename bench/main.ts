/** `npm run bench -- …`: one verb a bench. Figures on stdout, talk on stderr. */
import { Command, InvalidArgumentError, Option } from 'commander'
import { benchCommits, type CommitsReport } from './commits.ts'
import { benchRoundTrips, type RoundTripsReport } from './round-trips.ts'

const program = new Command('bench').description('Measure Trilithon on this machine.')

program
  .command('commits')
  .description('durable single-cell puts through three node processes on loopback')
  .option('--clients <n>', 'requests under way at once', positive, 64)
  .option('--seconds <n>', 'how long to measure, after two seconds of warm-up', positive, 10)
  .option('--value-bytes <n>', 'size of the body written', positive, 100)
  .option('--json', 'print the report as JSON')
  .action(async (options: CommitsFlags) => {
    const report = await benchCommits(options, (second, backlog) => {
      const text = backlog.map((bytes) => `${Math.round(bytes / 1024)} KiB`).join(' ')
      process.stderr.write(`second ${second}: backlog ${text}\n`)
    })
    process.stdout.write(options.json === true ? `${JSON.stringify(report)}\n` : describe(report))
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

function describe(report: CommitsReport): string {
  const { cpuPer1000 } = report
  const cpu = [...cpuPer1000.nodes, cpuPer1000.client].map((used) => used.toFixed(3))
  return [
    `${report.clients} clients, ${report.seconds} s${report.isQuick ? ' (a quick run)' : ''}`,
    `commits/s, drained   ${report.commitsPerSecond.toFixed(0)}`,
    `p50 / p95 / p99 ms   ${report.p50Ms.toFixed(2)} / ${report.p95Ms.toFixed(2)} / ${report.p99Ms.toFixed(2)}`,
    `CPU s per 1,000      nodes ${cpu.slice(0, 3).join(' ')}, client ${cpu[3] ?? ''}`,
    `failures             ${report.failures}`,
    '',
  ].join('\n')
}

function describeTrips({ regions, distancesMs, figures }: RoundTripsReport): string {
  const cells = (of: readonly (string | number)[]): string =>
    of
      .map((cell, column) => (column === 0 ? `${cell}`.padEnd(22) : `${cell}`.padStart(10)))
      .join('')
  const distances = distancesMs.map((row) => row.join(' ')).join(' / ')
  return [
    `${regions} regions, there and back in ms: ${distances}`,
    'Round trips are to the nearest majority of the region that asks; costs on average, with what follows.',
    cells(['', 'trips', 'at most', 'ms', 'messages', 'bytes', 'flushes']),
    ...Object.entries(figures).map(([name, { roundTrips, roundTripsMax, ms, ...rest }]) =>
      cells([name, roundTrips, roundTripsMax, ms, rest.messages, rest.bytes, rest.flushes]),
    ),
    '',
  ].join('\n')
}

await program.parseAsync()
