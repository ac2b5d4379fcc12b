import { expect, test } from 'vitest'
import { present } from '../../src/base/assert.ts'
import { allDrawings, drawFaults } from '../../sim/faults/fault-draw.ts'
import type { Fault } from '../../sim/faults/fault.ts'
import { drawSwarm } from '../../sim/swarm.ts'
import { conditionNames, faultNames, toFlags, noFaultRates } from '../../sim/faults/swarm-faults.ts'

const seeds = Array.from({ length: 60 }, (_, i) => i + 1)

function nameOf(fault: Fault): string {
  return fault.name ?? fault.kind
}

test('every fault that has a rate can be drawn, and nothing else is', () => {
  expect(allDrawings.size).toBe(faultNames.length)
  expect(faultNames.filter((name) => !allDrawings.has(name))).toEqual([])
  const plans = seeds.map((seed) => drawSwarm(seed))
  const drawn = new Set(plans.flatMap((plan) => drawFaults(plan).map(nameOf)))
  expect(faultNames.filter((name) => !drawn.has(name))).toEqual([])
})

test('META-1: the same options give the same faults, in order, within the time for faults', () => {
  for (const seed of seeds) {
    const options = drawSwarm(seed)
    const faults = drawFaults(options)
    expect(drawFaults(drawSwarm(seed))).toEqual(faults)
    const times = faults.map((fault) => fault.atMicros)
    expect(times).toEqual(times.toSorted((a, b) => a - b))
    // Nodes of a swizzle are clogged one by one, and loops of crashes take their time.
    const own = faults.filter(
      (fault) => !['swizzle', 'crash-loop', 'set-falters', 'lull', 'burst'].includes(nameOf(fault)),
    )
    const last = Math.max(0, ...own.map((fault) => fault.atMicros))
    expect(last).toBeLessThan(options.faultRates.lengthMicros)
  }
})

test('a kind of fault that is switched off moves no other', () => {
  const busy = seeds.filter((seed) => drawSwarm(seed).faultRates.quietMicros === 0)
  expect(busy.length).toBeGreaterThan(20)
  for (const seed of busy) {
    const all = drawFaults(drawSwarm(seed))
    const less = drawFaults(drawSwarm(seed, { without: ['crash', 'split', 'quiet'] }))
    expect(less).toEqual(all.filter((fault) => !['crash', 'split'].includes(nameOf(fault))))
  }
})

test('with only some faults switched on there is nothing else, in the air and on the clocks', () => {
  for (const seed of seeds) {
    const options = drawSwarm(seed, { only: ['reset', 'pause'] })
    expect(drawFaults(options).filter(({ kind }) => kind !== 'reset' && kind !== 'pause')).toEqual(
      [],
    )
    const { drop, duplicate, late, reorder, tail, far, survive } = options.link
    expect([drop, duplicate, late, reorder, tail, far, survive]).toEqual([0, 0, 0, 0, 0, 0, 0])
    for (const skew of options.skews) {
      expect(skew).toEqual({ offsetMicros: 0, driftPpm: 0, timerLatenessMicros: 0 })
    }
  }
})

test('each condition is in some seeds and not in others', () => {
  const plans = seeds.map((seed) => drawSwarm(seed))
  const isOn: readonly ((plan: (typeof plans)[number]) => boolean)[] = [
    ({ link }) => link.tail > 0,
    ({ link }) => (link.far ?? 0) > 0,
    ({ link }) => link.survive > 0,
    ({ skews }) => skews.some((skew) => skew.offsetMicros !== 0),
    ({ skews }) => skews.some((skew) => skew.driftPpm !== 0),
    ({ faultRates }) => faultRates.quietMicros > 0,
    ({ healing }) => healing.isCoreFirst,
  ]
  for (const one of isOn) {
    expect(plans.filter(one).length).toBeGreaterThan(0)
    expect(plans.filter(one).length).toBeLessThan(plans.length)
  }
  expect(conditionNames).toContain('quiet')
})

test('nothing strikes in a quiet stretch, and all ask at once when it is over', () => {
  const options = drawSwarm(1, { only: ['crash'] })
  const faultRates = {
    ...noFaultRates(90_000_000),
    ...{ meanMicros: { crash: 500_000 }, quietAtMicros: 5_000_000, quietMicros: 60_000_000 },
  }
  const faults = drawFaults({ ...options, faultRates })
  const inside = faults.filter(({ atMicros }) => atMicros >= 5_000_000 && atMicros < 65_000_000)
  expect(inside.filter((fault) => !['idle', 'away'].includes(nameOf(fault)))).toEqual([])
  expect(faults.some((fault) => nameOf(fault) === 'burst' && fault.atMicros === 65_000_000)).toBe(
    true,
  )
  expect(faults.some((fault) => fault.kind === 'crash' && fault.atMicros > 65_000_000)).toBe(true)
})

test('in a ring of five each node hears its two neighbours, and two others it does not', () => {
  const options = { ...drawSwarm(1), nodeCount: 5 }
  const rates = { ...noFaultRates(30_000_000), meanMicros: { ring: 3_000_000 } }
  const [ring] = drawFaults({ ...options, faultRates: rates })
  expect(ring?.kind).toBe('cut')
  const ways = ring?.kind === 'cut' ? ring.ways : []
  for (const node of ['n1', 'n2', 'n3', 'n4', 'n5']) {
    expect(ways.filter(([from]) => from === node)).toHaveLength(2)
    expect(ways.filter(([, to]) => to === node)).toHaveLength(2)
  }
})

test('some swizzles release their clogs in another order than they began', () => {
  const rates = { ...noFaultRates(60_000_000), meanMicros: { swizzle: 1_000_000 } }
  const faultRates = { ...rates, clogLengthMeanMicros: 300_000 }
  const clogs = drawFaults({ ...drawSwarm(3), nodeCount: 5, faultRates }).flatMap((fault) =>
    fault.kind === 'clog' ? [fault] : [],
  )
  expect(clogs.every((fault) => fault.lengthMicros > 0)).toBe(true)
  const ends = clogs.map((fault) => fault.atMicros + fault.lengthMicros)
  expect(ends).not.toEqual(ends.toSorted((a, b) => a - b))
})

test('the switches of a run print as flags that give them again', () => {
  expect(toFlags({})).toBe('')
  expect(toFlags({ only: ['crash', 'drop'] })).toBe('--faults crash,drop')
})

test('faults of gateways and replica sets are drawn only where a run has them', () => {
  const drawn = Array.from({ length: 300 }, (_, i) => drawSwarm(i + 1))
  for (const options of drawn) {
    const names = new Set(drawFaults(options).map(nameOf))
    const { gateways } = options.workload
    if (gateways === undefined) expect(names.has('gateway-death')).toBe(false)
    if (options.setCount === 1) expect(names.has('set-down')).toBe(false)
  }
  const all = new Set(drawn.flatMap((options) => drawFaults(options).map(nameOf)))
  const expected = ['gateway-death', 'gateway-pause', 'set-down', 'rot-in-outage', 'rot-of-keys']
  expect([...all]).toEqual(expect.arrayContaining(expected))
})

test('a node that loses its data disk hears then only nodes that were cut off before, a majority with it', () => {
  const drawn = seeds.map((seed) => drawSwarm(seed))
  const lossy = drawn.filter(({ faultRates }) => faultRates.lostData !== undefined)
  expect(lossy.length).toBeGreaterThan(4)
  expect(lossy.length).toBeLessThan(drawn.length / 2)
  for (const options of lossy) {
    const { nodeCount, setCount = 1, faultRates } = options
    const lost = present(faultRates.lostData, 'drawn')
    const { node, behind, ahead, atMicros, lostAtMicros, untilMicros } = lost
    expect(new Set([node, ...behind, ...ahead]).size).toBe(nodeCount / setCount)
    expect([behind.length, ahead.length]).toEqual([ahead.length, behind.length])
    const faults = drawFaults(options).filter((fault) => nameOf(fault) === 'lost-data')
    const cuts = faults.flatMap((fault) => (fault.kind === 'cut' ? [fault] : []))
    const times = cuts.map((cut) => [cut.atMicros, cut.atMicros + cut.lengthMicros])
    expect(times).toEqual([
      [atMicros, lostAtMicros],
      [lostAtMicros, untilMicros],
    ])
    const losses = faults.filter(({ kind }) => kind === 'empty-disk')
    expect(losses).toMatchObject([{ atMicros: lostAtMicros, node, disk: 'data' }])
    const unheard = cuts.map(({ ways }) =>
      ways.flatMap(([from, to]) => (from === node ? [to] : [])).toSorted(),
    )
    expect(unheard).toEqual([behind.toSorted(), ahead.toSorted()])
  }
  expect(drawSwarm(1, { without: ['lost-data'] }).faultRates.lostData).toBeUndefined()
})
