/** `bench builds`: a build beside itself comes to about the same, and pairs are what is compared. */
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import type { Stamped } from '../../bench/build.ts'
import { quartiles, type BuildsReport } from '../../bench/builds.ts'
import { describeBuilds } from '../../bench/describe.ts'
import { withFolder } from '../cluster/harness.ts'
import { isNightly } from '../nightly-tests.ts'
import { runBench } from './program.ts'

const timeoutMs = 90_000
const root = fileURLToPath(new URL('../..', import.meta.url))

function isReport(report: unknown): report is Stamped<BuildsReport> {
  return typeof report === 'object' && report !== null && 'ratios' in report
}

test.runIf(isNightly)(
  'a build beside itself, in slices that take turns',
  { timeout: timeoutMs },
  () =>
    withFolder(async (folder) => {
      const slices = [
        '--slices',
        '3',
        '--seconds',
        '0.5',
        '--warm-up',
        '1',
        '--rest',
        '0.5',
        '--clients',
        '8',
      ]
      const run = runBench(['builds', root, ...slices, '--json'], { folder })
      const { code, stdout, stderr } = await run
      expect(code, stderr).toBe(0)
      const report: unknown = JSON.parse(stdout)
      if (!isReport(report)) throw new Error('the output is no report')
      expect(report).toMatchObject({ failures: 0, isQuick: true })
      // Of the same sources, if there is a git to tell of them.
      expect(report.other).toEqual(report.build ?? { folder: root })
      expect(report.slices).toHaveLength(3)
      const pairs = report.slices.map(({ own, other }) => own.perSecond / other.perSecond)
      expect(report.ratios.perSecond.median).toBeCloseTo(pairs.toSorted((a, b) => a - b)[1] ?? 0, 3)
      for (const { own, other } of report.slices) {
        for (const side of [own, other]) {
          expect(side.perSecond).toBeGreaterThan(0)
          expect(side.cpuPer1000).toBeGreaterThan(0)
          expect(side.p99Ms).toBeGreaterThanOrEqual(side.p50Ms)
        }
      }
      expect(describeBuilds(report)).toMatch(
        /p50 ms +[\d.]+ +[\d.]+ {2}[\d.]+ \([\d.]+ to [\d.]+\)/,
      )
    }),
)

test('bench reports a folder without a build in one sentence', () =>
  withFolder(async (folder) => {
    expect(await runBench(['builds', folder], { folder })).toMatchObject({
      code: 1,
      stdout: '',
      stderr: `bench: there is no build in ${folder}; run npm run build there first\n`,
    })
  }))

test('quarters of the values lie outside', () => {
  expect(quartiles([5, 1, 4, 2, 3])).toEqual({ lower: 2, median: 3, upper: 4 })
  expect(quartiles([1, 2])).toEqual({ lower: 1.25, median: 1.5, upper: 1.75 })
  expect(quartiles([7])).toEqual({ lower: 7, median: 7, upper: 7 })
})
