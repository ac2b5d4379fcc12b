/** The page on performance says what the kept figures say. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import type { BuildsReport } from '../../bench/builds.ts'
import type { CompareReport } from '../../bench/compare/compare.ts'
import type { Figures, RatioName } from '../../bench/compare/summary.ts'
import type { SystemName } from '../../bench/compare/system.ts'
import type { ComparisonReport } from '../../bench/comparison/comparison.ts'
import { stepNames, type DamageReport } from '../../bench/damage/damage.ts'
import type { LifetimeReport, Piece } from '../../bench/lifetime/lifetime.ts'
import type { OverloadReport } from '../../bench/overload/overload.ts'
import type { RebalanceReport } from '../../bench/rebalance/rebalance.ts'
import type { ReplacementReport } from '../../bench/replacement/replacement.ts'
import type { ReturnsReport } from '../../bench/returns/returns.ts'
import type { RoundTripsReport } from '../../bench/round-trips.ts'
import type { ScaleReport } from '../../bench/scale/scale.ts'
import type { YcsbReport } from '../../bench/ycsb/ycsb.ts'
import { grouped } from '../../src/cli/output.ts'

function textOf(path: string): string {
  return readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
}

const page = textOf('src/docs/performance.md')

/** In the order of the table's columns. */
const systems: readonly SystemName[] = [
  'trilithon',
  'oneGroup',
  'etcdGo',
  'etcd',
  'postgres',
  'ceiling',
]
const report: CompareReport = JSON.parse(textOf('bench/results/compare.json'))
const others: Readonly<Partial<Record<SystemName, string>>> = {
  etcdGo: "etcd's own client",
  etcd: 'etcd',
  postgres: 'PostgreSQL',
  ceiling: 'ceiling',
}
const labels: readonly (readonly [RatioName, string])[] = [
  ['commits', 'commits per second'],
  ['commitCpu', 'CPU of a commit'],
  ['commitP50', 'median of a commit'],
  ['reads', 'reads per second'],
  ['readCpu', 'CPU of a read'],
  ['readP50', 'median of a read'],
]

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

test('the figures of the comparison are medians of a run that counts', () => {
  const { clients, rounds, seconds, operations } = report.options
  const { isQuick, failed, missing } = report
  expect({ isQuick, rounds, seconds }).toEqual({ isQuick: false, rounds: 3, seconds: 60 })
  expect({ clients, failed, missing }).toEqual({
    clients: [1, 16, 64, 256],
    failed: [],
    missing: {},
  })
  for (const operation of operations) {
    for (const count of clients) {
      const cells = systems.map((system) =>
        cellOf(report.figures[system]?.[operation]?.[`${count}`]),
      )
      expect(page).toContain(`| ${operation}, ${count} | ${cells.join(' | ')} |`)
    }
  }
})

test('the ratios are those of the same run', () => {
  for (const [ofWhat, ratios] of [
    ['', report.ratios],
    [', one group', report.oneGroupRatios],
  ] as const) {
    for (const system of systems.filter((one) => others[one] !== undefined)) {
      for (const [name, label] of labels) {
        const values = ratios[system]?.[name]
        if (values === undefined) continue
        const cells = report.options.clients.map((count) => short(values[`${count}`] ?? Number.NaN))
        expect(page).toContain(
          `| ${label}${ofWhat} : ${others[system] ?? ''} | ${cells.join(' | ')} |`,
        )
      }
    }
  }
})

test('the page gives all rounds of commits into one group beside etcd’s own client', () => {
  const rateOf = (system: SystemName, round: number): number =>
    report.runs.find(
      (run) =>
        run.system === system &&
        run.operation === 'commits' &&
        run.round === round &&
        run.clients === 64,
    )?.perSecond ?? Number.NaN
  const ratios = [0, 1, 2].map((round) => rateOf('oneGroup', round) / rateOf('etcdGo', round))
  const [first, second, third] = ratios.map(short)
  expect(page).toContain(`(${first}, ${second} and ${third} in the three rounds`)
  const [least, greatest] = [Math.min(...ratios), Math.max(...ratios)].map(short)
  expect(page).toContain(`${least} to ${greatest} times what etcd takes from its own client`)
})

test.each([
  [
    'scale-groups.json',
    (of: string[]) => `costs ${of[0]} times as much among 100,000 groups and ${of[1]} times`,
  ],
  ['scale-rows.json', (of: string[]) => `with 100 rows a group ${of[0]} and ${of[1]} times`],
] as const)(
  'the page gives the measured cost of groups that are kept but not touched: %s',
  (file, textFor) => {
    const { sizes }: ScaleReport = JSON.parse(textOf(`bench/results/${file}`))
    const larger = sizes.slice(1).map(({ work }) => work)
    const commits = larger.map(({ commitsOfSome }) => commitsOfSome.cpuRatio.median.toFixed(2))
    const reads = larger.map(({ readsOfSome }) => readsOfSome.cpuRatio.median.toFixed(2))
    expect(page).toContain(textFor(commits))
    expect(page).toContain(`${reads.join(' and ')} times`)
  },
)

test('the page gives the YCSB results, failures included', () => {
  const { workloads }: YcsbReport = JSON.parse(textOf('bench/results/ycsb.json'))
  const [a, b, e] = workloads.map(({ perSecond }) => grouped(perSecond))
  expect(page).toContain(`workload A ${a} operations a second, B ${b}, E ${e}.`)
  const failed = workloads.filter(({ failures }) => failures > 0)
  expect(failed.map(({ workload, failuresByCode }) => [workload, failuresByCode])).toEqual([
    ['a', { conflict: 5 }],
  ])
  for (const { failures, operations } of failed) {
    expect(page).toContain(`${failures} of A's ${grouped(operations)} operations failed, with`)
  }
})

test('one client is beside etcd and the ceiling where it was measured', () => {
  const alone: CompareReport = JSON.parse(textOf('bench/results/compare-1.json'))
  expect(alone).toMatchObject({ isQuick: false, failed: [], options: { rounds: 3, seconds: 60 } })
  const pair = (system: SystemName, name: RatioName): string[] =>
    [alone.ratios, alone.oneGroupRatios].map((of) => short(of[system]?.[name]?.['1'] ?? 0))
  const [commits, oneGroup] = pair('etcdGo', 'commits')
  expect(page).toContain(
    `${commits} times the commits of etcd's own client, in one group ${oneGroup}`,
  )
  expect(page).toContain(`commit is ${pair('etcdGo', 'commitP50').join(' and ')} times etcd's`)
  expect(page).toContain(
    `makes ${pair('ceiling', 'commits').join(' and ')} times the commits of the`,
  )
})

test('the page gives the measured gain of a client answered before notices leave', () => {
  const { isQuick, failures, ratios }: BuildsReport = JSON.parse(
    textOf('bench/results/builds-1.json'),
  )
  expect({ isQuick, failures }).toEqual({ isQuick: false, failures: 0 })
  expect(page).toContain(`its median is ${ratios.p50Ms.median.toFixed(3)} times as long`)
  expect(page).toContain(`${ratios.perSecond.median.toFixed(3)} times as many commits`)
})

test.each([
  ['leveldb', 'builds-checkpoints-64.json'],
  ['files', 'builds-files-64.json'],
])('the page gives the measured costs of a build whose logs end, with %s', (kind, file) => {
  const report: BuildsReport = JSON.parse(textOf(`bench/results/${file}`))
  const { isQuick, failures, options, ratios } = report
  expect({ isQuick, failures }).toEqual({ isQuick: false, failures: 0 })
  expect(options.logStore ?? 'leveldb').toBe(kind)
  const { perSecond, p50Ms, p99Ms, cpuPer1000, deviceKibPer1000 } = ratios
  const cells = [perSecond, p50Ms, p99Ms, cpuPer1000, deviceKibPer1000]
  const row = cells.map(({ median }) => median.toFixed(2)).join(' | ')
  expect(page).toContain(`| \`log_store: ${kind}\` | ${row} |`)
})

test('the page gives the measured cost of a returning node to the others', () => {
  const { p99Ms, worstGapMs, failures, idle }: ReturnsReport = JSON.parse(
    textOf('bench/results/returns.json'),
  )
  expect(failures).toEqual({})
  for (const ms of Object.values(p99Ms)) expect(page).toContain(`${ms.toFixed(1)} ms while`)
  expect(page).toContain(`without a commit was ${Math.round(worstGapMs)} ms`)
  expect(page).toContain(`takes up ${grouped(idle.perSecond)} entries a second`)
})

test('the page gives how soon a million groups start and are compared', () => {
  const { options, starts, first, again }: ComparisonReport = JSON.parse(
    textOf('bench/results/comparison.json'),
  )
  const ready = Math.max(...starts.map(({ seconds }) => seconds)).toFixed(1)
  const own = Math.max(...starts.map(({ memory }) => memory.own))
  const later = Math.max(...again.map(({ seconds }) => seconds)).toFixed(2)
  expect([...first, ...again].every(({ rounds, groups }) => rounds === 2 && groups === 0)).toBe(
    true,
  )
  expect(page).toContain(`of ${grouped(options.groups)} groups each`)
  expect(page).toContain(`after ${ready} s at most, and take ${Math.round(own / 2 ** 20)} MiB`)
  expect(page).toContain(`with both others is done ${first[0]?.seconds.toFixed(1)} s`)
  expect(page).toContain(`Each one after that takes ${later} s at most`)
})

test('the page gives what grew in half an hour, and how nodes came back', () => {
  const { pieces, absences }: LifetimeReport = JSON.parse(textOf('bench/results/lifetime.json'))
  const mib = (bytes: number): string => `${Math.round(bytes / 2 ** 20)} MiB`
  const commits = pieces.reduce((sum, piece) => sum + piece.commits, 0)
  expect(pieces.every(({ failures }) => failures === 0)).toBe(true)
  expect(page).toContain(`They make ${grouped(commits)} commits`)
  const logBytes = pieces.flatMap(({ nodes }) => nodes.map((node) => node.logBytes))
  expect(page).toContain(`No \`log/\` takes more than ${mib(Math.max(...logBytes))}.`)
  for (const minutes of [5, 10, 15, 20, 25, 30]) {
    const apart = ({ second }: Piece): number => Math.abs(second - minutes * 60)
    const node = pieces.toSorted((a, b) => apart(a) - apart(b))[0]?.nodes[0]
    const sizes = [node?.logBytes, node?.dataBytes, node?.memory].map((bytes = 0) => mib(bytes))
    expect(page).toContain(`| ${[minutes, ...sizes].join(' | ')} |`)
  }
  for (const { kind, killed, started, ready, caughtUp = 0, snapshots, p99Ms } of absences) {
    const times = [ready - started, caughtUp - started].map((one) => `${one.toFixed(1)} s`)
    const away = `${Math.round(started - killed)} s`
    const cells = [kind, away, ...times, grouped(snapshots), `${grouped(p99Ms)} ms`]
    expect(page).toContain(`| ${cells.join(' | ')} |`)
  }
})

test('the page gives what became of damaged files', () => {
  const { steps }: DamageReport = JSON.parse(textOf('bench/results/damage.json'))
  expect(steps.map(({ step }) => step)).toEqual(stepNames)
  const seconds = (value: number | undefined): string =>
    value === undefined ? '–' : `${value.toFixed(1)} s`
  for (const { courses, before, meanwhile } of steps) {
    const p99 = [before, meanwhile].map(({ p99Ms }) => `${p99Ms.toFixed(0)} ms`).join(', ')
    for (const { outcome, foundSeconds, healedSeconds } of courses) {
      const cells = [outcome, seconds(foundSeconds), seconds(healedSeconds), p99]
      expect(page).toContain(`| ${cells.join(' | ')} |`)
    }
  }
  expect(steps.every(({ wrong }) => wrong === 0)).toBe(true)
  const shown = steps.reduce((sum, step) => sum + step.shownBeforeFound, 0)
  expect(page).toContain(`reads showed ${shown} times a planted row`)
  const failures = steps.flatMap(({ before, meanwhile }) => [before.failures, meanwhile.failures])
  expect(failures.every((count) => count === 0)).toBe(true)
})

test('the page gives the measured goodput under overload', () => {
  const { best, bestAfter, steps }: OverloadReport = JSON.parse(
    textOf('bench/results/overload.json'),
  )
  expect(page).toContain(
    `the nodes do ${grouped(best)} a second before all this, and ${grouped(bestAfter)} after it`,
  )
  for (const { times, offered, goodput, refused, p50Ms, p99Ms, healthMs } of steps) {
    const took = `${grouped(p50Ms)} ms, ${grouped(p99Ms)} ms`
    const rates = [grouped(offered), grouped(goodput), grouped(refused)]
    const cells = [times, ...rates, took, `${grouped(healthMs)} ms`]
    expect(page).toContain(`| ${cells.join(' | ')} |`)
  }
})

test('writes stand still for as long as is recorded', () => {
  const worst = (regions: number): string => {
    const file = `bench/results/round-trips-${regions}.json`
    const { writeGapLeases }: RoundTripsReport = JSON.parse(textOf(file))
    return Math.max(...Object.values(writeGapLeases)).toFixed(2)
  }
  expect(page).toContain(`waits ${worst(3)} lease times at most, ${worst(5)} between five regions`)
})

test('the round trips are those that are recorded', () => {
  const { figures }: RoundTripsReport = JSON.parse(textOf('bench/results/round-trips-3.json'))
  for (const [name, { roundTrips, messages, bytes, flushes }] of Object.entries(figures)) {
    const cells = [roundTrips.toFixed(2), messages, Math.round(bytes), flushes]
    expect(page).toContain(`| \`${name}\` | ${cells.join(' | ')} |`)
  }
})

test('the page says what a replacement of a disk costs', () => {
  const told: ReplacementReport = JSON.parse(textOf('bench/results/replacement.json'))
  const { before, copying, sealing, after, options } = told
  const [copied, uncounted, whole] = [
    told.copySeconds,
    told.notCountedSeconds,
    told.threeCopiesSeconds,
  ].map((seconds) => seconds.toFixed(1))
  for (const sentence of [
    `Three nodes of ${grouped(options.groups)} groups of ${grouped(options.chars)} characters`,
    `The copy takes ${copied} s.`,
    `no vote ${uncounted} s after the kill, and one more node may fail after ${whole} s`,
    `takes ${before.p99Ms.toFixed(1)} ms before, ${copying.p99Ms.toFixed(1)} ms during the copy, and ${after.p99Ms.toFixed(1)} ms afterwards`,
    `is ${before.medianGapMs.toFixed(0)} ms in the median group before. It is ${sealing.medianGapMs.toFixed(0)} ms while the epoch begins, and ${grouped(Math.round(sealing.longestGapMs))} ms in the worst group`,
  ]) {
    expect(page).toContain(sentence)
  }
  expect([told.lacking, told.failures]).toEqual([0, {}])
})

test('the page says what a set that comes later costs', () => {
  const told: RebalanceReport = JSON.parse(textOf('bench/results/rebalance.json'))
  const { before, meanwhile, after } = told
  const [first, second, third] = [before, meanwhile, after].map(({ operations, elapsedMs }) =>
    grouped(Math.round((operations / elapsedMs) * 1_000)),
  )
  expect(page).toContain(`That takes ${told.moveSeconds.toFixed(1)} s.`)
  const rates = `commit ${first} times a second before, ${second} meanwhile, and ${third} afterwards`
  expect(page).toContain(rates)
  expect(page).toContain(
    `slowest write took ${grouped(Math.round(meanwhile.maxMs))} ms, and none failed`,
  )
  expect(before.failures + meanwhile.failures + after.failures).toBe(0)
})
