/** Races between a read and a write whose outcome is unknown, or unknown at the replica asked. */
import { expect, test } from 'vitest'
import { ledByFirst, run, ways } from './story.ts'

test('R6 LEASE-3: a replica that accepted a write, and never heard that it was committed, shows it', async () => {
  const story = await run(
    // n1 proposes position 2 at 201 and decides it at 203.1; no other node gets its notice.
    ledByFirst('R6: the notice is lost')
      .at(200)
      .put('c1', { refKey: 1 })
      .at(202.5)
      .cut(ways('n1', 'n2', 'n3'), 600)
      .at(210)
      .latest('c2'),
  )
  expect(story.whenNoted('c1', 'BASE/1 is written')).toBeLessThan(210)
  expect(story.when({ who: 'n2', verb: 'disk', kind: 'accept', position: 2 })).toBeLessThan(210)
  const shownAt = story.whenNoted('c2', 'is shown BASE/1')
  expect(shownAt).toBeLessThan(800)
  const notice = { who: 'n2', verb: 'gets', kind: 'committed', position: 2 } as const
  expect(story.has({ ...notice, before: shownAt })).toBe(false)
  expect(story.result.coverage['undecided_position_prepared']).toBeGreaterThan(0)
})

test('R6 LEASE-3: a reader finishes a write that one acceptor holds after its proposer died', async () => {
  const story = await run(
    ledByFirst('R6: the proposer dies')
      .at(200)
      .cut(ways('n1', 'n3'), 500)
      .put('c1', { refKey: 1 })
      // n2 accepted at 202.1; its answer is on the way to n1.
      .at(202.5)
      .crash('n1', 500)
      .at(210)
      .latest('c3')
      .at(260)
      .latest('c2'),
  )
  const taken = { verb: 'does', kind: 'chosen', position: 2 } as const
  expect(story.has({ ...taken, before: 210 })).toBe(false)
  expect(story.has({ who: 'n3', verb: 'disk', kind: 'accept', position: 2, before: 210 })).toBe(
    false,
  )
  const shownAt = story.whenNoted('c3', 'is shown BASE/1')
  expect(shownAt).toBeLessThan(700)
  // A row that one read has seen does not vanish from the next, through another node.
  expect(story.whenNoted('c2', 'is shown BASE/1', 260)).toBeLessThan(700)
  expect(story.result.coverage["adopted another's value"]).toBeGreaterThan(0)
})

test('R7 LOG-1: a replica that accepted above a hole fills it before it shows anything', async () => {
  const story = await run(
    ledByFirst('R7: a hole below an accepted position')
      // Position 2 passes n3 by.
      .at(200)
      .cut(ways('n1', 'n3'), 8)
      .put('c1', { refKey: 1 })
      // Position 3 is accepted at n3 at 212.
      .at(210)
      .put('c1', { refKey: 2 })
      // From then on n1 tells n3 nothing more.
      .at(211.5)
      .cut(ways('n1', 'n3'), 400)
      .at(214)
      .latest('c3'),
  )
  const acceptedAt = story.when({ who: 'n3', verb: 'disk', kind: 'accept', position: 3 })
  const filledAt = story.when({ who: 'n3', verb: 'does', kind: 'apply', position: 2 })
  expect(acceptedAt).toBeLessThan(214)
  expect(filledAt).toBeGreaterThan(acceptedAt)
  expect(
    story.has({ who: 'n3', verb: 'disk', kind: 'accept', position: 2, before: filledAt }),
  ).toBe(false)
  const appliedAt = story.when({ who: 'n3', verb: 'does', kind: 'apply', position: 3 })
  const shownAt = story.whenNoted('c3', 'is shown BASE/2')
  expect(filledAt).toBeLessThanOrEqual(appliedAt)
  expect(appliedAt).toBeLessThan(shownAt)
  expect(shownAt).toBeLessThan(600)
  expect(story.has({ who: 'n3', verb: 'gets', peer: 'n2', kind: 'entries', before: shownAt })).toBe(
    true,
  )
})

test('R8 LEASE-3: every later read sees a write that a reader has finished', async () => {
  const story = await run(
    ledByFirst('R8: a reader is faster than the writer')
      .at(200)
      .cut(ways('n1', 'n3'), 3)
      .put('c1', { refKey: 1 })
      // n1 has one acceptance beside its own on the way to it, and stands still.
      .at(202.5)
      .pause('n1', 700)
      .at(210)
      .latest('c3')
      .at(400)
      .latest('c2'),
  )
  const finishedAt = story.when({ who: 'n3', verb: 'does', kind: 'chosen', position: 2 })
  const writerKnowsAt = story.when({ who: 'n1', verb: 'does', kind: 'chosen', position: 2 })
  expect(finishedAt).toBeLessThan(writerKnowsAt)
  expect(story.whenNoted('c3', 'is shown BASE/1')).toBeLessThan(400)
  const shownAt = story.whenNoted('c2', 'is shown BASE/1', 400)
  expect(shownAt).toBeLessThan(writerKnowsAt)
  // The writer, when it wakes, comes to the same end.
  expect(story.valueAt('n1', 2)).toEqual(story.valueAt('n3', 2))
  expect(story.whenNoted('c1', 'BASE/1 is written')).toBeGreaterThan(finishedAt)
})
