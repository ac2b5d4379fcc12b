/** Reports in words, for a terminal. */
import { grouped } from '../src/cli/output.ts'
import { describeBuild } from './build.ts'
import { costNames, type BuildsReport, type Costs, type Quartiles } from './builds.ts'
import type { CommitsReport } from './commits.ts'
import type { CompareReport } from './compare/compare.ts'
import type { Spread } from './compare/summary.ts'
import type { QueuesReport } from './queues/queues.ts'
import type { RoundTripsReport } from './round-trips.ts'
import type { ScaleReport } from './scale/scale.ts'
import type { SchemalessReport } from './schemaless/schemaless.ts'
import type { SizeFigures } from './scale/summary.ts'
import { works, type Work } from './scale/work.ts'
import type { WorkloadFigures, YcsbReport } from './ycsb/ycsb.ts'

export function describeCompare(report: CompareReport): string {
  const { figures, ratios, oneGroupRatios, failed, isQuick } = report
  const lines = isQuick ? ['A quick run: its figures do not count.'] : []
  for (const [system, ofSystem] of Object.entries(figures)) {
    for (const [operation, byClients] of Object.entries(ofSystem)) {
      for (const [clients, figures] of Object.entries(byClients)) {
        const { perSecond, p50Ms, p99Ms, serverCpuPer1000, clientCpuPer1000 } = figures
        const latency = `${p50Ms.median.toFixed(2)} / ${p99Ms.median.toFixed(2)} ms`
        const cpu = `${serverCpuPer1000.median.toFixed(3)} + ${clientCpuPer1000.median.toFixed(3)}`
        lines.push(
          `${system.padEnd(10)} ${operation.padEnd(8)} ${clients.padStart(4)} clients ${perSecond.median.toFixed(0).padStart(8)}/s  ${latency.padEnd(18)} ${cpu} CPU s per 1,000 (servers + clients)`,
        )
      }
    }
  }
  for (const [own, theirs] of Object.entries({ trilithon: ratios, oneGroup: oneGroupRatios })) {
    for (const [system, named] of Object.entries(theirs)) {
      for (const [name, byClients] of Object.entries(named)) {
        const values = Object.entries(byClients).map(([clients, ratio]) => `${clients}: ${ratio}`)
        lines.push(`${own} : ${system}, ${name}: ${values.join('  ')}`)
      }
    }
  }
  for (const { system, during, reason } of failed) {
    lines.push(`${system} failed in ${during}, and no more is measured of it: ${reason}`)
  }
  return `${lines.join('\n')}\n`
}

export function describeCommits(report: CommitsReport): string {
  const { cpuPer1000 } = report
  const cpu = [...cpuPer1000.nodes, cpuPer1000.client].map((used) => used.toFixed(3))
  return [
    `${report.clients} clients${report.oneGroup ? ', all in one group' : ''}, ${report.seconds} s${report.isQuick ? ' (a quick run)' : ''}`,
    `commits/s, drained   ${report.commitsPerSecond.toFixed(0)}`,
    `p50 / p95 / p99 ms   ${report.p50Ms.toFixed(2)} / ${report.p95Ms.toFixed(2)} / ${report.p99Ms.toFixed(2)}`,
    `CPU s per 1,000      nodes ${cpu.slice(0, 3).join(' ')}, client ${cpu[3] ?? ''}`,
    `failures             ${report.failures}`,
    '',
  ].join('\n')
}

const costWords: Costs<string> = {
  perSecond: 'commits/s',
  p50Ms: 'p50 ms',
  p99Ms: 'p99 ms',
  cpuPer1000: 'CPU s per 1,000',
  kibPer1000: 'KiB per 1,000',
  deviceKibPer1000: 'disk KiB per 1,000',
}

export function describeBuilds(report: BuildsReport): string {
  const { options, other, figures, ratios, failures, isQuick } = report
  const { clients, seconds, slices, oneGroup = false, logStore = 'leveldb' } = options
  const rows = costNames.map((name) => {
    const values = [figures.own[name], figures.other[name]].map(({ median }) => shown(median))
    return [
      costWords[name].padEnd(18),
      ...values.map((one) => one.padStart(12)),
      `  ${inQuarters(ratios[name])}`,
    ].join('')
  })
  return [
    `${clients} clients${oneGroup ? ', all in one group' : ''}, ${slices} slices of ${seconds} s each${isQuick ? ' (a quick run)' : ''}`,
    `the other build: ${'folder' in other ? other.folder : describeBuild(other)}; log_store of this one: ${logStore}`,
    `${''.padEnd(18)}${'this'.padStart(12)}${'the other'.padStart(12)}  this : the other, median of the pairs (quarters lie outside)`,
    ...rows,
    `failures           ${failures}`,
    '',
  ].join('\n')
}

function inQuarters({ lower, median, upper }: Quartiles): string {
  return `${shown(median)} (${shown(lower)} to ${shown(upper)})`
}

/** JSON has no NaN: a report that was read has null there. */
function shown(value: number): string {
  return Number.isFinite(value) ? value.toFixed(3) : '-'
}

export function describeTrips(report: RoundTripsReport): string {
  const { regions, distancesMs, figures, writeGapLeases } = report
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
    'A write after the failure of one node takes so many lease times at most:',
    cells(['', ...Object.keys(writeGapLeases)]),
    cells(['writeGapLeases', ...Object.values(writeGapLeases)]),
    '',
  ].join('\n')
}

export const workWords: Readonly<Record<Work, string>> = {
  commits: 'commits, all groups',
  reads: 'reads, all groups',
  commitsOfSome: 'commits, some groups',
  readsOfSome: 'reads, some groups',
}

export function describeScale({ sizes, recovery, options, isQuick }: ScaleReport): string {
  const [smallest] = options.groups
  const row = (name: string, of: (size: SizeFigures) => string): string =>
    name.padEnd(30) + sizes.map((size) => of(size).padStart(20)).join('')
  const describeWork = (work: Work): string[] => [
    row(`${workWords[work]}, /s`, (size) => {
      const { perSecond, timeRatio } = size.work[work]
      return withRatio(perSecond.median.toFixed(0), timeRatio)
    }),
    row('  CPU of the node, µs', (size) => {
      const { cpuMicros, cpuRatio } = size.work[work]
      return withRatio(cpuMicros.median.toFixed(0), cpuRatio)
    }),
  ]
  const failures = (size: SizeFigures): number =>
    works.reduce((sum, work) => sum + size.work[work].failures, 0)
  return [
    ...(isQuick ? ['A quick run: its figures do not count.'] : []),
    row('groups', ({ groups }) => grouped(groups)),
    row('rows', ({ groups }) => grouped(groups * options.rowsPerGroup)),
    row('groups filled, /s', ({ filled }) => filled.perSecond.toFixed(0)),
    row('on disk, MiB', ({ filled }) => mib(filled.diskBytes)),
    row('start until ready, s', ({ start }) => start.seconds.median.toFixed(2)),
    row('  CPU, s', ({ start }) => start.cpuSeconds.median.toFixed(2)),
    row('resident then, MiB', ({ start }) => mib(start.memory.resident)),
    row('  at most until then', ({ start }) => mib(start.memory.peak)),
    row('  without files', ({ start }) => mib(start.memory.own)),
    row('resident after work, MiB', ({ memoryAfterWork }) => mib(memoryAfterWork.resident)),
    row('  at most until then', ({ memoryAfterWork }) => mib(memoryAfterWork.peak)),
    row('  without files', ({ memoryAfterWork }) => mib(memoryAfterWork.own)),
    ...works.flatMap(describeWork),
    row('failures', (size) => `${failures(size)}`),
    `In brackets: how many times the cost at ${grouped(smallest ?? 0)} groups, median of the rounds. Some groups: ${grouped(smallest ?? 0)} of them, read before.`,
    `${grouped(recovery.groups)} groups, after kill -9 under commits: ready in ${recovery.seconds.toFixed(2)} s, CPU ${recovery.cpuSeconds.toFixed(2)} s, resident ${mib(recovery.memory.resident)} MiB, at most ${mib(recovery.memory.peak)}`,
    '',
  ].join('\n')
}

function withRatio(value: string, { median }: Spread): string {
  return `${value} (${median.toFixed(2)})`
}

function mib(bytes: number): string {
  return (bytes / 2 ** 20).toFixed(0)
}

export function describeYcsb({ options, loaded, workloads, isQuick }: YcsbReport): string {
  const { records, clients, seconds } = options
  const ofLoad = loaded.map(
    ({ table, rows, seconds: took }) => `${grouped(rows)} rows of ${table} in ${took.toFixed(1)} s`,
  )
  return [
    `${grouped(records)} records, ${clients} clients, ${seconds} s each${isQuick ? ' (a quick run)' : ''}; loaded ${ofLoad.join(', ')}`,
    ycsbCells(['', 'ops/s', 'p50 ms', 'p95 ms', 'p99 ms', 'max ms', 'failures']),
    ...workloads.flatMap(describeWorkload),
    '',
  ].join('\n')
}

export function describeQueues({ options, works, isQuick }: QueuesReport): string {
  const { clients, seconds, bodyBytes } = options
  const head = `messages of ${bodyBytes} bytes, ${clients} pairs, ${seconds} s each${isQuick ? ' (a quick run)' : ''}; from sending to handled`
  const rows = works.flatMap(({ work, perSecond, cpuPer1000, failures, ...rest }) => {
    const latencies = [rest.p50Ms, rest.p95Ms, rest.p99Ms, rest.maxMs].map((ms) => ms.toFixed(2))
    const { nodes, client } = cpuPer1000
    return [
      ycsbCells([work, perSecond.toFixed(0), ...latencies, failures]),
      `  CPU seconds per 1,000 messages: nodes ${nodes.toFixed(2)}, client ${client.toFixed(2)}`,
    ]
  })
  const names = ['', 'messages/s', 'p50 ms', 'p95 ms', 'p99 ms', 'max ms', 'failures']
  return [head, ycsbCells(names), ...rows, ''].join('\n')
}

export function describeSchemaless(report: SchemalessReport): string {
  const { options, puts, lag, triggers, isQuick } = report
  const head = `${options.clients} clients, rounds of ${options.seconds} s${isQuick ? ' (a quick run)' : ''}`
  const rows = puts.map(({ work, perSecond, failures, cpuPer1000, ...rest }) => {
    const latencies = [rest.p50Ms, rest.p95Ms, rest.p99Ms, rest.maxMs].map((ms) => ms.toFixed(2))
    const cells = ycsbCells([work, perSecond.toFixed(0), ...latencies, failures])
    return `${cells}  ${cpuPer1000.toFixed(3)} CPU s per 1,000`
  })
  const names = ['', 'cells/s', 'p50 ms', 'p95 ms', 'p99 ms', 'max ms', 'failures']
  return [
    ...[head, ycsbCells(names), ...rows],
    `index behind its cell: p50 ${lag.p50Ms.toFixed(1)}, p99 ${lag.p99Ms.toFixed(1)} ms (${lag.operations} puts)`,
    `triggers: ${triggers.cells} cells in ${triggers.seconds.toFixed(1)} s, ${triggers.perSecond.toFixed(0)}/s by one worker`,
    '',
  ].join('\n')
}

function describeWorkload(figures: WorkloadFigures): string[] {
  const { workload, perSecond, failures, cpuPer1000, rowsPerScan, reruns } = figures
  const ofKinds = Object.entries(figures.kinds).map(
    ([kind, { p50Ms, p95Ms, p99Ms, maxMs, ...rest }]) => {
      const latencies = [p50Ms, p95Ms, p99Ms, maxMs].map((ms) => ms.toFixed(2))
      return ycsbCells([`  ${kind}`, rest.perSecond.toFixed(0), ...latencies, rest.failures])
    },
  )
  const nodes = cpuPer1000.nodes.map((used) => used.toFixed(3)).join(' ')
  const failed = Object.entries(figures.failuresByCode).map(([code, count]) => `; ${count} ${code}`)
  const scans = rowsPerScan === undefined ? '' : `; ${rowsPerScan.toFixed(1)} rows a scan`
  return [
    ycsbCells([
      `workload ${workload.toUpperCase()}`,
      perSecond.toFixed(0),
      '',
      '',
      '',
      '',
      failures,
    ]),
    ...ofKinds,
    `  CPU s per 1,000: nodes ${nodes}, client ${cpuPer1000.client.toFixed(3)}; ${reruns} reruns after conflicts${scans}${failed.join('')}`,
  ]
}

function ycsbCells(of: readonly (string | number)[]): string {
  return of
    .map((cell, column) => (column === 0 ? `${cell}`.padEnd(14) : `${cell}`.padStart(10)))
    .join('')
}
