/** Scans of what is not durable yet, while rows come and batches take them. */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { compareText } from '../../src/base/bytes.ts'
import { SeededRandom } from '../../sim/world/random.ts'
import { KeyOrder, type KeyBounds } from '../../src/store/key-order.ts'
import { Overlay, type TakenGroup } from '../../src/store/overlay.ts'
import { group } from '../log/log-fixture.ts'
import { written } from './rows.ts'

const a = group('a')

function commit(overlay: Overlay, position: number, ...keys: readonly string[]): void {
  commitRows(overlay, position, keys, 'value')
}

/** Without a value they are deleted. */
function commitRows(
  overlay: Overlay,
  position: number,
  keys: readonly string[],
  value: string | undefined,
): void {
  overlay.commit({
    ...{ group: a, position, timestamp: position, horizonBefore: 0, horizon: 0 },
    writes: keys.map((key) =>
      written(Buffer.from(key), value === undefined ? value : Buffer.from(value)),
    ),
    encodeState: () => new Uint8Array(),
  })
}

const anyKey = fc.string({ minLength: 1, maxLength: 2, unit: fc.constantFrom('a', 'b', 'c', 'd') })
const anyStep = fc.oneof(
  { weight: 3, arbitrary: fc.array(anyKey, { maxLength: 6 }) },
  { weight: 2, arbitrary: fc.constantFrom('scan' as const, 'take' as const, 'release' as const) },
)

test('a scan has all rows in order, whatever came and was released since the last one', () => {
  fc.assert(
    fc.property(fc.array(anyStep, { maxLength: 40 }), (steps) => {
      const overlay = new Overlay({ nowMs: () => 0, groupBytesMax: Number.POSITIVE_INFINITY })
      let taken: readonly TakenGroup[] = []
      let position = 0
      for (const step of steps) {
        if (typeof step === 'object') commit(overlay, ++position, ...step)
        else if (step === 'take' && taken.length === 0)
          taken = overlay.take({ bytesMax: 1, untilMs: 0 })
        else if (step === 'release') {
          overlay.release(taken)
          taken = []
        }
        if (step !== 'scan') continue
        const rows = overlay.range(a, {})
        const all = ['a', 'b', 'c', 'd'].flatMap((one) =>
          ['', 'a', 'b', 'c', 'd'].map((other) => one + other),
        )
        const expected = all.filter((key) => overlay.get(a, key) !== undefined)
        expect(rows.map(({ text }) => text)).toEqual(expected)
      }
    }),
    { seed: 11, numRuns: 500 },
  )
})

function keysOf(order: KeyOrder, bounds: KeyBounds = {}, isReverse = false): string[] {
  const keys: string[] = []
  order.walk(bounds, isReverse, (key) => keys.push(key) > 0)
  return keys
}

test('keys are in order, however many come and go between two looks, or while they are put in order', () => {
  const keys = fc.uniqueArray(fc.string({ maxLength: 3 }), { maxLength: 60 })
  const cuts = fc.array(fc.nat({ max: 60 }), { maxLength: 8 })
  fc.assert(
    fc.property(keys, cuts, fc.boolean(), (drawn, removals, isLookedAt) => {
      const present = new Set(drawn.slice(0, 5))
      const order = new KeyOrder(present)
      for (const key of drawn.slice(5)) {
        order.add(key)
        present.add(key)
        if (!removals.includes(present.size)) continue
        const gone = [...present].filter((_, at) => at % 3 === 0).sort(compareText)
        order.remove(gone)
        for (const one of gone) present.delete(one)
        if (isLookedAt) expect(keysOf(order)).toEqual([...present].sort(compareText))
      }
      expect(keysOf(order)).toEqual([...present].sort(compareText))
    }),
    { seed: 12, numRuns: 500 },
  )
})

test('thousands of keys are put in order in pieces, while others come and go, and walked both ways within bounds', () => {
  const random = new SeededRandom('key order')
  const keyOf = (): string => random.int(0, 1_000_000).toString(36)
  for (let round = 0; round < 20; round++) {
    const present = new Set(Array.from({ length: 3_000 }, keyOf))
    const order = new KeyOrder(present)
    for (let turn = 0; turn < 40; turn++) {
      order.step()
      const key = keyOf()
      if (!present.has(key)) order.add(key)
      present.add(key)
      const gone = [...present].filter(() => random.chance(3_000)).sort(compareText)
      order.remove(gone)
      for (const one of gone) present.delete(one)
    }
    const sorted = [...present].sort(compareText)
    expect(keysOf(order)).toEqual(sorted)
    expect(keysOf(order, {}, true)).toEqual(sorted.toReversed())
    const [gte, lt] = [keyOf(), keyOf()]
    for (const bounds of [{ gte, lt }, { gt: gte }, { gt: gte, gte: lt }, { lt }]) {
      const within = sorted.filter((key) => isWithin(key, bounds))
      expect(keysOf(order, bounds)).toEqual(within)
      expect(keysOf(order, bounds, true)).toEqual(within.toReversed())
    }
  }
})

function isWithin(key: string, { gte = '', gt, lt }: KeyBounds): boolean {
  return key >= gte && (gt === undefined || key > gt) && (lt === undefined || key < lt)
}

test('LIVE-6: no piece puts more than some hundred keys in order, of those that came later, too', () => {
  let taken = 0
  const counted = function* (): Generator<string> {
    for (let at = 0; at < 20_000; at++) {
      taken += 1
      yield String((at * 2_654_435_761) % 2 ** 32)
    }
  }
  const order = new KeyOrder(counted())
  let pieces = 0
  for (let before = 0; order.step(); before = taken) {
    expect(taken - before).toBeLessThanOrEqual(128)
    pieces += 1
  }
  expect(taken).toBe(20_000)
  expect(pieces).toBeGreaterThan(20_000 / 128 - 2)
  for (let at = 0; at < 10_000; at++) order.add(`later ${at}`)
  pieces = 0
  while (order.step()) pieces += 1
  expect(pieces).toBeGreaterThan(10_000 / 128 - 2)
})

test('a range ends where its page does, deleted rows apart, from either side', () => {
  const row = fc.tuple(fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'), fc.boolean())
  const page = fc.record(
    { limit: fc.nat({ max: 5 }), bytesMax: fc.nat({ max: 8 }), reverse: fc.boolean() },
    { requiredKeys: [] },
  )
  fc.assert(
    fc.property(fc.array(row), page, (rows, range) => {
      const overlay = new Overlay({ nowMs: () => 0, groupBytesMax: Number.POSITIVE_INFINITY })
      for (const [at, [key, isDeleted]] of rows.entries()) {
        commitRows(overlay, at + 1, [key], isDeleted ? undefined : 'v')
      }
      const all = overlay.range(a, range.reverse === true ? { reverse: true } : {})
      const found = overlay.range(a, range)
      expect(found).toEqual(all.slice(0, found.length))
      const live = found.filter(({ value }) => value !== undefined)
      const isFull = live.length >= (range.limit ?? 9) || 2 * live.length > (range.bytesMax ?? 99)
      if (found.length < all.length) expect(isFull).toBe(true)
      expect(live.length).toBeLessThanOrEqual(Math.max(1, range.limit ?? 9))
    }),
    { seed: 13, numRuns: 500 },
  )
})

test('a scan after each of many rows does not sort all that are pending again', () => {
  const overlay = new Overlay({ nowMs: () => 0, groupBytesMax: Number.POSITIVE_INFINITY })
  const keyOf = (at: number): string => ((at * 2_654_435_761) % 2 ** 32).toString(16)
  let position = 0
  for (; position < 100_000; position++) commit(overlay, position + 1, keyOf(position))
  overlay.range(a, {})
  const from = performance.now()
  for (let round = 0; round < 100; round++) {
    commit(overlay, ++position, keyOf(position - 1))
    const key = keyOf(position - 1)
    const range = { gte: Buffer.from(key), lt: Buffer.from(`${key}\0`) }
    expect(overlay.range(a, range).map(({ text }) => text)).toEqual([key])
  }
  // Sorting takes some fifty milliseconds each time.
  expect(performance.now() - from).toBeLessThan(2_500)
})
