/**
 * The parts that directed scenarios of read leases have in common: a node that reads the group twice, the
 * second time without a request to another node, and the lines that a test looks for in the story.
 */
import { expect } from 'vitest'
import type { Way } from '../../../sim/faults/fault.ts'
import type { StoryLine } from '../../../sim/cluster/narrator.ts'
import type { ScenarioBuilder } from '../../../sim/scenarios/scenario-builder.ts'
import { ledByFirst, ways, type Match, type Story } from './story.ts'

/** How long a lease lasts at its grantor, which lengthens it by what clocks may drift. */
export const grantedMs = 1_010

/** Between one node and others, in both directions. */
export function between(one: string, ...others: readonly string[]): readonly Way[] {
  return [...ways(one, ...others), ...others.flatMap((other) => ways(other, one))]
}

/** The reader on one side, all others on the other. */
export const aroundSecond: readonly Way[] = between('n2', 'n1', 'n3')

/** The ways of the others' messages to the reader. */
export const toSecond: readonly Way[] = [...ways('n1', 'n2'), ...ways('n3', 'n2')]

/** n3's answer to the read in which n2 is registered before anything else is written. */
export const thirdAnswers: Match = {
  ...{ who: 'n2', verb: 'gets', kind: 'highest', peer: 'n3', position: 1 },
}

/** n2 holds a lease on the group with n1 and n3. */
export function heldBySecond(name: string): ScenarioBuilder {
  return ledByFirst(name).at(150).latest('c2').at(170).latest('c2')
}

/** n2 holds it with n3 alone: it hears nothing of n1, and n1 nothing of it, for two seconds. */
export function heldWithThird(name: string): ScenarioBuilder {
  return ledByFirst(name)
    .at(140)
    .cut(between('n2', 'n1'), 2_000)
    .at(150)
    .latest('c2')
    .at(170)
    .latest('c2')
}

/**
 * n2 gives the group up at 301, and neither n1 nor n3 hears of it. It goes on reading another group, so
 * that its leases live.
 */
export function givenUpUnheard(name: string): ScenarioBuilder {
  const builder = heldBySecond(name).limits({ leaseIdleMs: 100 })
  for (let ms = 160; ms < 1_500; ms += 45) builder.at(ms).latest('c2', { shard: 1 })
  return builder.at(290).cut(ways('n2', 'n1', 'n3'), 25)
}

/** The same, and n1 writes while these ways to and from n2 are cut for `lengthMs`. */
export function writtenPast(name: string, cut: readonly Way[], lengthMs: number): ScenarioBuilder {
  return heldBySecond(name).at(190).cut(cut, lengthMs).at(200).put('c1', { refKey: 1 })
}

/** c2 reads at n2 at these moments. */
export function readingAt(
  builder: ScenarioBuilder,
  ...moments: readonly number[]
): ScenarioBuilder {
  for (const ms of moments) builder.at(ms).latest('c2')
  return builder
}

/** Messages that n3 sends in the millisecond after this moment come `extraMs` later. */
export function delaying(builder: ScenarioBuilder, ms: number, extraMs: number): ScenarioBuilder {
  const [atMicros, extraMicros] = [ms * 1_000, extraMs * 1_000]
  return builder.fault({
    ...{ kind: 'slow-node', atMicros, lengthMicros: 1_000, node: 'n3', extraMicros },
  })
}

/** Reads that n2 served without a request to another node, of the group that all write to. */
export function servedAlone(story: Story, position: number, after = 0): readonly StoryLine[] {
  const served = story.all({ who: 'n2', verb: 'does', kind: 'serve', position, after })
  return served.filter(({ fields }) => fields['isLeased'] === true)
}

export function lastMs(lines: readonly StoryLine[]): number {
  return (lines.at(-1)?.timeMicros ?? Number.NaN) / 1_000
}

/** When n3 takes n2's lease for over, if no renewal comes after that moment. */
export function grantEndMs(story: Story, before: number): number {
  return (
    lastMs(story.all({ who: 'n3', verb: 'gets', kind: 'renew', peer: 'n2', before })) + grantedMs
  )
}

/** How many lease holders n3 named when it accepted. */
export function holdersNamed(story: Story, position: number): number {
  const answer = { who: 'n1', verb: 'gets', kind: 'accepted', peer: 'n3', position } as const
  const { holders } = story.first(answer).fields
  if (Array.isArray(holders)) return holders.length
  throw new TypeError('an acceptance names the holders')
}

export function hasAsked(story: Story, after: number, before: number): boolean {
  return story.has({ verb: 'gets', kind: 'query', peer: 'n2', after, before })
}

export function writtenMs(story: Story, refKey = 1): number {
  return story.whenNoted('c1', `BASE/${refKey} is written`)
}

/** A read that begins then asks the others, and is shown at once what was written. */
export function expectToAsk(story: Story, ms: number): void {
  expect(hasAsked(story, ms, ms + 10)).toBe(true)
  expect(story.whenNoted('c2', 'is shown BASE/1', ms)).toBeLessThan(ms + 10)
}

/** When a client is first shown anything; it must be this. */
export function firstShownMs(story: Story, who: string, row: string, after = 0): number {
  const shownAt = story.whenNoted(who, 'is shown', after)
  expect(story.whenNoted(who, `is shown ${row}`, after)).toBe(shownAt)
  return shownAt
}
