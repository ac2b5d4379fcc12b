/** Wrong rows of one node: they are found, not shown, and mended by a peer while all else goes on. */
import { expect, test } from 'vitest'
import type { ScenarioBuilder } from '../../../sim/scenarios/scenario-builder.ts'
import { run, threeNodes } from './story.ts'

const million = 1_000_000

/** Six rows, which are on the data disks before the damage. */
function written(name: string): ScenarioBuilder {
  const story = threeNodes(name).lasting(12_000)
  for (let refKey = 0; refKey < 6; refKey++) story.at(100 + 50 * refKey).put('c1', { refKey })
  return story
}

function damage(
  story: ScenarioBuilder,
  node: string,
  inRows: 'bit' | 'lost' | 'hash',
  place = 0,
): void {
  const at = { atMicros: 2_500_000, place, bit: 300 }
  story.fault({ kind: 'bit-rot', node, disk: 'data', inRows, ...at })
}

const calm = { rowCacheBytesMax: 0, compareMs: 100_000, scrubPauseMs: 100_000, applierDelayMs: 10 }

test('HEAL-4: a bit that flipped in a row is found as the row is read, and a peer mends the group', async () => {
  const story = written('HEAL-4: a bit flips in a row').limits(calm)
  damage(story, 'n2', 'bit')
  for (let refKey = 0; refKey < 6; refKey++) story.at(3_000 + 50 * refKey).get('c2', { refKey })
  const told = await run(story.at(6_000).put('c2', { refKey: 9 }))
  expect(told.result.coverage).toMatchObject({ damaged_row_found: 1, group_mended: 1 })
})

test('HEAL-7: a row that is gone is found by a count of the rows, and a peer mends the group', async () => {
  const story = written('HEAL-7: a row is gone').limits({ ...calm, scrubPauseMs: 1_500 })
  damage(story, 'n2', 'lost')
  const told = await run(story.at(6_000).get('c2', { refKey: 0 }))
  expect(told.result.coverage).toMatchObject({ scrub_found_wrong_rows: 1, group_mended: 1 })
})

test('HEAL-7: rows of two nodes that are gone at once come back, each from a node that has them', async () => {
  const story = written('HEAL-7: rows of two nodes are gone').limits({
    ...calm,
    scrubPauseMs: 1_500,
  })
  damage(story, 'n2', 'lost')
  damage(story, 'n3', 'lost', million - 1)
  const told = await run(story.at(6_000).get('c3', { refKey: 0 }))
  expect(told.result.coverage).toMatchObject({ scrub_found_wrong_rows: 2, group_mended: 2 })
})

test('HEAL-3: a hash that is another one than at the other nodes is found by a comparison, and mended', async () => {
  const story = written('HEAL-3: a state record has a wrong hash').limits({
    ...calm,
    ...{ compareMs: 1_000, compareAgainMs: 50 },
  })
  damage(story, 'n2', 'hash')
  const told = await run(story.at(8_000).get('c2', { refKey: 0 }))
  expect(told.result.coverage['comparison_found_difference']).toBeGreaterThan(0)
  expect(told.result.coverage).toMatchObject({ group_aside_rows: 1, group_mended: 1 })
})
