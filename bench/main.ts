/** `npm run bench -- …`: one verb a bench. Figures on stdout, talk on stderr. */
import { fileURLToPath } from 'node:url'
import { Command, CommanderError, Option } from 'commander'
import { benchBodies, describeBodies } from './bodies/bodies.ts'
import { benchCompare, type CompareOptions } from './compare/compare.ts'
import { checkPlace, writePage } from './compare/page.ts'
import { buildIn, describeBuild, stampedWith, type Build } from './build.ts'
import { benchBuilds, type BuildsOptions } from './builds.ts'
import { benchCommits, type CommitsOptions } from './commits.ts'
import { benchDamage, hasFailed, stepNames, type DamageOptions } from './damage/damage.ts'
import { describeDamage, describeStep } from './damage/describe.ts'
import {
  describeBuilds,
  describeCommits,
  describeCompare,
  describeQueues,
  describeScale,
  describeSchemaless,
  describeTrips,
  describeYcsb,
} from './describe.ts'
import {
  clientCount,
  clientCounts,
  damageSteps,
  fours,
  groupCounts,
  operations,
  part,
  peerNames,
  positive,
  rowsPerGroup,
  seconds,
  shardsOf,
  warmUp,
  workloads,
} from './flags.ts'
import { shardCountMax } from '../src/cells/datastore-form.ts'
import { CliError } from '../src/cli/exit.ts'
import { strict } from '../src/cli/strict.ts'
import { BenchError } from './common.ts'
import { benchGateway, describeGateway, type GatewayOptions } from './gateway.ts'
import { nothingMeasured } from './nothing-measured.ts'
import { benchPlacement, describePlacement } from './placement.ts'
import { benchQueues, type QueuesOptions } from './queues/queues.ts'
import { benchRoundTrips } from './round-trips.ts'
import { benchOverload, describeOverload, type OverloadOptions } from './overload/overload.ts'
import { writeOverloadPage } from './overload/page.ts'
import {
  benchComparison,
  describeComparison,
  type ComparisonOptions,
} from './comparison/comparison.ts'
import { benchLifetime, describeLifetime, type LifetimeOptions } from './lifetime/lifetime.ts'
import { writeReturnsPage } from './returns/page.ts'
import { benchReturns, describeReturns, type ReturnsOptions } from './returns/returns.ts'
import { benchRebalance, describeRebalance, type RebalanceOptions } from './rebalance/rebalance.ts'
import {
  benchReplacement,
  describeReplacement,
  type ReplacementOptions,
} from './replacement/replacement.ts'
import { benchScale, type ScaleOptions } from './scale/scale.ts'
import { benchSchemaless, type SchemalessOptions } from './schemaless/schemaless.ts'
import { buildsTalk, commitsTalk, compareTalk, scaleTalk, ycsbTalk } from './talk.ts'
import { benchYcsb, type YcsbOptions } from './ycsb/ycsb.ts'

const failedExitCode = 1
const usageExitCode = 2
const stoppedExitCode = 130

/** When the run began: it may take hours, and the sources go on. */
let build: Build | undefined

const program = new Command('bench')
  .description('Measure Trilithon on this machine.')
  .exitOverride()
  .hook('preAction', async () => {
    build = await buildIn(fileURLToPath(new URL('.', import.meta.url)))
  })

program
  .command('commits')
  .description('durable single-cell puts through three node processes on loopback')
  .option('--clients <n>', 'requests under way at once', clientCount, 64)
  .option('--seconds <n>', 'how long to measure, after ten seconds of warm-up', positive, 10)
  .option('--value-bytes <n>', 'size of the body written', positive, 100)
  .option('--one-group', 'all in one entity group, instead of all over 4,096')
  .option('--json', 'print the report as JSON')
  .action(async (options: CommitsFlags) => {
    const report = await untilStopped((signal) => benchCommits(options, { signal, ...commitsTalk }))
    if (report === undefined) return
    print(report, options, describeCommits)
    if (report.failures > 0) process.exitCode = failedExitCode
  })

program
  .command('builds <folder>')
  .description(
    'commits of this build beside those of another checkout, in short slices that take turns',
  )
  .option('--clients <n>', 'requests under way at once', clientCount, 64)
  .option('--seconds <n>', 'of each slice; from 60 in all slices on it counts', seconds, 3)
  .option('--slices <n>', 'of each build', positive, 24)
  .option('--warm-up <n>', 'seconds of each build before', seconds, 12)
  .option('--rest <n>', 'seconds after each slice, for what its nodes still apply', seconds, 6)
  .option('--one-group', 'all in one entity group, instead of all over 4,096')
  .addOption(
    new Option('--log-store <kind>', "where this build's logs lie").choices(['leveldb', 'files']),
  )
  .option('--json', 'print the report as JSON')
  .action(async (folder: string, { json, ...options }: BuildsOptions & JsonFlag) => {
    const report = await untilStopped((signal) =>
      benchBuilds(folder, options, { signal, ...buildsTalk }),
    )
    if (report === undefined) return
    print(report, { json }, describeBuilds)
    if (report.failures > 0) process.exitCode = failedExitCode
  })

program
  .command('bodies <files...>')
  .description('what packing bodies of real rows saves and costs (.jsonl or .csv, also .gz)')
  .option('--rounds <n>', 'how often each is measured', positive, 7)
  .option('--json', 'print the report as JSON')
  .action(async (files: readonly string[], { rounds, json }: JsonFlag & { rounds: number }) => {
    print(await benchBodies({ files, rounds }), { json }, describeBodies)
  })

program
  .command('gateway')
  .description('cells over HTTP and the library, through a gateway and straight to the nodes')
  .option('--clients <n>', 'requests under way at once', clientCount, 64)
  .option('--seconds <n>', 'of each round', seconds, 10)
  .option('--rounds <n>', 'of each way and kind, after one that is not counted', positive, 3)
  .option('--json', 'print the report as JSON')
  .action(async ({ json, ...options }: GatewayOptions & JsonFlag) => {
    const report = await untilStopped((signal) => benchGateway(options, signal))
    if (report === undefined) return
    print(report, { json }, describeGateway)
    if (report.runs.some(({ failures }) => failures > 0)) process.exitCode = failedExitCode
  })

program
  .command('round-trips')
  .description('what commits and reads cost between regions, in the simulated world')
  .addOption(new Option('--regions <n>', 'how many').choices(['3', '5']).default('3'))
  .option('--json', 'print the report as JSON')
  .action(async ({ regions, json }: { readonly regions: string } & JsonFlag) => {
    print(await benchRoundTrips(regions === '5' ? 5 : 3), { json }, describeTrips)
  })

program
  .command('placement')
  .description(
    'what a commit costs where the application chooses the region, in the simulated world',
  )
  .option('--json', 'print the report as JSON')
  .action(async ({ json }: JsonFlag) => {
    print(await benchPlacement(), { json }, describePlacement)
  })

program
  .command('compare')
  .description('commits and current reads beside other systems, in alternating rounds of one run')
  .option('--against <names>', 'etcd, etcd-go, postgres', peerNames, ['etcd', 'postgres'])
  .option('--operations <names>', 'commits, reads', operations, ['commits', 'reads'])
  .option(
    '--clients <counts>',
    'requests under way at once, one after the other',
    clientCounts,
    [1, 16, 64, 256],
  )
  .option('--rounds <n>', 'how often each is measured', positive, 3)
  .option('--seconds <n>', 'of each measurement; from 60 on it counts', positive, 60)
  .option('--page <file>', 'write an HTML page with charts')
  .option('--json', 'print the report as JSON')
  .action(async ({ page, json, ...options }: CompareFlags) => {
    if (page !== undefined) await checkPlace(page)
    const report = await untilStopped((signal) => benchCompare(options, { signal, ...compareTalk }))
    if (report === undefined) return
    print(report, { json }, describeCompare)
    const hasFailures = report.runs.some(({ failures }) => failures > 0)
    if (hasFailures || report.failed.length > 0) process.exitCode = failedExitCode
    if (page !== undefined) await writePage(page, stampedWith(build, report))
  })

program
  .command('scale')
  .description(
    'one node of many groups beside one of few: its start, its memory, costs of its work',
  )
  .option(
    '--groups <counts>',
    'entity groups, a data folder for each count; 1000000 is filled in minutes',
    groupCounts,
    [10_000, 100_000],
  )
  .option('--rows-per-group <n>', 'rows that each of them is filled with', rowsPerGroup, 1)
  .option('--clients <n>', 'requests under way at once', clientCount, 64)
  .option('--rounds <n>', 'starts of each, and slices of each kind of work', positive, 5)
  .option('--seconds <n>', 'of each slice; from 60 in all rounds on it counts', seconds, 12)
  .option('--warm-up <n>', 'seconds of each kind of work before', warmUp, 5)
  .option('--keep <folder>', 'keep what was filled there, and take what is there')
  .option('--json', 'print the report as JSON')
  .action(async ({ json, ...options }: ScaleOptions & JsonFlag) => {
    const report = await untilStopped((signal) => benchScale(options, scaleTalk(signal)))
    if (report === undefined) return
    print(report, { json }, describeScale)
    if (report.slices.some(({ failures }) => failures > 0)) process.exitCode = failedExitCode
  })

program
  .command('ycsb')
  .description('core workloads of YCSB on typed tables, through three node processes on loopback')
  .option('--workloads <names>', 'a, b, e', workloads, ['a', 'b', 'e'])
  .option('--records <n>', 'of 1,000 bytes, loaded before', positive, 10_000)
  .option('--clients <n>', 'requests under way at once', clientCount, 64)
  .option('--seconds <n>', 'of each workload; from 60 on it counts', seconds, 60)
  .option('--warm-up <n>', 'seconds of each workload before', warmUp, 10)
  .option('--json', 'print the report as JSON')
  .action(async ({ json, ...options }: YcsbOptions & JsonFlag) => {
    const report = await untilStopped((signal) => benchYcsb(options, ycsbTalk(signal)))
    if (report === undefined) return
    print(report, { json }, describeYcsb)
    if (report.workloads.some(({ failures }) => failures > 0)) process.exitCode = failedExitCode
  })

program
  .command('queues')
  .description(
    'messages from group to group, from sending to handled, through three node processes',
  )
  .option('--clients <n>', 'pairs of groups at once', clientCount, 64)
  .option('--seconds <n>', 'of each workload; from 60 on it counts', seconds, 60)
  .option('--body-bytes <n>', 'size of a message', positive, 100)
  .option('--json', 'print the report as JSON')
  .action(async ({ json, ...options }: QueuesOptions & JsonFlag) => {
    const report = await untilStopped((signal) =>
      benchQueues(options, signal, ({ work, operations }) => {
        process.stderr.write(`${work}: ${operations} messages\n`)
      }),
    )
    if (report === undefined) return
    print(report, { json }, describeQueues)
    if (report.works.some(({ failures }) => failures > 0)) process.exitCode = failedExitCode
  })

program
  .command('schemaless')
  .description('cells with an index and triggers, through three node processes')
  .option('--clients <n>', 'requests under way at once', clientCount, 64)
  .option('--seconds <n>', 'of each round; from 60 in all rounds on it counts', seconds, 20)
  .option('--rounds <n>', 'of each kind of put, after one that is not counted', positive, 3)
  .option('--backlog <n>', 'cells that the triggers find', positive, 20_000)
  .option('--shards <n>', 'in how many shards they are', shardsOf, shardCountMax)
  .option('--json', 'print the report as JSON')
  .action(async ({ json, ...options }: SchemalessOptions & JsonFlag) => {
    const report = await untilStopped((signal) =>
      benchSchemaless(options, signal, (text) => process.stderr.write(`${text}\n`)),
    )
    if (report === undefined) return
    print(report, { json }, describeSchemaless)
    const failures = [...report.puts, report.lag].some((one) => one.failures > 0)
    if (failures) process.exitCode = failedExitCode
  })

program
  .command('overload')
  .description('what is acknowledged when several times as much is asked as three nodes can do')
  .option('--connections <n>', 'links, a third of them to each node', positive, 300)
  .option('--seconds <n>', 'how long each rate is offered', seconds, 10)
  .option('--page <file>', 'write an HTML page with a chart')
  .option('--json', 'print the report as JSON')
  .action(async ({ json, page, ...options }: OverloadOptions & JsonFlag & { page?: string }) => {
    if (page !== undefined) await checkPlace(page)
    const report = await untilStopped((signal) =>
      benchOverload(options, signal, (text) => process.stderr.write(`${text}\n`)),
    )
    if (report === undefined) return
    print(report, { json }, describeOverload)
    if (page !== undefined) await writeOverloadPage(page, stampedWith(build, report))
  })

program
  .command('lifetime')
  .description('what grows on three nodes under load: logs, data, memory, and how nodes come back')
  .option('--clients <n>', 'requests under way at once', clientCount, 64)
  .option('--minutes <n>', 'how long the load goes on', positive, 30)
  .option('--retain <n>', 'log_retain_bytes, in MiB', positive, 256)
  .option('--away <n>', 'seconds of the short absence', seconds, 60)
  .addOption(
    new Option('--log-store <kind>', 'where the log lies')
      .choices(['leveldb', 'files'])
      .default('leveldb'),
  )
  .option('--json', 'print the report as JSON')
  .action(async ({ json, ...options }: LifetimeOptions & JsonFlag) => {
    const report = await untilStopped((signal) =>
      benchLifetime(options, signal, (text) => process.stderr.write(`${text}\n`)),
    )
    if (report === undefined) return
    print(report, { json }, describeLifetime)
    if (report.pieces.some(({ failures }) => failures > 0)) process.exitCode = failedExitCode
  })

program
  .command('comparison')
  .description('how soon three nodes of many groups start, and compare all of them')
  .option('--groups <n>', 'entity groups', positive, 1_000_000)
  .option('--json', 'print the report as JSON')
  .action(async ({ json, ...options }: ComparisonOptions & JsonFlag) => {
    const report = await untilStopped((signal) =>
      benchComparison(options, signal, (text) => process.stderr.write(`${text}\n`)),
    )
    if (report === undefined) return
    print(report, { json }, describeComparison)
    const rounds = [...report.first, ...report.again]
    if (rounds.some(({ differences }) => differences > 0)) process.exitCode = failedExitCode
  })

program
  .command('rebalance')
  .description('a third replica set comes under load and gets a third of the buckets')
  .option('--groups <n>', 'entity groups, of one row each', positive, 20_000)
  .option('--clients <n>', 'requests under way at once', clientCount, 32)
  .option('--seconds <n>', 'of load before, and after', seconds, 20)
  .option('--json', 'print the report as JSON')
  .action(async ({ json, ...options }: RebalanceOptions & JsonFlag) => {
    const report = await untilStopped((signal) =>
      benchRebalance(options, signal, (text) => process.stderr.write(`${text}\n`)),
    )
    if (report === undefined) return
    print(report, { json }, describeRebalance)
    const { before, meanwhile, after } = report
    const failures = before.failures + meanwhile.failures + after.failures
    if (failures > 0) process.exitCode = failedExitCode
  })

program
  .command('replacement')
  .description(
    'one of three nodes loses its disk under load: how soon an empty store is in its place',
  )
  .option('--groups <n>', 'entity groups, of one row each', positive, 1_000_000)
  .option('--chars <n>', 'characters of a row, a multiple of 4', fours, 1_000)
  .option('--writers <n>', 'entity groups that are written meanwhile', clientCount, 32)
  .option('--pace <ms>', 'from one write of a group to its next one', positive, 100)
  .option('--before <n>', 'seconds of load before, and after', seconds, 30)
  .option('--json', 'print the report as JSON')
  .action(async ({ json, ...options }: ReplacementOptions & JsonFlag) => {
    const report = await untilStopped((signal) =>
      benchReplacement(options, signal, (text) => process.stderr.write(`${text}\n`)),
    )
    if (report === undefined) return
    print(report, { json }, describeReplacement)
    const isWhole = report.lacking === 0 && Object.keys(report.failures).length === 0
    if (!isWhole) process.exitCode = failedExitCode
  })

program
  .command('returns')
  .description('commits while one of three nodes goes and comes back, and how fast it catches up')
  .option('--clients <n>', 'requests under way at once', clientCount, 24)
  .option('--minutes <n>', 'how long the load goes on; 0: only the return at rest', warmUp, 10)
  .option('--every <n>', 'seconds from one kill to the next', seconds, 60)
  .option('--away <n>', 'seconds that the node is away', seconds, 30)
  .option('--entries <n>', 'what it lacks when it returns at rest in the end', positive, 100_000)
  .option('--page <file>', 'write an HTML page with charts')
  .option('--json', 'print the report as JSON')
  .action(async ({ json, page, ...options }: ReturnsOptions & JsonFlag & { page?: string }) => {
    if (page !== undefined) await checkPlace(page)
    const report = await untilStopped((signal) =>
      benchReturns(options, signal, (text) => process.stderr.write(`${text}\n`)),
    )
    if (report === undefined) return
    print(report, { json }, describeReturns)
    if (Object.keys(report.failures).length > 0) process.exitCode = failedExitCode
    if (page !== undefined) await writeReturnsPage(page, stampedWith(build, report))
  })

program
  .command('damage')
  .description(
    'files and rows damaged under load: how fast nodes find it and heal, and what they show',
  )
  .option('--steps <names>', stepNames.join(', '), damageSteps, [...stepNames])
  .option('--clients <n>', 'requests under way at once', clientCount, 16)
  .option('--rows <n>', 'of about 500 bytes, written before', positive, 20_000)
  .option('--round <n>', 'seconds from one look for damage to the next', seconds, 5)
  .option('--at <part>', 'where in a file, of what was written to it', part, 0.5)
  .option('--before <n>', 'seconds of load before each step', seconds, 20)
  .option('--patience <n>', 'seconds that a step may take', seconds, 180)
  .addOption(
    new Option('--log-store <kind>', 'where the log lies')
      .choices(['leveldb', 'files'])
      .default('leveldb'),
  )
  .option('--json', 'print the report as JSON')
  .action(async ({ json, ...options }: DamageOptions & JsonFlag) => {
    const report = await untilStopped((signal) =>
      benchDamage(options, signal, (step) => process.stderr.write(`${describeStep(step)}\n`)),
    )
    if (report === undefined) return
    print(report, { json }, describeDamage)
    if (hasFailed(report)) process.exitCode = failedExitCode
  })

interface JsonFlag {
  readonly json?: boolean | undefined
}

interface CompareFlags extends CompareOptions, JsonFlag {
  readonly page?: string
}

type CommitsFlags = CommitsOptions & JsonFlag

function print<Report extends object>(
  report: Report,
  { json }: JsonFlag,
  describe: (report: Report) => string,
): void {
  const text =
    build === undefined ? describe(report) : `${describe(report)}${describeBuild(build)}\n`
  process.stdout.write(json === true ? `${JSON.stringify(stampedWith(build, report))}\n` : text)
  const empty = nothingMeasured(report)
  if (empty.length === 0) return
  process.stderr.write(`bench: nothing was done in ${empty.join(', ')}\n`)
  process.exitCode = failedExitCode
}

/** Undefined when it was stopped: running processes end either way, and their folders are removed. */
async function untilStopped<Report>(
  run: (signal: AbortSignal) => Promise<Report>,
): Promise<Report | undefined> {
  const stopping = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => stopping.abort())
  try {
    return await run(stopping.signal)
  } catch (error) {
    if (!stopping.signal.aborted) throw error
    process.stderr.write('stopped; nothing is reported\n')
    process.exitCode = stoppedExitCode
    return undefined
  }
}

strict(program)

try {
  await program.parseAsync()
} catch (error) {
  if (error instanceof BenchError) {
    process.stderr.write(`bench: ${error.message}\n`)
    process.exitCode = failedExitCode
  } else if (error instanceof CliError) {
    process.stderr.write(`bench: ${error.message}\n`)
    process.exitCode = usageExitCode
  } else if (error instanceof CommanderError) {
    process.exitCode = error.exitCode === 0 ? 0 : usageExitCode
  } else throw error
}
