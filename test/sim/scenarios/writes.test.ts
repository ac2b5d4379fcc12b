/** Races of writes: with a no-op, with a position long decided, with notices lost and come again. */
import { expect, test } from 'vitest'
import { ledByFirst, run, threeNodes, ways } from './story.ts'

test('R9 LOG-3: a write whose position was closed by a no-op takes effect at the next, and once', async () => {
  const story = await run(
    ledByFirst('R9: a no-op against the owner')
      // n1 accepts its own proposal of position 2, and no other node hears of it.
      .at(200.5)
      .cut(ways('n1', 'n2', 'n3'), 1)
      .at(200)
      .put('c1', { refKey: 1 })
      // A read at n2 learns from n1 that position 2 exists, and then n1 is gone.
      .at(202)
      .cut(ways('n3', 'n2'), 3)
      .latest('c2')
      .at(204.5)
      .cut([...ways('n1', 'n2', 'n3'), ...ways('n2', 'n1'), ...ways('n3', 'n1')], 900),
  )
  const own = { who: 'n1', verb: 'disk', kind: 'accept', position: 2, ballot: '0.n1.1' } as const
  expect(story.when(own)).toBeLessThan(202)
  expect(story.entryAt('n1', 2).transactions).toEqual([])
  expect(story.result.coverage['noop_proposed']).toBe(1)
  const [transaction, ...others] = story.entryAt('n1', 3).transactions
  expect(transaction?.mutations.length).toBeGreaterThan(0)
  expect(others).toEqual([])
  expect(story.whenNoted('c1', 'BASE/1 is written')).toBeGreaterThan(204.5)
})

test('R9 LOG-3: a write whose answer was lost, tried again through another node, takes effect once', async () => {
  const story = await run(
    ledByFirst('R9: the answer is lost')
      .client('c4', 'n1', 'n2', 'n3')
      // The node that the client asks first has done the work when its answer is lost.
      .at(190)
      .fault({ kind: 'lose-reply', atMicros: 190_000, node: 'n1' })
      .fault({ kind: 'lose-reply', atMicros: 190_000, node: 'n2' })
      .fault({ kind: 'lose-reply', atMicros: 190_000, node: 'n3' })
      .at(200)
      .put('c4', { refKey: 1 }),
  )
  const written = story.when({ who: 'n1', verb: 'does', kind: 'apply', position: 2 })
  expect(story.result.coverage['lost-reply']).toBeGreaterThan(0)
  expect(story.whenNoted('c4', 'BASE/1 is written')).toBeGreaterThan(written + 3)
  const intents = [1, 2, 3].flatMap((position) =>
    story.entryAt('n1', position).transactions.map((one) => `${one.session}/${one.sequence}`),
  )
  expect(new Set(intents).size).toBe(intents.length)
})

test('R9 LOG-3: a resent intent gets its outcome and is not proposed again', async () => {
  const story = await run(
    threeNodes('R9: the verdict is lost')
      .at(100)
      .blind('blind-1')
      // The leader, n3, has decided at 103.2; n2, which forwarded it, dies before it hears so.
      .at(103.5)
      .crash('n1')
      .crash('n2'),
  )
  const decided = { who: 'n3', verb: 'does', kind: 'chosen', before: 103.5 } as const
  expect(story.has(decided)).toBe(true)
  expect(story.has({ verb: 'does', kind: 'settled', before: 104 })).toBe(false)
  expect(story.result.coverage['intent sent again']).toBe(1)
  expect(story.all({ verb: 'does', kind: 'propose', before: 3_000 })).toHaveLength(1)
})

test('R15 LOG-4: a proposer that asks for votes at a long-decided position learns the decision', async () => {
  const story = await run(
    ledByFirst('R15: a prepare below what is applied')
      // n3 hears no other node; its own messages arrive, all at once, at 1,950.
      .at(150)
      .cut([...ways('n1', 'n3'), ...ways('n2', 'n3')], 1_800)
      .clog(ways('n3', 'n1', 'n2'), 1_800)
      .at(200)
      .put('c1', { refKey: 1 })
      .at(220)
      .put('c1', { refKey: 2 })
      // n3 takes n1 for dead after a second, and would propose at position 2 by itself.
      .at(300)
      .put('c3', { refKey: 3 }),
  )
  const askedAt = story.when({ who: 'n1', verb: 'gets', kind: 'prepare', peer: 'n3', position: 2 })
  expect(askedAt).toBeGreaterThan(
    story.when({ who: 'n1', verb: 'does', kind: 'apply', position: 3 }),
  )
  expect(story.result.coverage['vote_asked_at_applied_position']).toBeGreaterThan(0)
  expect(story.valueAt('n3', 2)).toEqual(story.valueAt('n1', 2))
  expect(story.valueAt('n3', 3)).toEqual(story.valueAt('n1', 3))
  expect(story.whenNoted('c3', 'BASE/3 is written')).toBeGreaterThan(1_950)
})

test('R16 LOG-1: replicas make up for a lost notice without any request', async () => {
  const story = await run(
    ledByFirst('R16: a notice lost')
      .at(200)
      .put('c1', { refKey: 1 })
      // Acceptances arrive at n1 at 203.1, and its notices go nowhere.
      .at(203)
      .cut(ways('n1', 'n2', 'n3'), 1),
  )
  expect(story.whenNoted('c1', 'BASE/1 is written')).toBeLessThan(210)
  for (const who of ['n2', 'n3']) {
    const appliedAt = story.when({ who, verb: 'does', kind: 'apply', position: 2 })
    expect(appliedAt).toBeGreaterThan(204)
    expect(appliedAt).toBeLessThan(3_000)
  }
})

test('R16 LOG-1: notices that come twice, and late, change nothing', async () => {
  const story = await run(
    ledByFirst('R16: notices come again')
      .link({ duplicate: 1_000_000, late: 1_000_000, lateMeanMicros: 100_000 })
      .at(200)
      .put('c1', { refKey: 1 })
      .at(300)
      .put('c2', { refKey: 2 })
      .at(400)
      .put('c3', { refKey: 3 }),
  )
  const appliedAt = story.when({ who: 'n2', verb: 'does', kind: 'apply', position: 2 })
  const notices = story.all({ who: 'n2', verb: 'gets', kind: 'committed', position: 2 })
  expect(notices.length).toBeGreaterThan(1)
  expect((notices.at(-1)?.timeMicros ?? 0) / 1_000).toBeGreaterThan(appliedAt)
  expect(story.all({ who: 'n2', verb: 'does', kind: 'apply', position: 2 })).toHaveLength(1)
  expect(story.result.coverage['late-duplicate']).toBeGreaterThan(0)
})
