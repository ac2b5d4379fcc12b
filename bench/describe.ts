/** Reports in words, for a terminal. */
import type { CommitsReport } from './commits.ts'
import type { CompareReport } from './compare/compare.ts'
import type { RoundTripsReport } from './round-trips.ts'

export function describeCompare({ figures, ratios, isQuick }: CompareReport): string {
  const lines = isQuick ? ['A quick run: its figures do not count.'] : []
  for (const [system, ofSystem] of Object.entries(figures)) {
    for (const [operation, byClients] of Object.entries(ofSystem)) {
      for (const [clients, { perSecond, p50Ms, p99Ms, serverCpuPer1000 }] of Object.entries(
        byClients,
      )) {
        const latency = `${p50Ms.median.toFixed(2)} / ${p99Ms.median.toFixed(2)} ms`
        lines.push(
          `${system.padEnd(10)} ${operation.padEnd(8)} ${clients.padStart(4)} clients ${perSecond.median.toFixed(0).padStart(8)}/s  ${latency.padEnd(18)} ${serverCpuPer1000.median.toFixed(3)} CPU s per 1,000`,
        )
      }
    }
  }
  for (const [system, named] of Object.entries(ratios)) {
    for (const [name, byClients] of Object.entries(named)) {
      const values = Object.entries(byClients).map(([clients, ratio]) => `${clients}: ${ratio}`)
      lines.push(`trilithon : ${system}, ${name}: ${values.join('  ')}`)
    }
  }
  return `${lines.join('\n')}\n`
}

export function describeCommits(report: CommitsReport): string {
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
