/** A node's view of its peers' words about their wall clocks. */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { nodeId } from '../../src/base/ids.ts'
import { PeerClocks, clockWaitMs } from '../../src/peers/peer-clocks.ts'

const [own, x, y] = [nodeId('n1'), nodeId('n2'), nodeId('n3')]
const [z, v] = [nodeId('n4'), nodeId('n5')]
const limits = { clockLeadMsMax: 500 }
/** The right time at this moment of the monotonic clock, which starts at zero. */
const rightAt = (nowMs: number): number => 1_000_000_000 + nowMs * 1_000
const second = 1_000_000

test('CLOCK-1: of three nodes, both others have to be behind', () => {
  const clocks = new PeerClocks([own, x, y], limits, 0)
  const ahead = rightAt(0) + 3 * second
  expect(clocks.held({ wall: ahead, now: 0 })).toBe(ahead)
  expect(clocks.leadMs({ wall: ahead, now: 0 })).toBe(0)
  clocks.hear(x, rightAt(0), 0, 0)
  expect(clocks.held({ wall: ahead, now: 0 })).toBe(ahead)
  clocks.hear(y, rightAt(0) + 1 * second, 0, 0)
  expect(clocks.held({ wall: ahead, now: 0 })).toBe(rightAt(0) + 1.5 * second)
  expect(clocks.leadMs({ wall: ahead, now: 0 })).toBe(2_000)
  // Time goes on, for all of them.
  expect(clocks.held({ wall: ahead + 7_000, now: 7 })).toBe(rightAt(7) + 1.5 * second)
})

test('CLOCK-1: of five nodes, three others have to be behind', () => {
  const clocks = new PeerClocks([own, x, y, z, v], limits, 0)
  const wall = rightAt(0) + 10 * second
  clocks.hear(x, wall, 0, 0)
  clocks.hear(y, rightAt(0), 0, 0)
  clocks.hear(z, rightAt(0) + 2 * second, 0, 0)
  expect(clocks.held({ wall, now: 0 })).toBe(wall)
  clocks.hear(v, rightAt(0) + 1 * second, 0, 0)
  expect(clocks.held({ wall, now: 0 })).toBe(rightAt(0) + 2.5 * second)
})

/**
 * The words of a node about a clock that is this far ahead, second by second, while both others tell theirs.
 */
function told(clocks: PeerClocks, leadsMs: readonly number[]): readonly (string | undefined)[] {
  return leadsMs.map((leadMs, second) => {
    const now = second * 1_000
    for (const peer of [x, y]) clocks.hear(peer, rightAt(now), now, now)
    return clocks.look({ wall: rightAt(now) + leadMs * 1_000, now })
  })
}

test('CLOCK-1: the node reports once that its clock is ahead, and once that it is right again', () => {
  const clocks = new PeerClocks([own, x, y], limits, 0)
  const leads = [400, 600, 600, 600, 600, 400, 600, 260, 250, 0]
  const said = told(clocks, leads).map((word) => word ?? '')
  expect(said).toEqual(['', '', '', 'ahead', '', '', '', '', 'right', ''])
})

test('CLOCK-1: after a suspension a right clock is not told to be ahead', () => {
  const clocks = new PeerClocks([own, x, y], limits, 0)
  told(clocks, [0, 0, 0])
  // The machine slept for an hour, its monotonic clock with it; links are up again five seconds later.
  const wallAt = (now: number): number => rightAt(now) + 3_600 * second
  for (let now = 3_000; now < 8_000; now += 200) {
    expect(clocks.look({ wall: wallAt(now), now })).toBeUndefined()
    expect(clocks.held({ wall: wallAt(now), now })).toBeLessThan(wallAt(now))
  }
  clocks.hear(x, wallAt(8_000), 8_000, 8_000)
  expect(clocks.look({ wall: wallAt(8_000), now: 8_000 })).toBeUndefined()
  expect(clocks.held({ wall: wallAt(8_000), now: 8_000 })).toBe(wallAt(8_000))
})

test('CLOCK-1: clocks that were set back are believed at once', () => {
  const clocks = new PeerClocks([own, x, y], limits, 0)
  const setBack = 60 * second
  for (const peer of [x, y]) clocks.hear(peer, rightAt(0), 0, 0)
  expect(clocks.leadMs({ wall: rightAt(900), now: 900 })).toBe(0)
  for (const peer of [x, y]) clocks.hear(peer, rightAt(1_000) - setBack, 1_000, 1_000)
  expect(clocks.leadMs({ wall: rightAt(1_000), now: 1_000 })).toBe(60_000)
})

test('CLOCK-1: an answer that waited is no evidence of a wrong clock', () => {
  const clocks = new PeerClocks([own, x, y], limits, 0)
  for (let nowMs = 0; nowMs < 30_000; nowMs += 1_000) {
    // The peers looked at once; this node came to read it seven seconds later.
    for (const peer of [x, y]) clocks.hear(peer, rightAt(nowMs), nowMs, nowMs + 7_000)
    const reading = { wall: rightAt(nowMs + 7_000), now: nowMs + 7_000 }
    expect(clocks.look(reading)).toBeUndefined()
    expect(clocks.held(reading)).toBe(reading.wall)
  }
})

test('CLOCK-2: of three nodes, both others have to be ahead', () => {
  const clocks = new PeerClocks([own, x, y], limits, 0)
  const behind = rightAt(0) - 3 * second
  clocks.hear(x, rightAt(0) + 3_600 * second, 0, 0)
  expect(clocks.held({ wall: behind, now: 0 })).toBe(behind)
  expect(clocks.lagMs({ wall: behind, now: 0 })).toBe(0)
  clocks.hear(y, rightAt(0), 0, 0)
  expect(clocks.held({ wall: behind, now: 0 })).toBe(rightAt(0) - 0.5 * second)
  expect(clocks.lagMs({ wall: behind, now: 0 })).toBe(3_000)
  expect(clocks.held({ wall: behind + 7_000, now: 7 })).toBe(rightAt(7) - 0.5 * second)
})

test('CLOCK-2: the node reports a clock that is behind, ahead or right again, once each', () => {
  const clocks = new PeerClocks([own, x, y], limits, 0)
  const leads = [-400, -600, -600, -600, -600, -400, -260, -240, 0, 600, 600, 600, 0]
  const said = told(clocks, leads).map((word) => word ?? '')
  expect(said).toEqual(['', '', '', 'behind', '', '', '', 'right', '', '', '', 'ahead', 'right'])
})

test('CLOCK-2: a node holds its clock to what is true of a majority, for any answers and delays', () => {
  const answer = fc.record({
    peer: fc.constantFrom(x, y),
    tookMs: fc.integer({ min: 0, max: 9_000 }),
    lookedAt: fc.integer({ min: 0, max: 1_000 }),
    pauseMs: fc.integer({ min: 0, max: 4_000 }),
  })
  const offset = fc.integer({ min: -7_200_000, max: 7_200_000 })
  fc.assert(
    fc.property(offset, offset, offset, fc.array(answer, { maxLength: 30 }), (mine, a, b, all) => {
      const clocks = new PeerClocks([own, x, y], limits, 0)
      let nowMs = 0
      for (const { peer, tookMs, lookedAt, pauseMs } of all) {
        const askedMs = nowMs + pauseMs
        nowMs = askedMs + tookMs
        const offsetMs = peer === x ? a : b
        const lookedMs = askedMs + (tookMs * lookedAt) / 1_000
        clocks.hear(peer, rightAt(lookedMs) + offsetMs * 1_000, askedMs, nowMs)
        const right = rightAt(nowMs)
        const wall = right + mine * 1_000
        const held = clocks.held({ wall, now: nowMs })
        if (held > wall) expect(held).toBeLessThanOrEqual(right + Math.min(a, b) * 1_000)
        if (held < wall) expect(held).toBeGreaterThanOrEqual(right + Math.max(a, b) * 1_000)
      }
    }),
  )
})

test('CLOCK-1: a clock within the bound is never held back, however late the others are heard', () => {
  const heard = fc.record({
    peer: fc.constantFrom(x, y),
    offsetMs: fc.integer({ min: -200, max: 200 }),
    lateMs: fc.integer({ min: 0, max: 250 }),
    pauseMs: fc.integer({ min: 0, max: 4_000 }),
  })
  fc.assert(
    fc.property(fc.array(heard, { maxLength: 40 }), (all) => {
      const clocks = new PeerClocks([own, x, y], limits, 0)
      let nowMs = 0
      for (const { peer, offsetMs, lateMs, pauseMs } of all) {
        nowMs += pauseMs
        clocks.hear(peer, rightAt(nowMs) + (offsetMs - lateMs) * 1_000, nowMs - lateMs, nowMs)
        expect(clocks.held({ wall: rightAt(nowMs), now: nowMs })).toBe(rightAt(nowMs))
      }
    }),
  )
})

test('CLOCK-3: clocks are awaited until a majority has told its own, and not for long', () => {
  const clocks = new PeerClocks([own, x, y], limits, 100)
  const isAwaited = (now: number): boolean =>
    clocks.status({ wall: rightAt(now), now }).areClocksAwaited
  expect([isAwaited(100), isAwaited(99 + clockWaitMs), isAwaited(100 + clockWaitMs)]).toEqual([
    ...[true, true, false],
  ])
  clocks.hear(x, rightAt(150), 150, 150)
  expect(isAwaited(150)).toBe(true)
  clocks.hear(y, rightAt(160), 160, 160)
  expect(isAwaited(160)).toBe(false)
})

test.each([[[own]], [[own, x]]])(
  'CLOCK-3: among nodes %j none is a majority, so no peer is awaited',
  (nodes) => {
    expect(new PeerClocks(nodes, limits, 0).isAwaited(0)).toBe(false)
  },
)
