/** `npm run bench -- …`: one verb a bench. Figures on stdout, talk on stderr. */
import { Command, InvalidArgumentError } from 'commander'
import { benchCommits, type CommitsReport } from './commits.ts'

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

await program.parseAsync()
