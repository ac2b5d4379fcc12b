/** A report as one HTML page that needs nothing else: charts (uPlot), tables, and the report itself. */
import { access, constants, readFile, stat, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname } from 'node:path'
import { html, raw } from 'hono/html'
import { describeBuild, type Stamped } from '../build.ts'
import { BenchError, readReason } from '../common.ts'
import type { CompareReport } from './compare.ts'
import type { Figures, RatioName, Spread } from './summary.ts'
import type { SystemName } from './system.ts'

type Html = ReturnType<typeof html>

const labels: Readonly<Record<SystemName, string>> = {
  trilithon: 'Trilithon',
  oneGroup: 'Trilithon, one group',
  etcd: 'etcd',
  etcdGo: 'etcd, by its Go client',
  postgres: 'PostgreSQL',
  ceiling: 'bare ceiling',
}
const operations = [
  ['commits', 'Commits'],
  ['reads', 'Current reads'],
] as const
const figureNames = [
  ['perSecond', 'per second'],
  ['p50Ms', 'median latency, ms'],
  ['p99Ms', '99th percentile of latency, ms'],
  ['serverCpuPer1000', 'CPU seconds of the servers per 1,000'],
] as const
const ratioLabels: readonly (readonly [RatioName, string])[] = [
  ['commits', 'commits per second'],
  ['commitCpu', 'CPU per commit (less is better)'],
  ['commitP50', 'median latency of a commit (less is better)'],
  ['reads', 'current reads per second'],
  ['readCpu', 'CPU per read (less is better)'],
  ['readP50', 'median latency of a read (less is better)'],
]

/** Rejects with a BenchError where no page can be written: before hours of runs, not after them. */
export async function checkPlace(page: string): Promise<void> {
  try {
    // The dot is for what is no folder.
    await access(`${dirname(page)}/.`, constants.W_OK)
  } catch (error) {
    throw unwritable(page, error)
  }
  // Absent: nothing is there yet.
  const there = await stat(page).catch(() => undefined)
  if (there?.isDirectory() === true) throw unwritable(page, new Error('it is a folder'))
}

export async function writePage(page: string, report: Stamped<CompareReport>): Promise<void> {
  await writeFile(page, await renderPage(report)).catch((error: unknown) => {
    throw unwritable(page, error)
  })
}

function unwritable(page: string, error: unknown): BenchError {
  return new BenchError(`the page ${page} cannot be written: ${readReason(error)}`)
}

export async function renderPage(report: Stamped<CompareReport>): Promise<string> {
  const require = createRequire(import.meta.url)
  const file = (name: string): Promise<string> =>
    readFile(require.resolve(`uplot/dist/${name}`), 'utf8')
  const [library, style] = await Promise.all([file('uPlot.iife.min.js'), file('uPlot.min.css')])
  const { clients, rounds, seconds } = report.options
  const { cpus, model } = report.machine
  const page = html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width" />
        <title>Trilithon beside others</title>
        <style>
          ${raw(style)} ${raw(ownStyle)}
        </style>
      </head>
      <body>
        <h1>Trilithon beside others</h1>
        <p>
          ${report.date.slice(0, 10)}${report.build === undefined ? '' : `, ${describeBuild(report.build)}`},
          ${cpus} × ${model}. Three servers of each on one machine, every write synced by a majority
          of them before it is acknowledged. ${rounds} alternating rounds of ${seconds} s with
          ${clients.join(', ')}
          clients${report.isQuick ? ': a quick run, whose figures do not count' : ''}. Points are
          medians of the rounds; ratios are of the same round.
        </p>
        ${renderRatios('trilithon', report.ratios, report.ratioSpread, report.options)}
        ${renderRatios('oneGroup', report.oneGroupRatios, report.oneGroupRatioSpread, report.options)}
        ${operations.map((operation) => renderCharts(report, operation))}
        <h2>What was measured</h2>
        <dl>
          ${Object.entries(report.systems).map(
            ([name, text]) =>
              html`<dt>${name}</dt>
                <dd>${text}</dd>`,
          )}
          ${Object.entries(report.missing).map(
            ([name, install]) =>
              html`<dt>${name}</dt>
                <dd>is not on this machine: ${install}</dd>`,
          )}
          ${report.failed.map(
            ({ system, during, reason }) =>
              html`<dt>${labels[system]}</dt>
                <dd>failed in ${during}, and no more is measured of it: ${reason}</dd>`,
          )}
        </dl>
        <script>
          ${raw(library)}
        </script>
        <script id="report" type="application/json">
          ${raw(encodeJson(report))}
        </script>
        <script>
          ${raw(drawing)}
        </script>
      </body>
    </html>`
  return String(await page)
}

/** JSON that ends no script. */
function encodeJson(value: unknown): string {
  return JSON.stringify(value).replaceAll('<', '\\u003c')
}

function renderRatios(
  own: SystemName,
  ratios: CompareReport['ratios'],
  spread: CompareReport['ratioSpread'],
  { clients }: CompareReport['options'],
): Html[] {
  return (['etcd', 'etcdGo', 'postgres', 'ceiling'] as const).flatMap((system) => {
    const theirs = ratios[system]
    if (theirs === undefined) return []
    const rows = ratioLabels.filter(([name]) => theirs[name] !== undefined)
    if (rows.length === 0) return []
    return html`<h2>${labels[own]} : ${labels[system]}</h2>
      <table>
        <tr>
          <th>clients</th>
          ${clients.map((count) => html`<th>${count}</th>`)}
        </tr>
        ${rows.map(
          ([name, label]) =>
            html`<tr>
              <th>${label}</th>
              ${clients.map((count) => {
                const [least, greatest] = spread[system]?.[name]?.[`${count}`] ?? []
                return html`<td>
                  ${short(theirs[name]?.[`${count}`])}
                  <small>${short(least)}–${short(greatest)}</small>
                </td>`
              })}
            </tr>`,
        )}
      </table>`
  })
}

function renderCharts(
  report: CompareReport,
  [operation, title]: (typeof operations)[number],
): Html {
  return html`<h2>${title}</h2>
    <div class="charts">
      ${figureNames.map(([figure, label]) => html`<figure data-operation="${operation}" data-figure="${figure}"><figcaption>${label}</figcaption></figure>`)}
    </div>
    <table>
      <tr>
        <th></th>
        ${report.options.clients.map((count) => html`<th>${count} clients</th>`)}
      </tr>
      ${Object.entries(report.figures).flatMap(([system, figures]) => {
        const byClients = figures[operation]
        if (byClients === undefined) return []
        return html`<tr>
          <th>${system}</th>
          ${report.options.clients.map((count) => html`<td>${renderCell(byClients[`${count}`])}</td>`)}
        </tr>`
      })}
    </table>`
}

function renderCell(figures: Figures | undefined): Html | string {
  if (figures === undefined) return ''
  const { perSecond, p50Ms, p99Ms, serverCpuPer1000, failures } = figures
  return html`${renderSpread(perSecond)}/s<br />${short(p50Ms.median)} / ${short(p99Ms.median)}
    ms<br />${short(serverCpuPer1000.median)} CPU s${failures > 0 ? `, ${failures} failures` : ''}`
}

function renderSpread({ median, least, greatest }: Spread): Html {
  return html`<b>${short(median)}</b> <small>${short(least)}–${short(greatest)}</small>`
}

function short(value: number | undefined): string {
  if (value === undefined) return ''
  if (value >= 1000) return Math.round(value).toLocaleString('en')
  return value.toPrecision(3)
}

const ownStyle = `
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem; color: #222; background: #fff }
table { border-collapse: collapse; margin: 1rem 0 }
th, td { padding: 0.3rem 0.8rem; text-align: right; vertical-align: top; border-bottom: 1px solid #ddd; font-variant-numeric: tabular-nums }
tr > th:first-child { text-align: left; font-weight: normal }
small { color: #666 }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(26rem, 1fr)); gap: 1.5rem }
figure { margin: 0 }
figcaption { font-weight: bold }
`

/** Runs in the page: one chart for each figure, a line for each system. */
const drawing = `
const report = JSON.parse(document.getElementById('report').textContent)
const clients = report.options.clients
const colors = { trilithon: '#b3261e', oneGroup: '#e8927c', etcd: '#1f6f8b', etcdGo: '#7db8cb', postgres: '#5b7f2b', ceiling: '#777777' }
for (const place of document.querySelectorAll('figure')) {
  const { operation, figure } = place.dataset
  const systems = Object.keys(report.figures).filter((name) => report.figures[name][operation])
  const data = [clients.map((_, at) => at)]
  const series = [{ label: 'clients', value: (_, at) => clients[at] ?? '' }]
  for (const name of systems) {
    data.push(clients.map((count) => report.figures[name][operation][count]?.[figure].median ?? null))
    series.push({ label: name, stroke: colors[name], width: 2, points: { size: 7 },
      value: (_, value) => value == null ? '' : value.toPrecision(4) })
  }
  new uPlot({
    width: Math.max(300, place.clientWidth), height: 260, series,
    scales: { x: { time: false, range: [-0.2, clients.length - 0.8] }, y: { range: (_, low, high) => [0, high * 1.1] } },
    axes: [{ splits: () => data[0], values: (_, splits) => splits.map((at) => clients[at]) }, { size: 70 }],
  }, data, place)
}
`
