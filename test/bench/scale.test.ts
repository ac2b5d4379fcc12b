/** `bench scale` on a few groups: what it reports, what it keeps, and how it ends. */
import { existsSync } from 'node:fs'
import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { describeScale } from '../../bench/describe.ts'
import { workFigures } from '../../bench/scale/summary.ts'
import type { ScaleReport } from '../../bench/scale/scale.ts'
import type { Slice } from '../../bench/scale/work.ts'
import { eventually, withFolder } from '../cluster/harness.ts'
import { runBench } from './program.ts'

const timeoutMs = 60_000

function slice(round: number, groups: number, cpuMicros: number, perSecond: number): Slice {
  const rest = { operations: 100, failures: 1, p50Ms: 1, p99Ms: 2 }
  return { round, groups, work: 'commits', cpuMicros, perSecond, ...rest }
}

function reportOf(text: string): ScaleReport {
  const report: unknown = JSON.parse(text)
  if (!isReport(report)) throw new Error('the output is no report')
  return report
}

function isReport(report: unknown): report is ScaleReport {
  return typeof report === 'object' && report !== null && 'recovery' in report
}

async function scale(keep: string, groups: string, rows = '1'): Promise<ScaleReport> {
  const tiny = ['--rounds', '1', '--seconds', '0.2', '--warm-up', '0', '--clients', '4']
  const flags = ['--groups', groups, '--rows-per-group', rows, '--keep', keep, ...tiny, '--json']
  const { code, stdout, stderr } = await runBench(['scale', ...flags])
  expect(code, stderr).toBe(0)
  return reportOf(stdout)
}

test('costs are compared with the smallest size in the same round', () => {
  const slices = [
    ...[slice(0, 10, 100, 900), slice(0, 1_000, 150, 300)],
    // The machine is slow here, for both alike.
    ...[slice(1, 10, 400, 90), slice(1, 1_000, 800, 30)],
    ...[slice(2, 10, 100, 900), slice(2, 1_000, 180, 300)],
  ]
  const { commits, reads } = workFigures(slices, 1_000, 10)
  expect(commits.cpuMicros).toEqual({ median: 180, least: 150, greatest: 800 })
  expect(commits.cpuRatio).toEqual({ median: 1.8, least: 1.5, greatest: 2 })
  expect(commits.timeRatio).toEqual({ median: 3, least: 3, greatest: 3 })
  expect(commits.failures).toBe(3)
  expect(reads.failures).toBe(0)
  expect(workFigures(slices, 10, 10).commits.cpuRatio.median).toBe(1)
})

test(
  'bench fills, starts, loads and kills each size, and leaves the kept folders as filled',
  { timeout: 2 * timeoutMs },
  async () => {
    await withFolder(async (keep) => {
      const report = await scale(keep, '60,20,60')
      expect(report.sizes.map(({ groups }) => groups)).toEqual([20, 60])
      for (const { work, start, filled, memoryAfterWork } of report.sizes) {
        for (const figures of Object.values(work)) {
          expect(figures.failures).toBe(0)
          expect(figures.perSecond.median).toBeGreaterThan(0)
        }
        expect(start.seconds.median).toBeGreaterThan(0)
        expect(start.memory.peak).toBeGreaterThanOrEqual(start.memory.own)
        expect(memoryAfterWork.resident).toBeGreaterThan(1_000_000)
        expect(filled.diskBytes).toBeGreaterThan(0)
      }
      expect(report.slices).toHaveLength(8)
      expect(report.recovery.groups).toBe(60)
      expect(report.isQuick).toBe(true)
      expect(describeScale(report)).toMatch(/ready in [\d.]+ s/)
      const again = await scale(keep, '20')
      expect(again.sizes[0]?.filled).toEqual(report.sizes[0]?.filled)
      const wide = await scale(keep, '20', '30')
      expect(wide.sizes[0]?.filled.rowsPerGroup).toBe(30)
      expect(wide.slices.reduce((sum, { failures }) => sum + failures, 0)).toBe(0)
      expect(describeScale(wide)).toMatch(/^rows +600$/m)
    })
  },
)

test('Ctrl-C while a node is filled ends it, and leaves no folder', { timeout: timeoutMs }, () =>
  withFolder(async (folder) => {
    const keep = join(folder, 'keep')
    const flags = ['--groups', '1000000', '--keep', keep]
    const result = await runBench(['scale', ...flags], {
      folder,
      meanwhile: async (child) => {
        const log = join(keep, 'groups-1000000', 'n1', 'log', 'CURRENT')
        await eventually('it fills', async () => existsSync(log) || undefined)
        child.kill('SIGINT')
      },
    })
    expect(result).toMatchObject({ code: 130, stdout: '' })
    expect(result.stderr).toContain('stopped; nothing is reported')
    expect(await readdir(folder)).toEqual(['keep'])
    expect(await readdir(keep)).toEqual([])
  }),
)

test('bench scale refuses unusable options in a sentence', { timeout: timeoutMs }, async () => {
  expect(await runBench(['scale', '--groups', '10,0'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("'10,0' is invalid. a whole number from 1 to"),
  })
  expect(await runBench(['scale', '--seconds', '0'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('a number of seconds above 0 is wanted'),
  })
  expect(await runBench(['scale', '--help'])).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('--groups <counts>'),
  })
  await withFolder(async (folder) => {
    const file = join(folder, 'file')
    await writeFile(file, '')
    const { code, stderr } = await runBench(['scale', '--groups', '1', '--keep', file])
    expect({ code, stderr }).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^bench: .*groups-1 cannot be made: ENOTDIR[^\n]*\n$/),
    })
  })
})
