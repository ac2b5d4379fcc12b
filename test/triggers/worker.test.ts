import { expect, test } from 'vitest'
import type { TriggerCell } from '../../src/triggers/definition.ts'
import { shards, TriggerBench } from './kit.ts'

const [first = 0, second = 0] = shards

test('TRIG-2: every cell of the column is handled, those that were there and new ones', async () => {
  const bench = new TriggerBench()
  await bench.put(first)
  await bench.put(first, 'STATUS')
  await bench.put(first)
  const seen: TriggerCell[] = []
  const living = bench.start([
    { name: 'bill', column: 'BASE', handle: (cell) => void seen.push(cell) },
  ])
  await bench.until('two cells', () => seen.length === 2)
  await bench.put(second)
  await bench.until('three cells', () => seen.length === 3)
  expect(seen.map(({ shard, addedId }) => [shard, addedId])).toEqual([
    [first, 1],
    [first, 3],
    [second, 1],
  ])
  await living.stop()
  expect(living.ended()).toBe('well')
  expect(await bench.settle(bench.offsets().current(first))).toMatchObject({ after: 3, marked: 0 })
})
