import { expect, test } from 'vitest'
import { nothingMeasured } from '../../bench/nothing-measured.ts'
import { summarizeLoad } from '../../bench/load.ts'
import { runBench } from './program.ts'

test('a measurement without a sample is named, though its percentiles look well', () => {
  const nothing = summarizeLoad([], 0, 1_000)
  expect(nothing.p99Ms).toBe(0)
  const some = summarizeLoad([1, 2], 0, 1_000)
  expect(nothingMeasured({ bench: 'x', failures: 0, works: [some, some] })).toEqual([])
  expect(nothingMeasured({ bench: 'x', works: [some, nothing] })).toEqual(['works[1].operations'])
  expect(nothingMeasured({ best: 0, steps: [{ perSecond: Number.NaN }] })).toEqual([
    ...['best', 'steps[0].perSecond'],
  ])
  // While a node is away a second may pass without a commit.
  expect(nothingMeasured({ seconds: [{ second: 3, commits: 0 }] })).toEqual([])
})

test.each([
  ['compare --against etcdd', 'did you mean "etcd"?'],
  ['compare --operations', 'argument missing'],
  ['compare --operations commit', 'did you mean "commits"?'],
  ['ycsb --workloads', 'argument missing'],
  ['ycsb --workloads q', 'unknown workload "q"'],
  ['damage --steps rowz', 'did you mean "rows"?'],
  ['damage --log-store disk', 'Allowed choices are leveldb, files'],
  ['commits --seconds 0', 'a whole number of 1 or more'],
  ['commits --seconds 1e3', 'a whole number of 1 or more'],
  ['commits --second 3', "unknown option '--second'"],
  ['commits 3', 'too many arguments'],
  ['scale --groups ,', 'a whole number'],
  ['comits', 'Did you mean commits?'],
])('bench %s is refused with 2, and says what is wanted', async (line, said) => {
  const { code, stdout, stderr } = await runBench(line.split(' '))
  expect([code, stdout]).toEqual([2, ''])
  expect(stderr).toContain(said)
})
