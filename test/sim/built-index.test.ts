import { expect, test } from 'vitest'
import { judgeBuild } from '../../sim/checkers/built-index.ts'
import { Referee } from '../../sim/checkers/referee.ts'
import { StoreError } from '../../src/base/errors.ts'
import { notRight } from '../../src/indexes/report.ts'

async function judged(build: () => Promise<void>): Promise<{ referee: Referee; error: unknown }> {
  const referee = new Referee(() => 0)
  const error = await judgeBuild(referee, 'ByName', build).catch((thrown: unknown) => thrown)
  return { referee, error }
}

test('IDX-6: a build that leaves its index unlike the rows is a violation, and its client hears of it', async () => {
  const fault = { kind: 'missing', index: 'ByName', entry: 'Ann' } as const
  const refusal = notRight({ name: 'ByName', flags: '' }, [fault])
  const { referee, error } = await judged(() => Promise.reject(refusal))
  expect(referee.violations).toMatchObject([{ rule: 'IDX-6', detail: { index: 'ByName' } }])
  expect(error).toBe(refusal)
})

test('IDX-6: a build that the world ends is no violation, and one that makes its index ready is counted', async () => {
  const lost = new StoreError('unavailable', 'no majority')
  const ended = await judged(() => Promise.reject(lost))
  expect([ended.referee.violations, ended.error]).toEqual([[], lost])
  expect(ended.referee.judgements()).toEqual({})
  const ready = await judged(() => Promise.resolve())
  expect([ready.referee.judgements(), ready.error]).toEqual([{ 'IDX-6': 1 }, undefined])
})
