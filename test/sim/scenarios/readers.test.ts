/** Read-only members of a replica set: they serve reads and pass writes on, and no majority counts them. */
import { expect, test } from 'vitest'
import type { ScenarioBuilder } from '../../../sim/scenarios/scenario-builder.ts'
import { run, threeNodes, type Story } from './story.ts'

/** Client c3 has node n3 alone: it writes, and reads what it wrote, every 100 ms. The others write beside it. */
function underLoad(story: ScenarioBuilder, fromMs: number, toMs: number): ScenarioBuilder {
  for (let ms = fromMs, refKey = 0; ms < toMs; ms += 200, refKey++) {
    story.at(ms).put('c1', { refKey })
    story.at(ms + 30).put('c3', { refKey, row: 1 })
    story.at(ms + 60).get('c3', { refKey, row: 1 })
    story.at(ms + 80).latest('c3')
  }
  return story
}

/** While the node is a read-only member: from its seal to the gate of the epoch that makes it a voter again. */
function whileReading(
  told: Story,
  node: string,
): { readonly after: number; readonly before: number } {
  const epochs = told.all({ who: node, verb: 'does', kind: 'epoch' })
  const sealed = epochs.find(({ fields }) => fields['isMember'] === false)
  const after = (sealed?.timeMicros ?? 0) / 1_000
  expect(after, `${node} is a read-only member for a time`).toBeGreaterThan(0)
  return { after, before: told.when({ who: node, verb: 'does', kind: 'gate', after }) }
}

function expectNoVotes(told: Story, node: string): void {
  const period = whileReading(told, node)
  expect(period.before - period.after).toBeGreaterThan(1_000)
  for (const kind of ['promise', 'accept', 'propose', 'grant']) {
    expect(told.all({ who: node, verb: 'does', kind, ...period }), kind).toEqual([])
  }
  for (const kind of ['promised', 'accepted', 'prepare', 'accept', 'highest', 'renew']) {
    expect(told.all({ who: node, verb: 'sends', kind, ...period }), kind).toEqual([])
  }
  expect(told.has({ who: node, verb: 'sends', kind: 'forward', ...period })).toBe(true)
  expect(told.has({ who: node, verb: 'sends', kind: 'query', ...period })).toBe(true)
}

test('RDR-1, RDR-2: a voter becomes a read-only member under load, whose client writes and reads on, and votes again', async () => {
  const story = underLoad(threeNodes('RDR-1: demoted under load').lasting(9_000), 100, 7_000)
  const told = await run(story.at(1_000).demote('n3', 3_000))
  const { coverage } = told.result
  expect(coverage).toMatchObject({ demote: 1, 'read-only member votes again': 1 })
  expectNoVotes(told, 'n3')
})

test('RDR-3: the leader of its groups becomes a read-only member, and others lead them', async () => {
  const story = underLoad(threeNodes('RDR-3: a leader is demoted').lasting(9_000), 100, 7_000)
  const told = await run(story.at(1_000).demote('n1', 3_000))
  expect(told.result.coverage).toMatchObject({ demote: 1, 'read-only member votes again': 1 })
  whileReading(told, 'n1')
})

test('RDR-3: a node that slept through its demotion is a read-only member as it wakes', async () => {
  const story = underLoad(threeNodes('RDR-3: asleep as demoted').lasting(12_000), 100, 9_000)
  story.at(900).crash('n3', 3_000)
  const told = await run(story.at(1_000).demote('n3', 5_000))
  expect(told.result.coverage).toMatchObject({ demote: 1, 'read-only member votes again': 1 })
  const { after } = whileReading(told, 'n3')
  expect(after).toBeGreaterThan(3_900)
  // Its seal does not count: it was asleep.
  const first = told.first({ who: 'n3', verb: 'does', kind: 'epoch' })
  expect(first.fields).toMatchObject({ epoch: 2, isMember: false })
})

test('RDR-1: the death of a read-only member delays no write', async () => {
  const story = threeNodes('RDR-1: a dead member').lasting(9_000)
  for (let ms = 100, refKey = 0; ms < 6_000; ms += 100, refKey++) story.at(ms).put('c1', { refKey })
  story.at(2_500).crash('n3', 2_000)
  const told = await run(story.at(1_000).demote('n3', 4_000))
  expect(told.result.coverage).toMatchObject({ demote: 1, 'read-only member votes again': 1 })
  const chosen = told.all({ who: 'n1', verb: 'does', kind: 'apply', after: 2_500, before: 4_500 })
  expect(chosen.length).toBeGreaterThanOrEqual(18)
})

test.each([1_040, 4_020, 4_100])(
  'RDR-3: a member crashes at %d ms, as it loses or gets its vote',
  async (ms) => {
    const title = `RDR-3: crash at ${ms}`
    const story = underLoad(threeNodes(title).lasting(11_000), 100, 8_000)
    story.at(ms).crash('n3', 300)
    const told = await run(story.at(1_000).demote('n3', 3_000))
    expect(told.result.coverage).toMatchObject({ demote: 1, 'read-only member votes again': 1 })
  },
)

test('RDR-3: a node joins as a read-only member, and gets a vote later', async () => {
  const story = underLoad(threeNodes('RDR-3: joins without a vote').spares(1), 100, 9_000)
  const joins = { kind: 'add', node: 'n4', downMicros: 100_000, readerMicros: 2_000_000 } as const
  const told = await run(story.lasting(14_000).fault({ ...joins, atMicros: 1_000_000 }))
  const struck = { add: 1, 'added as a read-only member': 1, 'replaced store votes': 1 }
  expect(told.result.coverage).toMatchObject(struck)
  // No epoch begins before it gets a vote.
  const epochs = told.all({ who: 'n1', verb: 'does', kind: 'epoch' })
  expect(epochs.map(({ fields }) => fields['epoch'])).toEqual([2])
})

test('RDR-3: with two nodes, one becomes a read-only member, and the other goes on alone', async () => {
  const story = threeNodes('RDR-3: of two').nodes(2).client('c3', 'n2').lasting(9_000)
  underLoad(story, 100, 6_000)
  const told = await run(story.at(1_000).demote('n2', 3_000))
  expect(told.result.coverage).toMatchObject({ demote: 1, 'read-only member votes again': 1 })
})
