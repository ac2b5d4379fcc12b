/**
 * Groups that no client writes to any more, while every disk of their replica set is replaced, one after the other. The empty
 * stores get them by snapshots alone, which stand in no flush.
 */
import { expect, test } from 'vitest'
import { run, threeNodes } from './story.ts'

test('LOG-19, MOVE-3: idle groups are there after each disk was replaced by an empty one, twice over', async () => {
  const story = threeNodes('LOG-19: idle groups').lasting(56_000)
  story.limits({ checkpointMs: 100, snapshotAfterEntries: 0 })
  for (let shard = 0; shard < 3; shard++) story.at(100 + shard).put('c1', { shard })
  let ms = 3_000
  for (const node of ['n1', 'n2', 'n3', 'n1', 'n2', 'n3']) {
    story.at(ms).replace(node, 100)
    ms += 8_000
  }
  for (const client of ['c1', 'c2', 'c3']) {
    for (let shard = 0; shard < 3; shard++) story.at(ms).get(client, { shard })
  }
  const told = await run(story)
  expect(told.result.coverage).toMatchObject({ replace: 6, 'replaced store votes': 6 })
  expect(told.result.coverage['snapshot_installed']).toBeGreaterThan(10)
})
