import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  decodeHoldings,
  encodeHoldings,
  listShards,
  spread,
  type Holding,
  type Holdings,
  type Present,
} from '../../src/triggers/assignment.ts'

const shards = Array.from({ length: 20 }, (_, shard) => shard)

function present(...names: readonly string[]): Present[] {
  return names.map((worker) => ({ worker, released: 0 }))
}

function countsOf(holdings: Holdings, names: readonly string[]): number[] {
  return names.map((name) => listShards(holdings, name).size)
}

/** Goes on until nothing changes; each worker gives up its shards at once when it must. */
function settledSpread(from: Holdings, names: readonly string[], generation: number): Holdings {
  let now = from
  for (let next = generation; next < generation + 5; next++) {
    const workers = names.map((worker) => ({ worker, released: next - 1 }))
    now = spread(now, shards, workers, next) ?? now
  }
  return now
}

const none: Holdings = new Map()

test('TRIG-5: the first workers get as many shards each, all of one generation', () => {
  const first = spread(none, shards, present('a', 'b', 'c'), 1)
  expect(countsOf(first ?? none, ['a', 'b', 'c']).toSorted((a, b) => a - b)).toEqual([6, 7, 7])
  expect(new Set([...(first ?? none).values()].map(({ generation }) => generation))).toEqual(
    new Set([1]),
  )
  expect(spread(first ?? none, shards, present('a', 'b', 'c'), 2)).toBeUndefined()
})

test('TRIG-5: a shard moves when its owner has given it up, under a new generation', () => {
  const alone = spread(none, shards, present('a'), 1) ?? none
  const asked = spread(alone, shards, present('a', 'b'), 2) ?? none
  expect(countsOf(asked, ['a', 'b'])).toEqual([10, 0])
  const moving = [...asked.values()].filter(({ next }) => next !== undefined)
  expect(moving).toHaveLength(10)
  expect(moving[0]).toEqual({ owner: 'a', generation: 1, next: { worker: 'b', asked: 2 } })
  // It has not said so yet.
  expect(spread(asked, shards, present('a', 'b'), 3)).toBeUndefined()
  const released = [
    { worker: 'a', released: 2 },
    { worker: 'b', released: 2 },
  ]
  const given = spread(asked, shards, released, 3) ?? none
  expect(countsOf(given, ['a', 'b'])).toEqual([10, 10])
  expect([...listShards(given, 'b').values()]).toEqual(Array.from({ length: 10 }, () => 3))
  expect([...listShards(given, 'a').values()]).toEqual(Array.from({ length: 10 }, () => 1))
})

test('the shards of a dead worker go to others at once, and no other shard moves', () => {
  const before = settledSpread(none, ['a', 'b', 'c', 'd'], 1)
  const after = spread(before, shards, present('a', 'b', 'd'), 9) ?? none
  for (const [shard, holding] of after) {
    if (before.get(shard)?.owner === 'c') expect(holding.generation).toBe(9)
    else expect(holding).toEqual(before.get(shard))
  }
  expect(countsOf(after, ['a', 'b', 'd']).toSorted((a, b) => a - b)).toEqual([6, 7, 7])
})

test('a shard that was on its way to a worker that died stays, or goes to another one', () => {
  const alone = spread(none, shards, present('a'), 1) ?? none
  const asked = spread(alone, shards, present('a', 'b'), 2) ?? none
  const back = spread(asked, shards, present('a'), 3) ?? none
  expect([...back.values()]).toEqual(shards.map(() => ({ owner: 'a', generation: 1 })))
})

const names = ['a', 'b', 'c', 'd', 'e']

test('TRIG-5: shards stay spread evenly as workers come and go, one owner for each generation', () => {
  const companies = fc.array(fc.subarray(names, { minLength: 1 }), { minLength: 1, maxLength: 8 })
  fc.assert(
    fc.property(companies, (comings) => {
      let holdings: Holdings = none
      const owners = new Map<string, string>()
      for (const [i, company] of comings.entries()) {
        holdings = settledSpread(holdings, company, 1 + i * 5)
        const counts = countsOf(holdings, company)
        expect(counts.reduce((sum, count) => sum + count, 0)).toBe(shards.length)
        expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1)
        for (const [shard, { owner, generation }] of holdings) {
          const key = `${shard} under ${generation}`
          expect(owners.get(key) ?? owner).toBe(owner)
          owners.set(key, owner)
        }
      }
    }),
    { seed: 1, numRuns: 200 },
  )
})

test('an assignment is read as it was written', () => {
  const next = fc.record({ worker: fc.constantFrom(...names), asked: fc.nat() })
  const holding: fc.Arbitrary<Holding> = fc.oneof(
    fc.record({ owner: fc.constantFrom(...names), generation: fc.nat() }),
    fc.record({ owner: fc.constantFrom(...names), generation: fc.nat(), next }),
  )
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(4095), holding)), (entries) => {
      const holdings = new Map(entries)
      const stored: unknown = JSON.parse(JSON.stringify(encodeHoldings(holdings)))
      expect(decodeHoldings(encodeHoldings(holdings))).toEqual(holdings)
      expect(stored).toEqual(encodeHoldings(holdings))
    }),
    { seed: 1 },
  )
})

test('all shards of one worker encode as one run, and decoding refuses any other shape', () => {
  const all = Array.from({ length: 4096 }, (_, shard) => shard)
  const holdings = spread(none, all, present('a'), 1) ?? none
  expect(encodeHoldings(holdings)).toEqual({ workers: ['a'], runs: [[0, 4095, 0, 1, -1, 0]] })
  const bad = [null, [], {}, { workers: ['a'], runs: [[0, 1, 5, 1]] }, { workers: [], runs: 3 }]
  for (const stored of [...bad, { workers: ['a'], runs: [[0, 4096, 0, 1]] }]) {
    expect(() => decodeHoldings(stored)).toThrow('who has which shards')
  }
})
