/** `bench schemaless` on a few cells: the counts are right, and its report can be read. */
import { expect, test } from 'vitest'
import { describeSchemaless } from '../../bench/describe.ts'
import type { SchemalessReport } from '../../bench/schemaless/schemaless.ts'
import { isNightly } from '../nightly-tests.ts'
import { runBench } from './program.ts'

function isReport(report: unknown): report is SchemalessReport {
  return typeof report === 'object' && report !== null && 'triggers' in report
}

test.runIf(isNightly)('puts, the lag of an index and triggers are measured', async () => {
  const tiny = ['--clients', '8', '--seconds', '0.4', '--rounds', '1']
  const backlog = ['--backlog', '300', '--shards', '64']
  const { code, stdout, stderr } = await runBench(['schemaless', ...tiny, ...backlog, '--json'])
  expect(code, stderr).toBe(0)
  const report: unknown = JSON.parse(stdout)
  if (!isReport(report)) throw new Error('the output is no report')
  expect(report.isQuick).toBe(true)
  expect(report.puts.map(({ work, failures }) => [work, failures])).toEqual([
    ['put', 0],
    ['indexed put', 0],
  ])
  expect(report.puts.every(({ operations }) => operations > 0)).toBe(true)
  expect(report.lag).toMatchObject({ failures: 0 })
  expect(report.lag.p99Ms).toBeGreaterThan(0)
  expect(report.triggers.cells).toBe(300)
  expect(describeSchemaless(report)).toContain('index behind its cell: p50 ')
})
