/** A node that was away comes back to a load that goes on. */
import { expect, test } from 'vitest'
import { run, threeNodes } from './story.ts'

const groups = 4
const entriesOfEach = 6

test('LIVE-6: a returning replica fetches a few of many groups at a time, once each, and others go on', async () => {
  // A slice is one entry: the test judges the work of one turn for n3 frame by frame.
  const story = threeNodes('LIVE-6: a return').limits({ slicePiecesMax: 1, fetchesMax: 32 })
  story.at(100).crash('n3', 900)
  for (let refKey = 0; refKey < entriesOfEach; refKey++) {
    for (let shard = 0; shard < groups; shard++) {
      story.at(150 + refKey * 100 + shard).put('c1', { shard, refKey })
    }
  }
  // While it catches up, every group is written again.
  for (let shard = 0; shard < groups; shard++) {
    story.at(1_010 + shard).put('c2', { shard, refKey: entriesOfEach })
  }
  const told = await run(story)
  const back = told.when({ who: 'n3', verb: 'note', kind: 'starts', after: 500 })
  const applied = told.all({ who: 'n3', verb: 'does', kind: 'apply', after: back })
  expect(applied.length).toBe(groups * (entriesOfEach + 1))
  const asked = told.all({ who: 'n3', verb: 'sends', kind: 'fetch', after: back })
  expect(asked.length).toBeGreaterThanOrEqual(groups)
  // One for each entry that was missed, and few in vain.
  expect(asked.length).toBeLessThanOrEqual(groups * (entriesOfEach + 2))
  const entries = told.all({ verb: 'sends', kind: 'entries', peer: 'n3', after: back })
  expect(entries.length).toBeLessThanOrEqual(asked.length)
})
