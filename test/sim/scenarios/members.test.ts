/** An operator changes the voters of a replica set: under load, and past nodes that fail, sleep or come back. */
import { expect, test } from 'vitest'
import type { ScenarioBuilder } from '../../../sim/scenarios/scenario-builder.ts'
import { run, threeNodes, type Story } from './story.ts'

/** Each client writes a cell every 100 ms, to two groups. */
function underLoad(story: ScenarioBuilder, fromMs: number, toMs: number): ScenarioBuilder {
  for (let ms = fromMs, refKey = 0; ms < toMs; ms += 100, refKey++) {
    story.at(ms).put('c1', { refKey })
    story.at(ms + 30).put('c2', { shard: 1, refKey })
    story.at(ms + 60).put('c3', { refKey, row: 1 })
  }
  return story
}

function gatesOf(told: Story, who: string): number {
  return told.all({ who, verb: 'does', kind: 'gate' }).length
}

test('MOVE-6: a lost store is replaced by an empty one while clients write', async () => {
  const story = underLoad(threeNodes('MOVE-6: replaced under load').lasting(6_000), 100, 5_000)
  const told = await run(story.at(1_000).replace('n2', 300))
  expect(told.result.coverage).toMatchObject({ replace: 1, 'replaced store votes': 1 })
  expect(gatesOf(told, 'n2')).toBe(1)
  // It is the store at the seat that votes, and proposes.
  const votes = told.all({ who: 'n2', verb: 'does', kind: 'accept', after: 1_000 })
  expect(votes.length).toBeGreaterThan(0)
  expect(votes.every(({ fields }) => JSON.stringify(fields['ballot']).includes('"epoch":2'))).toBe(
    true,
  )
})

test.each(['n1', 'n2', 'n3'])('MOVE-3: an epoch begins while %s crashes, twice', async (node) => {
  const story = underLoad(threeNodes(`MOVE-3: renewed, crash of ${node}`), 100, 2_500)
  // The entry that begins the epoch, the seals and the gates each take some milliseconds.
  for (const [index, ms] of [1_003, 1_040].entries()) story.at(ms).crash(node, 20 + 200 * index)
  const told = await run(story.at(1_000).renew('n1'))
  expect(told.result.coverage).toMatchObject({ renew: 1 })
  for (const one of ['n1', 'n2', 'n3']) expect(gatesOf(told, one)).toBeGreaterThan(0)
})

test('MOVE-3: a node that slept through two epochs votes in the third', async () => {
  const story = underLoad(threeNodes('MOVE-3: asleep for two epochs').lasting(7_000), 100, 6_000)
  story.at(500).crash('n3', 4_000)
  const told = await run(story.at(1_000).renew('n1').at(2_500).renew('n2'))
  expect(told.result.coverage).toMatchObject({ renew: 2 })
  const gates = told.all({ who: 'n3', verb: 'does', kind: 'gate' })
  expect(gates.map(({ fields }) => fields['epoch'])).toEqual([3])
  expect(gatesOf(told, 'n1')).toBe(2)
})

test('MOVE-6: a store has no link while it is being replaced, and has one again when that was given up', async () => {
  const story = underLoad(threeNodes('MOVE-6: replaced in error').lasting(6_000), 100, 5_000)
  const mistake = { kind: 'mistaken-replace', node: 'n2', lengthMicros: 1_000_000 } as const
  story.at(1_000).fault({ ...mistake, atMicros: 1_000_000 })
  for (const ms of [1_200, 1_500]) story.at(ms).reset('n1', 'n2').reset('n3', 'n2')
  const told = await run(story)
  expect(told.result.coverage).toMatchObject({ 'mistaken-replace': 1 })
  expect(told.result.coverage['refused_by_peer']).toBeGreaterThan(0)
  expect(told.result.coverage['node: retire']).toBeUndefined()
  const votes = { who: 'n2', verb: 'does', kind: 'accept' } as const
  expect(told.has({ ...votes, after: 1_700, before: 1_950 })).toBe(false)
  expect(told.has({ ...votes, after: 3_000 })).toBe(true)
})

test('MOVE-6: a store that was replaced comes back, and is let in nowhere', async () => {
  // A newcomer takes up what the others hold within three rounds of digests, two seconds each.
  const story = underLoad(threeNodes('MOVE-6: the old store is back').lasting(12_000), 100, 3_000)
  story
    .at(1_000)
    .replace('n2', 100)
    .fault({
      ...{ kind: 'stale-disk', node: 'n2', disk: 'both' },
      ...{ imageAtMicros: 150_000, atMicros: 10_000_000, downMicros: 50_000 },
    })
  const told = await run(story)
  expect(told.result.coverage).toMatchObject({ 'replaced store votes': 1, 'node: retire': 1 })
  expect(told.has({ who: 'n2', verb: 'note', kind: 'has an old disk' })).toBe(true)
  expect(told.has({ who: 'n2', verb: 'sends', after: 10_001 })).toBe(false)
})

test('MOVE-3: a voter with a damaged record tells a seal, and its group goes on in the next epoch', async () => {
  const story = underLoad(threeNodes('MOVE-3: a damaged record').lasting(6_000), 100, 4_000)
  const rot = { kind: 'bit-rot', node: 'n3', disk: 'log', bit: 5, isInValues: true } as const
  for (const place of [900_000, 990_000]) story.fault({ ...rot, atMicros: 1_490_000, place })
  // All begin anew, and know of the last entries only that they accepted them.
  const told = await run(story.at(1_500).crashAll(100).at(1_700).renew('n1'))
  expect(told.result.coverage).toMatchObject({ renew: 1 })
  expect(told.result.coverage['bit-rot log']).toBeGreaterThan(0)
  expect(gatesOf(told, 'n1')).toBe(1)
})
