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

test('LIVE-1: an operator gives a mistaken replacement up, though the node that it asks knows an earlier one alone', async () => {
  const story = threeNodes('LIVE-1: asks a node that is behind').lasting(9_000)
  const mistake = { kind: 'mistaken-replace', lengthMicros: 200_000 } as const
  story
    .at(100)
    .put('c1')
    .fault({ ...mistake, atMicros: 200_000, node: 'n3' })
  // The operator asks this node first each time. It is down as the second replacement begins, and has no link afterwards.
  story.at(1_500).partition(['n2'], 3_000).at(1_600).crash('n2', 100)
  story.fault({ ...mistake, atMicros: 1_650_000, node: 'n1' })
  const told = await run(story)
  expect(told.result.coverage).toMatchObject({ 'mistaken-replace': 2, change_copying: 2 })
  expect(told.result.coverage['change_given-up']).toBe(2)
})

test('LOG-19: a newcomer that starts anew as soon as it has told that it is restored still is', async () => {
  const restored = { who: 'n2', verb: 'does', kind: 'restored' } as const
  const write = (): ScenarioBuilder => {
    const story = threeNodes('LOG-19: a restored newcomer starts anew').lasting(9_000)
    return story.at(100).put('c1').at(1_000).replace('n2', 100)
  }
  const whenRestored = (await run(write())).when(restored)
  const told = await run(
    write()
      .at(whenRestored + 2)
      .crash('n2', 50),
  )
  expect(told.result.coverage).toMatchObject({ crash: 1, 'replaced store votes': 1 })
  expect(told.all(restored)).toHaveLength(1)
})

test('MOVE-6: a store that was replaced comes back, and is let in nowhere', async () => {
  // A newcomer takes up what the others hold within three rounds of digests, two seconds each.
  const story = underLoad(threeNodes('MOVE-6: the old store is back').lasting(12_000), 100, 3_000)
  const lost = { kind: 'replace', node: 'n2', downMicros: 100_000, backMicros: 500_000 } as const
  const told = await run(story.fault({ ...lost, atMicros: 1_000_000 }))
  const struck = { 'replaced store votes': 1, 'lost store both': 1, 'node: retire': 1 }
  expect(told.result.coverage).toMatchObject(struck)
  const backMs = told.when({ who: 'n2', verb: 'note', kind: 'has an old disk' })
  expect(told.has({ who: 'n2', verb: 'sends', after: backMs })).toBe(false)
})

test('MOVE-6: a change that a node with a fast clock began goes on at the pace of the others', async () => {
  const title = 'MOVE-6: begun by a fast clock'
  const story = underLoad(threeNodes(title).nodes(5).lasting(14_000), 100, 3_000)
  story.limits({ clockLeadMsMax: 60_000 })
  const fast = { node: 'n1', wallMicros: 20_000_000, monotonicMicros: 0 } as const
  story.fault({ kind: 'clock-jump', atMicros: 900_000, ...fast })
  // That node is down from then on: the others go on with the change.
  const told = await run(story.at(1_000).replace('n2', 300).at(1_100).crash('n1', 20_000))
  expect(told.result.coverage).toMatchObject({ 'clock-jump': 1, 'replaced store votes': 1 })
  expect(told.all({ who: 'n2', verb: 'does', kind: 'gate', before: 13_000 })).toHaveLength(1)
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

test('MOVE-6: a node is added under load, votes and proposes', async () => {
  const story = underLoad(
    threeNodes('MOVE-6: added under load').spares(1).lasting(6_000),
    100,
    5_000,
  )
  const told = await run(story.at(1_000).add('n4', 300))
  expect(told.result.coverage).toMatchObject({ add: 1, 'replaced store votes': 1 })
  expect(gatesOf(told, 'n4')).toBe(1)
  expect(gatesOf(told, 'n1')).toBe(1)
  expect(told.has({ who: 'n4', verb: 'does', kind: 'accept', after: 1_000 })).toBe(true)
})

test.each(['up', 'down'])(
  'MOVE-6: a node that is %s is removed under load, and ends',
  async (state) => {
    const story = underLoad(threeNodes(`MOVE-6: removed while ${state}`).lasting(6_000), 100, 5_000)
    if (state === 'down') story.at(900).crash('n3', 2_000)
    const told = await run(story.at(1_000).remove('n3'))
    expect(told.result.coverage).toMatchObject({ remove: 1, 'removed node ended': 1 })
    expect([gatesOf(told, 'n1'), gatesOf(told, 'n3')]).toEqual([1, 0])
    const after = { who: 'n3', verb: 'does', kind: 'accept', after: 3_000 } as const
    expect(told.has(after)).toBe(false)
  },
)

test('MOVE-6: three nodes become five, and three others of them are left', async () => {
  const story = underLoad(
    threeNodes('MOVE-6: three, five, three').spares(2).lasting(32_000),
    100,
    24_000,
  )
  story.at(1_000).add('n4').at(7_000).add('n5').at(15_000).remove('n1').at(20_000).remove('n2')
  const told = await run(story)
  expect(told.result.coverage).toMatchObject({ add: 2, remove: 2, 'removed node ended': 2 })
  expect(gatesOf(told, 'n3')).toBe(4)
  expect(told.has({ who: 'n5', verb: 'does', kind: 'accept', after: 22_000 })).toBe(true)
})

test('LOG-11: a node is added to a set whose first nodes have left but one, one with a smaller name', async () => {
  const title = 'LOG-11: the first nodes have left'
  const quiet = underLoad(threeNodes(title).spares(2).lasting(22_000), 100, 1_500)
  const story = underLoad(quiet, 18_000, 19_000)
  story.at(1_000).remove('n1').at(3_500).remove('n2').at(7_000).add('n5')
  const told = await run(story.at(14_000).add('n4'))
  expect(told.result.coverage).toMatchObject({ add: 2, remove: 2 })
  expect(told.result.coverage['voters_heard_of']).toBeGreaterThan(1)
  expect(gatesOf(told, 'n4')).toBe(1)
  expect(told.has({ who: 'n4', verb: 'does', kind: 'accept', after: 17_000 })).toBe(true)
})

test('MOVE-6: a node that was removed is added again with another store', async () => {
  const story = underLoad(threeNodes('MOVE-6: there and back').lasting(16_000), 100, 12_000)
  const told = await run(story.at(1_000).remove('n3').at(4_000).add('n3'))
  expect(told.result.coverage).toMatchObject({ remove: 1, add: 1, 'replaced store votes': 1 })
  expect([gatesOf(told, 'n1'), gatesOf(told, 'n3')]).toEqual([2, 1])
})

test.each(['three', 'two'])(
  'MOVE-3: a node leaves a set of %s, whose others need its seal',
  async (count) => {
    const story = underLoad(threeNodes(`MOVE-3: one of ${count} leaves`).lasting(9_000), 100, 7_000)
    // Of three nodes the last one is asleep; of two there is no other.
    if (count === 'three') story.at(900).crash('n3', 4_000).at(1_000).remove('n2')
    else story.at(1_000).remove('n3').at(4_000).remove('n2')
    const told = await run(story)
    expect(told.result.coverage['removed node ended']).toBe(count === 'three' ? 1 : 2)
    expect(told.has({ who: 'n1', verb: 'does', kind: 'accept', after: 6_500 })).toBe(true)
  },
)
