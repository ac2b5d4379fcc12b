/** A report of returns as one HTML page that needs nothing else: commits and latency over time, as SVG. */
import { describeBuild, type Stamped } from '../build.ts'
import { writePage } from '../page.ts'
import { describeReturns, type ReturnsReport } from './returns.ts'

const width = 1_000
const height = 260

/** Values by second as a line, over bands in which the node was away or caught up. */
function chart(report: ReturnsReport, values: readonly number[], unit: string): string {
  const most = Math.max(1, ...values)
  const last = Math.max(1, values.length - 1)
  const x = (second: number): string => ((second / last) * width).toFixed(1)
  const y = (value: number): string => (height - (value / most) * height).toFixed(1)
  const band = (from: number, to: number, colour: string): string =>
    `<rect x="${x(from)}" y="0" width="${(Number(x(to)) - Number(x(from))).toFixed(1)}" height="${height}" fill="${colour}"/>`
  const bands = report.returns.map(({ killed, started, caughtUp }) => {
    const end = caughtUp ?? killed + report.options.every
    return band(killed, started, '#eee') + band(started, end, '#fde7c7')
  })
  const label = (at: number, y: number, text: string): string =>
    `<text x="${at}" y="${y}" font-size="12" fill="#555">${text}</text>`
  const minutes = Array.from({ length: Math.floor(last / 60) }, (_, n) =>
    label(Number(x((n + 1) * 60)), height + 14, `${n + 1} min`),
  )
  const axes = [label(2, 12, String(Math.round(most))), label(2, height + 14, '0'), ...minutes]
  const points = values.map((value, second) => `${x(second)},${y(value)}`).join(' ')
  return `<figure><svg viewBox="0 0 ${width} ${height + 18}" role="img">${bands.join('')}${axes.join('')}<polyline points="${points}" fill="none" stroke="#246" stroke-width="1.2"/></svg><figcaption>${unit}; up to ${Math.round(most)}, over ${values.length} s</figcaption></figure>`
}

export async function writeReturnsPage(
  page: string,
  report: Stamped<ReturnsReport>,
): Promise<void> {
  const { seconds } = report
  const build = report.build === undefined ? '' : describeBuild(report.build)
  const charts = [
    chart(
      report,
      seconds.map(({ commits }) => commits),
      'commits per second',
    ),
    chart(
      report,
      seconds.map(({ p99Ms }) => p99Ms),
      '99th percentile of latency, ms',
    ),
    chart(
      report,
      seconds.map(({ maxMs }) => maxMs),
      'the slowest answer, ms',
    ),
  ]
  await writePage(page, {
    title: 'A node that comes back',
    words: `Grey: it is away. Yellow: it is back, and lacks something. ${build}`,
    report: describeReturns(report),
    charts,
  })
}
