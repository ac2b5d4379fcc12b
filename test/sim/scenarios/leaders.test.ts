/** Races about who may use ballot zero, and about what a replica accepted that was not chosen. */
import { expect, test } from 'vitest'
import { present } from '../../../src/base/assert.ts'
import type { Ballot } from '../../../src/paxos/ballot.ts'
import { asBallot } from '../../../sim/checkers/trace-fields.ts'
import { epochMicros } from '../../../sim/world/clock.ts'
import type { ScenarioBuilder } from '../../../sim/scenarios/scenario-builder.ts'
import { ledByFirst, run, threeNodes, valueOf, ways } from './story.ts'

/** With this seed the write under way in the crash is lost; with others it is on the disk. */
const forgetfulSeed = 1
/** The same of the write at position 1. */
const forgetfulFirstSeed = 2

/**
 * n1 proposes A for position 2 at 201, to n3 alone, and dies before its own acceptance is durable. It
 * comes back in another incarnation, and with n2 settles position 2 on something else; n3, which
 * holds A, hears nothing of it until 1,253.
 */
function splitPosition(name: string): ScenarioBuilder {
  return ledByFirst(name)
    .seed(forgetfulSeed)
    .disk({ writeMinMicros: 3_000 })
    .at(200)
    .cut(ways('n1', 'n2'), 3)
    .put('c1', { refKey: 1 })
    .at(203)
    .partition(['n3'], 1_050)
    .crash('n1', 20)
    .at(260)
    .put('c2', { refKey: 2 })
}

test('R10 PAX-6: a leader that forgot its ballot zero in a crash prepares, and finds its own value', async () => {
  const story = await run(
    ledByFirst('R10: the leader forgets')
      .seed(forgetfulSeed)
      .disk({ writeMinMicros: 3_000 })
      .at(200)
      .put('c1', { refKey: 1 })
      // The value has left at 201; n1's own acceptance would be durable at 204.
      .at(202.5)
      .crash('n1', 20)
      .at(300)
      .put('c1', { refKey: 2 }),
  )
  const first = story.first({ who: 'n1', verb: 'does', kind: 'propose', position: 2 })
  const own = { who: 'n1', verb: 'disk', kind: 'accept', position: 2 } as const
  expect(story.has({ ...own, ballot: '0.n1.1' })).toBe(false)
  expect(
    story.has({ who: 'n1', verb: 'does', kind: 'propose', ballot: '0.n1.2', position: 2 }),
  ).toBe(false)
  const second = story.first({ verb: 'does', kind: 'propose', position: 2, after: 203 })
  expect(valueOf(second)).toEqual(valueOf(first))
  expect(story.valueAt('n1', 2)).toEqual(valueOf(first))
})

test('R10 PAX-6: at position 1 no node hears of a value that its leader could forget', async () => {
  const story = await run(
    threeNodes('R10: position 1')
      .seed(forgetfulFirstSeed)
      .disk({ writeMinMicros: 3_000 })
      .at(100)
      .put('c1', { refKey: 0 }, 'first')
      .at(102)
      .crash('n1', 20)
      .at(300)
      .put('c1', { refKey: 1 }, 'second'),
  )
  const proposed = story.all({ who: 'n1', verb: 'does', kind: 'propose', position: 1 })
  const [first, second] = proposed
  expect(first?.timeMicros).toBe(101_000)
  expect(story.has({ verb: 'gets', kind: 'accept', position: 1, ballot: '0.n1.1' })).toBe(false)
  // Its proposals from now on, at ballot zero or above, stand alone.
  expect(second?.timeMicros).toBeGreaterThan(122_000)
  expect(second && valueOf(second)).toEqual(story.valueAt('n2', 1))
  expect(second && valueOf(second)).not.toEqual(first && valueOf(first))
})

test('R10 PAX-6: a leader that only an accepted entry names leads nothing', async () => {
  const story = await run(
    splitPosition('R10: two leaders named').at(1_255).put('c3', { refKey: 3 }),
  )
  const held = story.first({ who: 'n3', verb: 'disk', kind: 'accept', position: 2 })
  expect(valueOf(held)).not.toEqual(story.valueAt('n2', 2))
  const { nextLeader } = story.entryAt('n3', 2)
  expect(nextLeader).not.toEqual({ node: 'n1', incarnation: 1 })
  const zero = story.all({ verb: 'does', kind: 'propose', position: 3 })
  for (const { who, fields } of zero) {
    const { round, incarnation } = ballotOf(fields)
    if (round === 0) expect({ node: who, incarnation }).toEqual(nextLeader)
  }
  expect(zero.length).toBeGreaterThan(0)
})

test('R11 PAX-6: where the first leader was never there, others begin above ballot zero', async () => {
  const story = await run(
    threeNodes('R11: no leader').at(0).crash('n1', 2_500).at(100).put('c2', { refKey: 0 }),
  )
  const proposal = story.first({ verb: 'does', kind: 'propose', position: 1 })
  expect(['n2', 'n3']).toContain(proposal.who)
  expect(ballotOf(proposal.fields).round).toBeGreaterThan(0)
  expect(story.whenNoted('c2', 'BASE/0 is written')).toBeLessThan(2_500)
})

test('R11 PAX-6: a leader named in an earlier life prepares like everybody else', async () => {
  const story = await run(
    ledByFirst('R11: the leader has started again')
      .at(150)
      .crash('n1', 50)
      .at(300)
      .put('c1', { refKey: 1 }),
  )
  expect(story.entryAt('n2', 1).nextLeader).toEqual({ node: 'n1', incarnation: 1 })
  const proposal = story.first({ verb: 'does', kind: 'propose', position: 2 })
  expect(proposal.who).toBe('n1')
  expect(ballotOf(proposal.fields)).toMatchObject({
    epoch: 1,
    round: 1,
    node: 'n1',
    incarnation: 2,
  })
  expect(story.whenNoted('c1', 'BASE/1 is written')).toBeLessThan(1_000)
})

test('R18 MVCC-2: a proposer whose clock is behind writes a later timestamp all the same', async () => {
  const behindMicros = 5_000_000
  const story = await run(
    ledByFirst('R18: clocks apart')
      // Else the first one goes by the others' clocks (CLOCK-1).
      .limits({ clockLeadMsMax: 10_000 })
      .skew('n2', { offsetMicros: -behindMicros })
      .skew('n3', { offsetMicros: -behindMicros })
      .at(150)
      .crash('n1', 2_500)
      .at(200)
      .put('c2', { refKey: 1 }),
  )
  const before = story.entryAt('n2', 1)
  const after = story.entryAt('n2', 2)
  const [proposal] = story.all({ verb: 'does', kind: 'propose', position: 2 })
  expect(['n2', 'n3']).toContain(proposal?.who)
  const clockMicros = epochMicros + (proposal?.timeMicros ?? 0) - behindMicros
  expect(clockMicros).toBeLessThan(before.timestamp)
  expect(after.timestamp).toBe(before.timestamp + 1)
})

test('R19 PAX-1: a replica told that a position is committed does not take its own other value for it', async () => {
  const story = await run(
    splitPosition('R19: another value accepted').at(1_255).put('c2', { refKey: 3 }),
  )
  const held = story.first({ who: 'n3', verb: 'disk', kind: 'accept', position: 2 })
  const appliedAt = story.when({ who: 'n3', verb: 'does', kind: 'apply', position: 2 })
  expect(appliedAt).toBeGreaterThan(1_253)
  expect(story.has({ who: 'n3', verb: 'does', kind: 'accept', position: 2, after: 204 })).toBe(
    false,
  )
  expect(story.valueAt('n3', 2)).toEqual(story.valueAt('n2', 2))
  expect(story.valueAt('n3', 2)).not.toEqual(valueOf(held))
  expect(story.has({ who: 'n3', verb: 'gets', kind: 'entries', after: 1_253 })).toBe(true)
})

function ballotOf(fields: Readonly<Record<string, unknown>>): Ballot {
  return present(asBallot(fields['ballot']), 'a proposal has a ballot')
}
