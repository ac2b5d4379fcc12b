/** Nodes that crash again while what their log gave back is on its way to the data disk. */
import { expect, test } from 'vitest'
import { run, threeNodes } from './story.ts'

test('LIVE-3: a crash between two batches of a recovery leaves no group behind the log', async () => {
  // A batch takes one group: five groups wait for their turn one behind the other.
  const story = threeNodes('LIVE-3: down again in recovery').limits({ applierBatchBytesMax: 1 })
  story.fault({
    ...{ kind: 'crash-in-recovery', atMicros: 190_000, node: 'n2', downMicros: 1_000 },
    // The entries that n2 applies meanwhile are in its log alone; started again, it goes down in the third
    // batch.
    ...{ lengthMicros: 70_000, writesBefore: [2] },
  })
  for (let shard = 0; shard < 4; shard++) story.at(200).put('c1', { shard })
  // No client asks for this group ever after: entries that n2 does not take up by itself stay
  // behind.
  story.at(210).blind('blind-1', 'y')
  // Decisions become durable along with what is written next.
  for (let refKey = 1; refKey < 4; refKey++) story.at(210 + 10 * refKey).put('c1', { refKey })
  const told = await run(story)
  expect(told.result.coverage).toMatchObject({ 'crash-in-recovery': 1 })
  const starts = told.all({ who: 'n2', verb: 'note', kind: 'starts', after: 200 })
  const [first, second] = starts.map(({ timeMicros }) => timeMicros / 1_000)
  expect(starts.length).toBe(2)
  // Two batches between the starts; the group behind them is applied again after the second one.
  const between = { who: 'n2', after: first ?? 0, before: second ?? 0 }
  expect(told.all({ ...between, verb: 'does', kind: 'applied-batch' }).length).toBe(2)
  const applied = told.all({ who: 'n2', verb: 'does', kind: 'apply', after: second ?? 0 })
  const groups = new Set(applied.map(({ fields }) => String(fields['group'])))
  expect([...groups].some((group) => group.includes('blind'))).toBe(true)
})
