/** The page on performance says what the kept figures say. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import type { CompareReport } from '../../bench/compare/compare.ts'
import type { Figures, RatioName } from '../../bench/compare/summary.ts'
import type { RoundTripsReport } from '../../bench/round-trips.ts'
import { grouped } from '../../src/cli/output.ts'

function textOf(path: string): string {
  return readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
}

const page = textOf('src/docs/performance.md')
const report: CompareReport = JSON.parse(textOf('bench/results/compare.json'))
const { clients, rounds, seconds } = report.options

/** Three digits are more than a shared machine repeats. */
function short(value: number): string {
  return `${Number(value.toPrecision(3))}`
}

function cellOf(figures: Figures | undefined): string {
  if (figures === undefined) return '–'
  const { perSecond, p50Ms, p99Ms, serverCpuPer1000 } = figures
  const latency = `${short(p50Ms.median)} / ${short(p99Ms.median)}`
  return `${grouped(perSecond.median)} · ${latency} · ${short(serverCpuPer1000.median)}`
}

test('the figures beside other systems are the medians of a run that counts', () => {
  expect({ isQuick: report.isQuick, rounds, seconds }).toEqual({
    isQuick: false,
    rounds: 3,
    seconds: 60,
  })
  for (const operation of ['commits', 'reads'] as const) {
    for (const count of clients) {
      const cells = (['trilithon', 'etcd', 'postgres', 'ceiling'] as const).map((system) =>
        cellOf(report.figures[system]?.[operation]?.[`${count}`]),
      )
      expect(page).toContain(`| ${operation}, ${count} | ${cells.join(' | ')} |`)
    }
  }
})

test('the ratios are those of the same run', () => {
  const labels: readonly (readonly [RatioName, string])[] = [
    ['commits', 'commits per second'],
    ['commitCpu', 'CPU of a commit'],
    ['commitP50', 'median of a commit'],
    ['reads', 'reads per second'],
    ['readCpu', 'CPU of a read'],
    ['readP50', 'median of a read'],
  ]
  for (const [system, its] of [
    ['etcd', 'etcd'],
    ['postgres', 'PostgreSQL'],
    ['ceiling', 'ceiling'],
  ] as const) {
    for (const [name, label] of labels) {
      const ratios = report.ratios[system]?.[name]
      if (ratios === undefined) continue
      const cells = clients.map((count) => short(ratios[`${count}`] ?? Number.NaN))
      expect(page).toContain(`| ${label} : ${its} | ${cells.join(' | ')} |`)
    }
  }
})

test('the round trips are those that are recorded', () => {
  const { figures }: RoundTripsReport = JSON.parse(textOf('bench/results/round-trips-3.json'))
  for (const [name, { roundTrips, messages, bytes, flushes }] of Object.entries(figures)) {
    const cells = [roundTrips.toFixed(2), messages, Math.round(bytes), flushes]
    expect(page).toContain(`| \`${name}\` | ${cells.join(' | ')} |`)
  }
})
