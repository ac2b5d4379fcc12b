/** Races of a change of the voters with what goes on meanwhile: copies, the ends of logs, leaders, calls and sessions. */
import { expect, test } from 'vitest'
import type { ScenarioBuilder } from '../../../sim/scenarios/scenario-builder.ts'
import { ledByFirst, run, threeNodes, ways } from './story.ts'

/** The client writes a cell of its own every 20 ms. */
function writing(story: ScenarioBuilder, client: string, fromMs: number, toMs: number): void {
  for (let ms = fromMs, refKey = 100; ms < toMs; ms += 20, refKey++) {
    story.at(ms).put(client, { refKey })
  }
}

test('LOG-19: a newcomer waits for a source that has what the first two to answer lacked', async () => {
  const story = threeNodes('LOG-19: two sources lack what others have').nodes(5).lasting(12_000)
  story.at(100).partition(['n3', 'n5', 'c3'], 2_390)
  writing(story, 'c1', 1_300, 2_000)
  story.at(2_500).replace('n2', 100)
  // The change has begun. From now on the newcomer hears from n3 and n5 alone, and these from no one else.
  const sources = ['n1', 'n4'].flatMap((from) => ways(from, 'n2', 'n3', 'n5'))
  const cutMs = [2_520, 5_500] as const
  story.at(cutMs[0]).cut(sources, cutMs[1] - cutMs[0])
  const told = await run(story)
  const last = { verb: 'does', kind: 'apply', position: 10 } as const
  expect(told.has({ ...last, who: 'n4', before: 2_400 })).toBe(true)
  for (const who of ['n3', 'n5']) expect(told.has({ ...last, who, before: cutMs[1] })).toBe(false)
  const restored = { who: 'n2', verb: 'does', kind: 'restored' } as const
  expect([told.has({ ...restored, before: cutMs[1] }), told.has(restored)]).toEqual([false, true])
  expect(told.has({ ...last, who: 'n2', before: told.when(restored) })).toBe(true)
})

test('SNAP-1: the logs of both sources give up what a newcomer has yet to copy', async () => {
  const story = threeNodes('SNAP-1: a copy while logs end').lasting(14_000)
  story.limits({ logRetainBytes: 1_000, truncateBytesMin: 1, logRetainMs: 1 })
  writing(story, 'c1', 100, 4_000)
  const told = await run(story.at(1_500).replace('n2', 100))
  expect(told.result.coverage).toMatchObject({ 'replaced store votes': 1 })
  expect(told.result.coverage['directory_taken']).toBeGreaterThan(0)
  expect(told.result.coverage['log_truncated']).toBeGreaterThan(0)
})

test('MOVE-3: the new store of a leader does not pass over the prepare that its old one was spared', async () => {
  const story = ledByFirst('MOVE-3: the leader lost what it accepted').lasting(12_000)
  // n1 leads position 2. Its acceptance is all that there is of the entry: it is gone with the disk.
  story
    .at(1_000)
    .cut(ways('n1', 'n2', 'n3'), 300)
    .at(1_005)
    .put('c1', { refKey: 1 })
  const told = await run(story.at(1_200).replace('n1', 100).at(8_000).put('c1', { refKey: 2 }))
  expect(told.result.coverage).toMatchObject({ 'replaced store votes': 1 })
  const again = told.all({ who: 'n1', verb: 'does', kind: 'accept', after: 1_300 })
  expect(told.has({ who: 'n1', verb: 'does', kind: 'accept', position: 2, before: 1_200 })).toBe(
    true,
  )
  expect(again.length).toBeGreaterThan(0)
  for (const { fields } of again) {
    expect(JSON.stringify(fields['ballot'])).toContain('"epoch":2')
  }
})

test('LOG-3: a transaction that crosses the seal arrives twice, and is carried out once', async () => {
  const story = ledByFirst('LOG-3: across the seal, twice').lasting(8_000)
  story.at(1_000).renew('n2')
  // The answers to c2 are lost while the nodes seal: its client sends the same calls once more.
  for (const [nth, ms] of [1_002, 1_006, 1_012, 1_020, 1_040].entries()) {
    story.at(ms).put('c2', { refKey: 10 + nth })
    story.at(ms + 1).cut(ways('n2', 'c2'), 30)
  }
  const told = await run(story)
  expect(told.result.coverage).toMatchObject({ renew: 1 })
  const epochs = told.all({ verb: 'does', kind: 'gate' }).map(({ fields }) => fields['epoch'])
  expect(epochs).toEqual([2, 2, 2])
  // The first call of each was carried out then. The call that came half a second later hears of it.
  for (const name of ['BASE/10', 'BASE/11', 'BASE/12', 'BASE/13']) {
    const answeredMs = told.whenNoted('c2', `told that ${name} is written`)
    expect(answeredMs).toBeGreaterThan(1_400)
  }
  expect(told.has({ who: 'n2', verb: 'does', kind: 'apply', position: 3, before: 1_400 })).toBe(
    true,
  )
})

test('LEASE-4: a new store shows a session what its old one had acknowledged, or nothing', async () => {
  const story = threeNodes('LEASE-4: a session goes on at the new store').lasting(10_000)
  for (const [nth, ms] of [100, 200, 300].entries()) story.at(ms).put('c2', { refKey: nth })
  story.at(500).replace('n2', 100)
  // The session reads whichever replica, before and after the new store has what it wrote.
  for (let ms = 600; ms < 9_000; ms += 100) story.at(ms).latest('c2', {}, false)
  const told = await run(story)
  expect(told.result.coverage).toMatchObject({ 'replaced store votes': 1 })
  const votesMs = told.when({ who: 'n2', verb: 'does', kind: 'gate' })
  const served = told.all({ who: 'n2', verb: 'does', kind: 'serve', after: votesMs })
  expect(served.length).toBeGreaterThan(0)
})
