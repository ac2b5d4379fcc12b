import { expect, test } from 'vitest'
import { describeFailure, failureAsJson, mergeFailures } from '../../sim/failures.ts'
import type { RunResult } from '../../sim/result.ts'

function failed(seed: number, rule: string, sentence: string): RunResult {
  const violation = { rule, sentence, timeMicros: seed, detail: { seed } }
  const echo = { ...violation, rule: 'LOG-2', sentence: `An echo in ${seed}.` }
  return {
    ...{ seed, outcome: 'safety', violations: [violation, echo], hash: `${seed}`, events: 10 },
    ...{ commits: 1, simulatedSeconds: 1, wallSeconds: 1, coverage: {}, judgements: {}, swarm: '' },
  }
}

const merged = mergeFailures([
  failed(3, 'PAX-1', 'Two values are chosen.'),
  failed(5, 'LIVE-1', 'A call did not end.'),
  failed(8, 'PAX-1', 'An acceptor forgot.'),
  ...[9, 10, 11, 12, 13].map((seed) => failed(seed, 'PAX-1', 'Two values are chosen.')),
])

test('failures are one when rule and sentence of their first violations are', () => {
  expect(merged.map(failureAsJson)).toEqual([
    { rule: 'PAX-1', sentence: 'Two values are chosen.', count: 6, seeds: [3, 9, 10, 11, 12, 13] },
    { rule: 'LIVE-1', sentence: 'A call did not end.', count: 1, seeds: [5] },
    { rule: 'PAX-1', sentence: 'An acceptor forgot.', count: 1, seeds: [8] },
  ])
  expect(merged.map(({ first }) => first.seed)).toEqual([3, 5, 8])
})

test('a line for people counts all seeds of a failure and names five', () => {
  expect(merged.map(describeFailure)).toEqual([
    'PAX-1: Two values are chosen. 6 seeds, the first is 3: 3, 9, 10, 11, 12, …',
    'LIVE-1: A call did not end. 1 seed, the first is 5: 5',
    'PAX-1: An acceptor forgot. 1 seed, the first is 8: 8',
  ])
  expect(mergeFailures([])).toEqual([])
})

test('a failure without a violation, as of a process that ended, has a signature too', () => {
  const ended: RunResult = { ...failed(4, '', ''), outcome: 'crash', violations: [] }
  expect(mergeFailures([ended]).map(failureAsJson)).toEqual([
    { rule: 'unknown', sentence: '', count: 1, seeds: [4] },
  ])
})
