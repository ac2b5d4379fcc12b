/** Wall clocks that are ahead of the others, or behind them: whose time a group goes by. */
import { expect, test } from 'vitest'
import { epochMicros } from '../../../sim/world/clock.ts'
import { ledByFirst, run, threeNodes, type Story } from './story.ts'

const second = 1_000_000
const hour = 3_600 * second
const leadMicros = 500_000

/** Of the entry at the position, from the world's beginning. */
function stampAt(story: Story, position: number): number {
  return story.entryAt('n2', position).timestamp - epochMicros
}

test('CLOCK-1: a leader whose clock is an hour ahead takes no group ahead with it', async () => {
  const story = await run(
    threeNodes('CLOCK-1: an hour ahead')
      .skew('n1', { offsetMicros: hour })
      .at(100)
      .put('c2', { refKey: 0 })
      .at(1_500)
      .put('c2', { refKey: 1 }),
  )
  for (const position of [1, 2]) {
    const proposal = story.first({ verb: 'does', kind: 'propose', position })
    expect(proposal.who).toBe('n1')
    expect(stampAt(story, position)).toBeLessThanOrEqual(proposal.timeMicros + leadMicros + 10_000)
  }
  // Else each would be refused as out of date: their requests are dated by the client's clock.
  expect(story.whenNoted('c2', 'BASE/1 is written')).toBeLessThan(1_600)
})

test('CLOCK-1: a wall clock that leaps ahead is held back at once', async () => {
  const story = await run(
    ledByFirst('CLOCK-1: a leap ahead')
      .at(300)
      .fault({
        ...{ kind: 'clock-jump', atMicros: 300_000, node: 'n1' },
        ...{ wallMicros: 100 * second, monotonicMicros: 0 },
      })
      .at(301)
      .put('c2', { refKey: 1 }),
  )
  expect(story.first({ verb: 'does', kind: 'propose', position: 2 }).who).toBe('n1')
  expect(stampAt(story, 2)).toBeLessThanOrEqual(301_000 + leadMicros + 10_000)
})

test('CLOCK-1: a node that is ahead of one other alone goes by its own clock', async () => {
  const story = await run(
    threeNodes('CLOCK-1: one behind')
      .skew('n3', { offsetMicros: -5 * second })
      .at(1_500)
      .put('c2', { refKey: 0 }),
  )
  expect(stampAt(story, 1)).toBeGreaterThanOrEqual(1_500_000)
  expect(stampAt(story, 1)).toBeLessThan(1_600_000)
})

test('CLOCK-2: a leader whose clock is an hour behind goes by the others, and takes what clients date', async () => {
  const story = await run(
    threeNodes('CLOCK-2: an hour behind')
      .skew('n1', { offsetMicros: -hour })
      .at(100)
      .put('c1', { refKey: 0 }),
  )
  const proposal = story.first({ verb: 'does', kind: 'propose', position: 1 })
  expect(proposal.who).toBe('n1')
  expect(stampAt(story, 1)).toBeGreaterThanOrEqual(proposal.timeMicros - leadMicros - 10_000)
  expect(story.whenNoted('c1', 'BASE/0 is written')).toBeLessThan(200)
})
