/**
 * Races between read leases and writes: the holders that a write waits for, and messages that reach
 * a reader late. All checkers judge each run, LEASE-1 and LEASE-2 among them.
 */
import { expect, test } from 'vitest'
import type { ScenarioBuilder } from '../../../sim/scenarios/scenario-builder.ts'
import {
  aroundSecond,
  between,
  delaying,
  expectToAsk,
  firstShownMs,
  grantEndMs,
  hasAsked,
  heldBySecond,
  holdersNamed,
  lastMs,
  readingAt,
  servedAlone,
  thirdAnswers,
  toSecond,
  writtenMs,
  writtenPast,
} from './lease-story.ts'
import { ledByFirst, run, ways } from './story.ts'

test('G16 LEASE-1: a write is acknowledged only when a lease holder that is cut off can serve no more', async () => {
  const story = await run(
    readingAt(
      writtenPast('G16: the holder is cut off', aroundSecond, 1_500),
      ...[210, 500, 900, 1_300],
    ),
  )
  expect(holdersNamed(story, 2)).toBe(1)
  const writtenAt = writtenMs(story)
  const old = servedAlone(story, 1, 205)
  expect(old).toHaveLength(3)
  expect(lastMs(old)).toBeLessThan(writtenAt)
  const endMs = grantEndMs(story, 190)
  expect(writtenAt).toBeGreaterThan(endMs)
  expect(writtenAt).toBeLessThan(endMs + 100)
  expect(servedAlone(story, 1, writtenAt)).toEqual([])
  // A client that asks after that waits for the others, and is shown the written row.
  expect(story.whenNoted('c2', 'is shown BASE/1')).toBeGreaterThan(1_690)
})

test('G16 LEASE-1: a holder that is heard, and hears nothing, delays a write by one lease time at most', async () => {
  const story = await run(
    readingAt(writtenPast('G16: the holder is deaf', toSecond, 1_800), ...[210, 900, 1_200]),
  )
  const renewals = story.all({ who: 'n1', verb: 'gets', kind: 'renew', peer: 'n2', after: 300 })
  const writtenAt = writtenMs(story)
  expect(renewals[0]?.timeMicros ?? Number.NaN).toBeLessThan(writtenAt * 1_000)
  expect(lastMs(servedAlone(story, 1))).toBe(901)
  // Not a later end than the lease had when n1 asked n3 to end it.
  const askedAt = story.when({ who: 'n3', verb: 'gets', kind: 'revoke', position: 2 })
  expect(writtenAt).toBeGreaterThan(grantEndMs(story, askedAt))
  expect(writtenAt).toBeLessThan(grantEndMs(story, askedAt) + 100)
})

test('G16 LEASE-1: one revocation of two does not release the writer', async () => {
  const story = await run(
    readingAt(
      heldBySecond('G16: one revocation of two')
        .at(190)
        .cut(between('n2', 'n1'), 1_500)
        .at(200)
        .put('c1', { refKey: 1 }),
      ...[600, 900, 1_300],
    ),
  )
  const endedAt = story.when({ who: 'n1', verb: 'gets', kind: 'revoked', peer: 'n3', position: 2 })
  expect(endedAt).toBeLessThan(600)
  // n1 still counts for n2, and n2 for itself.
  expect(servedAlone(story, 1, 600)).toHaveLength(2)
  const writtenAt = writtenMs(story)
  expect(writtenAt).toBeGreaterThan(lastMs(servedAlone(story, 1)))
  expect(writtenAt).toBeLessThan(1_300)
  expectToAsk(story, 1_300)
})

/** For `lengthMs` neither n1's proposals nor its notices of the position reach n2. */
function unheardBySecond(name: string, lengthMs: number): ScenarioBuilder {
  return heldBySecond(name).at(199).cut(ways('n1', 'n2'), lengthMs).put('c1', { refKey: 1 })
}

test('R16 LEASE-1: an invalidation that is lost is said again', async () => {
  const story = await run(
    readingAt(unheardBySecond('R16: an invalidation lost', 100), ...[220, 310, 500]),
  )
  const toldAt = story.when({ who: 'n2', verb: 'gets', kind: 'invalidate', position: 2 })
  expect(toldAt).toBeGreaterThan(299)
  // It served what it had as long as it knew of nothing, and the writer waited for it.
  expect(servedAlone(story, 1, 210).length).toBeGreaterThan(0)
  expect(writtenMs(story)).toBeGreaterThan(toldAt)
  expect(writtenMs(story)).toBeLessThan(grantEndMs(story, 190))
  expect(servedAlone(story, 1, toldAt)).toEqual([])
})

test('R16 LEASE-5: invalidations that come twice, and late, take nothing from a reader', async () => {
  const story = await run(
    readingAt(
      // With this seed a copy comes after the value is applied, and no lease ends while it is awaited.
      unheardBySecond('R16: invalidations come again', 4)
        .seed(2)
        .link({
          ...{ duplicate: 1_000_000, late: 1_000_000, lateMeanMicros: 100_000 },
        }),
      ...[300, 400, 500, 600],
    ),
  )
  const told = story.all({ who: 'n2', verb: 'gets', kind: 'invalidate', position: 2 })
  const appliedAt = story.when({ who: 'n2', verb: 'does', kind: 'apply', position: 2 })
  expect(told.length).toBeGreaterThan(1)
  expect(lastMs(told)).toBeGreaterThan(appliedAt)
  const served = servedAlone(story, 2, lastMs(told))
  expect(served.length).toBeGreaterThan(0)
  expect(hasAsked(story, lastMs(told), 700)).toBe(false)
})

/** n2 asks, n3 answers and registers it, and the answer is under way from 152 to 403. */
function answerOvertaken(name: string): ScenarioBuilder {
  const asked = ledByFirst(name).at(140).cut(ways('n2', 'n1'), 25).at(150).latest('c2')
  return delaying(asked, 151.5, 250).at(160).cut(ways('n1', 'n2'), 3).put('c1', { refKey: 1 })
}

test('R1 LEASE-5: an answer that an invalidation overtook lets no holder serve an older state (G06)', async () => {
  const story = await run(
    answerOvertaken('R1: the answer is overtaken')
      // The invalidation has come at 176, and been acknowledged; nothing else comes before 437.
      .at(176.5)
      .cut(aroundSecond, 260)
      .at(405)
      .latest('c2'),
  )
  const toldAt = story.when({ who: 'n2', verb: 'gets', kind: 'invalidate', position: 2 })
  const answeredAt = story.when(thirdAnswers)
  expect(toldAt).toBeLessThan(writtenMs(story))
  expect(writtenMs(story)).toBeLessThan(answeredAt)
  expect(answeredAt).toBeLessThan(405)
  // The read that the answer was for began before the write, and may be shown what was then.
  expect(story.whenNoted('c2', 'is shown BASE/0')).toBeLessThan(405)
  const shownAt = firstShownMs(story, 'c2', 'BASE/1', 405)
  expect(shownAt).toBeGreaterThan(437)
  // It did not ask: it holds the lease, and knows which position it must have.
  expect(hasAsked(story, 405, shownAt)).toBe(false)
})

test('R1 LEASE-1: giving a group up takes nothing from a registration that came after it', async () => {
  const story = await run(
    ledByFirst('R1: the release comes late')
      .link({ reorder: 1_000_000 })
      .limits({ leaseIdleMs: 100 })
      .at(150)
      .latest('c2')
      // Given up at 255; the word of it is under way until 456.
      .fault({
        ...{ kind: 'slow-node', atMicros: 250_000, lengthMicros: 20_000 },
        ...{ node: 'n2', extraMicros: 200_000 },
      })
      .at(275)
      .latest('c2')
      .at(300)
      .cut(aroundSecond, 1_500)
      .at(340)
      .latest('c2')
      .at(500)
      .put('c1', { refKey: 1 }),
  )
  const releasedAt = story.when({ who: 'n3', verb: 'gets', kind: 'release', peer: 'n2' })
  expect(hasAsked(story, 270, releasedAt)).toBe(true)
  expect(servedAlone(story, 1, 340)).toHaveLength(1)
  expect(releasedAt).toBeLessThan(500)
  expect(holdersNamed(story, 2)).toBe(1)
  expect(writtenMs(story)).toBeGreaterThan(1_000)
})

test('R2 LEASE-5: an answer to an earlier life of a reader registers nothing, though the floor is forgotten', async () => {
  const story = await run(
    answerOvertaken('R2: the reader restarts')
      .link({ survive: 1_000_000 })
      .at(200)
      .crash('n2', 20)
      // After the late answer has come.
      .at(410)
      .latest('c2'),
  )
  const toldAt = story.when({ who: 'n2', verb: 'gets', kind: 'invalidate', position: 2 })
  expect(toldAt).toBeLessThan(200)
  expect(story.when(thirdAnswers)).toBeGreaterThan(220)
  expect(story.when(thirdAnswers)).toBeLessThan(410)
  expect(story.result.coverage['survivor']).toBeGreaterThan(0)
  expect(servedAlone(story, 1, 220)).toEqual([])
  expect(story.whenNoted('c2', 'is shown BASE/1', 410)).toBeLessThan(420)
})

test('R3 LEASE-2: a lease that was lost and won again says nothing of what was registered before', async () => {
  const story = await run(
    heldBySecond('R3: lost and won again')
      .at(190)
      .cut(aroundSecond, 1_400)
      // No node holds a lease now, and a writer waits for none.
      .at(1_300)
      .put('c1', { refKey: 1 })
      .at(1_620)
      .latest('c2'),
  )
  expect(holdersNamed(story, 2)).toBe(0)
  expect(writtenMs(story)).toBeLessThan(1_310)
  const renewed = story.all({ who: 'n2', verb: 'gets', kind: 'renewed', peer: 'n3' })
  const numbers = renewed.map(({ fields }) => JSON.stringify(fields['term']))
  expect(new Set(numbers).size).toBeGreaterThan(1)
  expect(servedAlone(story, 1, 1_300)).toEqual([])
  expectToAsk(story, 1_620)
})

/** n2 asks n3 alone, and the answer is under way from 152 to 453, whatever becomes of the link. */
function answerDelayed(name: string): ScenarioBuilder {
  const asked = ledByFirst(name)
    .link({ survive: 1_000_000 })
    .at(140)
    .cut(between('n2', 'n1'), 320)
    .at(150)
    .latest('c2')
  return delaying(asked, 151.5, 300)
}

test('R3 LEASE-2: an answer of an earlier term comes in a later one, and does not count', async () => {
  const story = await run(
    // The term that the answer names ends before 380.
    answerDelayed('R3: the answer of the term before')
      .limits({ leaseMs: 200 })
      .at(155)
      .cut(ways('n2', 'n3'), 245)
      .at(380)
      .put('c1', { refKey: 1 })
      .at(405)
      .reset('n2', 'n3')
      .at(460)
      .latest('c2'),
  )
  expect(holdersNamed(story, 2)).toBe(0)
  expect(writtenMs(story)).toBeLessThan(390)
  const renewal = { who: 'n2', verb: 'gets', kind: 'renewed', peer: 'n3', after: 400 } as const
  expect(story.when(renewal)).toBeLessThan(story.when(thirdAnswers))
  expect(story.first(renewal).fields['term']).not.toEqual(story.first(thirdAnswers).fields['term'])
  expect(story.when(thirdAnswers)).toBeLessThan(460)
  expectToAsk(story, 460)
})

test('R4 LEASE-2: an answer of a grantor that has restarted since registers nothing', async () => {
  const story = await run(
    answerDelayed('R4: the grantor restarts')
      .at(200)
      .crash('n3', 20)
      .at(300)
      .put('c1', { refKey: 1 })
      .at(460)
      .latest('c2'),
  )
  // It has shown n3 that it counts on nothing older, so no writer waits for it.
  expect(holdersNamed(story, 2)).toBe(0)
  expect(writtenMs(story)).toBeLessThan(310)
  expect(story.first(thirdAnswers).fields['term']).toMatchObject({ incarnation: 1 })
  const again = { who: 'n2', verb: 'gets', kind: 'renewed', peer: 'n3', after: 220 } as const
  expect(story.first(again).fields['term']).toMatchObject({ incarnation: 2 })
  expect(story.when(again)).toBeLessThan(story.when(thirdAnswers))
  expect(story.when(thirdAnswers)).toBeLessThan(460)
  expectToAsk(story, 460)
})

test('R5 LEASE-1: a node that stands still in a read tells late what was right when the read began', async () => {
  const story = await run(
    writtenPast('R5: a stall in a read', toSecond, 2_000)
      // It stops as the read at 211 looks at the clock, and goes on at 1,711.
      .fault({ kind: 'stall', atMicros: 210_900, node: 'n2', lengthMicros: 1_500_000 })
      .at(210)
      .latest('c2')
      .at(1_300)
      .latest('c2'),
  )
  const writtenAt = writtenMs(story)
  expect(lastMs(servedAlone(story, 1))).toBe(211)
  expect(writtenAt).toBeGreaterThan(1_000)
  expect(writtenAt).toBeLessThan(1_300)
  // The first read began before the write was acknowledged; the other one did not.
  expect(story.whenNoted('c2', 'is shown BASE/0', 211)).toBeGreaterThan(1_711)
  expect(hasAsked(story, 1_711, 1_720)).toBe(true)
  expect(story.whenNoted('c2', 'is shown BASE/1')).toBeGreaterThan(2_190)
})

test('R6 LEASE-3: a holder that accepted a write, and did not hear of its end, shows it and asks no majority', async () => {
  const story = await run(
    heldBySecond('R6: the notice is lost under a lease')
      .at(200)
      .put('c1', { refKey: 1 })
      .at(202.5)
      .cut(ways('n1', 'n2'), 600)
      .at(210)
      .latest('c2'),
  )
  expect(writtenMs(story)).toBeLessThan(210)
  const shownAt = firstShownMs(story, 'c2', 'BASE/1', 210)
  expect(shownAt).toBeLessThan(400)
  const notice = { who: 'n2', verb: 'gets', kind: 'committed', position: 2 } as const
  expect(story.has({ ...notice, before: shownAt })).toBe(false)
  expect(hasAsked(story, 200, shownAt)).toBe(false)
})

test('R7 LOG-1: a holder that accepted above a hole fills it before it serves anything', async () => {
  const story = await run(
    ledByFirst('R7: a hole under a lease')
      // Position 2 passes n3 by; its read at 214 learns of it, and registers n3.
      .at(150)
      .cut(ways('n1', 'n3'), 58)
      .at(200)
      .put('c1', { refKey: 1 })
      .at(214)
      .latest('c3')
      // Position 3 is accepted at n3 at 216.6, and from then on n1 and n3 are apart.
      .at(214.5)
      .put('c1', { refKey: 2 })
      .at(216.5)
      .cut(between('n1', 'n3'), 500)
      .at(225)
      .latest('c3'),
  )
  const acceptedAt = story.when({ who: 'n3', verb: 'disk', kind: 'accept', position: 3 })
  const filledAt = story.when({ who: 'n3', verb: 'does', kind: 'apply', position: 2 })
  expect(acceptedAt).toBeLessThan(225)
  expect(filledAt).toBeGreaterThan(225)
  const shownAt = firstShownMs(story, 'c3', 'BASE/2')
  // The second read is under the lease that the first one got.
  const query = { who: 'n2', verb: 'gets', kind: 'query', peer: 'n3', before: shownAt } as const
  expect(story.all(query)).toHaveLength(1)
  // n1 waits for n3 as well, and comes to the same end.
  expect(story.has({ verb: 'gets', kind: 'revoke', peer: 'n1', position: 3 })).toBe(true)
  expect(story.valueAt('n1', 3)).toEqual(story.valueAt('n3', 3))
})

test('R8 LEASE-3: a reader that finishes another’s write awaits its lease holders before showing it', async () => {
  const story = await run(
    readingAt(
      writtenPast('R8: chosen, and not to be seen yet', aroundSecond, 1_400)
        // n3 has accepted it, and sets out to finish it.
        .at(210)
        .latest('c3'),
      ...[220, 800, 1_300],
    ),
  )
  const takenOver = story.first({ who: 'n3', verb: 'does', kind: 'propose', position: 2 })
  const promised = { who: 'n3', verb: 'gets', kind: 'accepted', peer: 'n1', position: 2 } as const
  expect(story.when(promised)).toBeLessThan(500)
  const shownAt = firstShownMs(story, 'c3', 'BASE/1')
  expect(takenOver.timeMicros / 1_000).toBeLessThan(shownAt)
  const old = servedAlone(story, 1, 210)
  expect(old).toHaveLength(2)
  expect(lastMs(old)).toBeLessThan(Math.min(shownAt, writtenMs(story)))
  expect(story.whenNoted('c2', 'is shown BASE/1')).toBeGreaterThan(1_590)
})

test('LEASE-1: a reader gives up an idle group, and no write waits for it', async () => {
  const story = await run(
    heldBySecond('LEASE-1: an idle group')
      .limits({ leaseIdleMs: 100 })
      .at(500)
      .cut(aroundSecond, 1_000)
      .put('c1', { refKey: 1 })
      .at(600)
      .latest('c2'),
  )
  for (const who of ['n1', 'n3']) {
    expect(story.when({ who, verb: 'gets', kind: 'release', peer: 'n2' })).toBeLessThan(500)
  }
  expect(holdersNamed(story, 2)).toBe(0)
  expect(writtenMs(story)).toBeLessThan(510)
  expect(servedAlone(story, 1, 200)).toEqual([])
  expect(story.whenNoted('c2', 'is shown', 600)).toBeGreaterThan(1_500)
})

test('LEASE-1: a dead holder delays writes to what it read, and to nothing else', async () => {
  const story = await run(
    heldBySecond('LEASE-1: other groups go on')
      .at(110)
      .put('c1', { shard: 1 })
      .at(190)
      .crash('n2', 2_500)
      .at(200)
      .put('c1', { refKey: 1 })
      .put('c1', { shard: 1, refKey: 2 }),
  )
  expect(writtenMs(story, 2)).toBeLessThan(210)
  expect(writtenMs(story, 1)).toBeGreaterThan(1_000)
})
