/**
 * Disks that went back in time: a node with such a disk must not vote again, whatever it does
 * meanwhile.
 */
import { expect, test } from 'vitest'
import { run, threeNodes } from './story.ts'

test('PAX-2: a node with an old log, alone, does not outgrow what the others remember of it', async () => {
  const story = threeNodes('PAX-2: an old disk, alone').lasting(9_000)
  // The flushes that the old disk lacks: a flush of n2 for each of these, remembered by n1 and n3.
  for (let refKey = 0; refKey < 8; refKey++) story.at(100 + 50 * refKey).put('c1', { refKey })
  story
    .fault({
      ...{ kind: 'stale-disk', node: 'n2', disk: 'both' },
      ...{ imageAtMicros: 150_000, atMicros: 600_000, downMicros: 50_000 },
    })
    .at(600)
    .partition(['n2', 'c2'], 5_000)
  // Each of these begins a group of its own: a promise that n2 would give to itself.
  for (let shard = 0; shard < 8; shard++) story.at(700 + 50 * shard).get('c2', { shard })
  for (let refKey = 20; refKey < 40; refKey++) story.at(800 + 50 * refKey).put('c2', { refKey })
  const told = await run(story.at(8_000).put('c1', { refKey: 9 }))
  expect(told.result.coverage).toMatchObject({ refused_by_peer: 1 })
  expect(told.has({ who: 'n2', verb: 'note', kind: 'has an old disk' })).toBe(true)
  expect(told.has({ who: 'n2', kind: 'flushed', before: 600 })).toBe(true)
  expect(told.has({ who: 'n2', kind: 'flushed', after: 600 })).toBe(false)
})
