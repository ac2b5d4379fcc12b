/**
 * The cost of commits and reads in a wide area, against that of the last record: nothing may have become
 * worse. Where something became better, the new report is to be kept: `npm run bench -- round-trips --regions
 * 3 --json > bench/results/round-trips-3.json`, and 5.
 */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { benchRoundTrips, type RoundTripsReport } from '../../bench/round-trips.ts'
import { isNightly } from '../nightly-tests.ts'

function recorded(regions: 3 | 5): RoundTripsReport {
  const file = new URL(`../../bench/results/round-trips-${regions}.json`, import.meta.url)
  const report: unknown = JSON.parse(readFileSync(file, 'utf8'))
  if (!isReport(report)) throw new Error('the file is no report of round trips')
  return report
}

function isReport(report: unknown): report is RoundTripsReport {
  return typeof report === 'object' && report !== null && 'figures' in report
}

const reports = new Map<number, RoundTripsReport>()

/** Hundreds of failures, each with what follows: a busy machine takes its time. */
const timeoutMs = 300_000

/** Costs are exact; bytes vary a little with the digits of what is counted in them. */
const bytesSlack = 1.05

/**
 * Between five regions there are 560 failures: those of one reader for each leader show every kind of them, and take
 * minutes. With every change it is measured between three alone.
 */
test.each(
  isNightly
    ? ([
        [3, 2],
        [5, 1],
      ] as const)
    : ([[3, 2]] as const),
)(
  'between %s regions nothing costs more than it did',
  async (regions, readersPerLeader) => {
    const before = recorded(regions)
    const report = await benchRoundTrips(regions, { readersPerLeader })
    const { figures, writeGapLeases } = report
    reports.set(regions, report)
    for (const [name, now] of Object.entries(figures)) {
      const was = Object.entries(before.figures).find(([other]) => other === name)?.[1]
      expect(was, name).toBeDefined()
      const costs = ['roundTrips', 'roundTripsMax', 'messages', 'flushes'] as const
      for (const cost of costs)
        expect(now[cost], `${name}: ${cost}`).toBeLessThanOrEqual(was?.[cost] ?? 0)
      expect(now.bytes, `${name}: bytes`).toBeLessThanOrEqual((was?.bytes ?? 0) * bytesSlack)
    }
    // One round trip to the nearest majority, and next to nothing for disks and the own node.
    expect(figures.commitAtLeader.roundTripsMax).toBeLessThan(1.02)
    expect(figures.currentReadFirst.roundTripsMax).toBeLessThan(1.02)
    // No round trip and no message in any region, as long as the group is read.
    expect(figures.currentReadRepeated).toMatchObject({ messages: 0, bytes: 0 })
    expect(figures.currentReadRepeated.roundTripsMax).toBeLessThan(0.02)
    for (const [name, gap] of Object.entries(writeGapLeases)) {
      const was = Object.entries(before.writeGapLeases).find(([other]) => other === name)?.[1]
      expect(gap, `write gap: ${name}`).toBeLessThanOrEqual(was ?? 0)
    }
  },
  timeoutMs,
)

test(
  'the same run gives the same report',
  async () => {
    expect(await benchRoundTrips(3)).toEqual(reports.get(3))
  },
  timeoutMs,
)
