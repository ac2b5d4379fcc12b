/** The checker of reads of bounded staleness finds an answer that lacks a write from before its bound. */
import { expect, test } from 'vitest'
import { FreshnessChecker } from '../../sim/checkers/freshness-checker.ts'
import { Referee } from '../../sim/checkers/referee.ts'

function judged(position: number, readMicros: number, maxStalenessMs: number): number {
  let now = 0
  const referee = new Referee(() => now)
  const checker = new FreshnessChecker(referee, () => now)
  for (const [known, atMicros] of [
    [1, 100_000],
    [3, 200_000],
    [2, 210_000],
  ] as const) {
    now = atMicros
    checker.onKnown('g', known)
  }
  now = 1_000_000
  checker.onAnswered('n1', { group: 'g', position, maxStalenessMs }, readMicros)
  return referee.violations.length
}

test('STALE-1: an answer without a write that was known longer before than the bound is found', () => {
  expect(judged(2, 300_001, 100)).toBe(1)
  expect(judged(0, 200_001, 100)).toBe(1)
})

test('STALE-1: an answer that has all from before the bound is no find', () => {
  expect(judged(3, 300_001, 100)).toBe(0)
  expect(judged(2, 300_000, 100)).toBe(0)
  expect(judged(1, 300_000, 100)).toBe(0)
  expect(judged(0, 200_000, 100)).toBe(0)
})
