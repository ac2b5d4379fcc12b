/** Scans of what is not durable yet, while rows come and batches take them. */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { compareText } from '../../src/base/bytes.ts'
import { KeyOrder } from '../../src/replica/key-order.ts'
import { Overlay, type TakenGroup } from '../../src/replica/overlay.ts'
import { group } from './log-fixture.ts'
import { written } from './rows.ts'

const a = group('a')

function commit(overlay: Overlay, position: number, ...keys: readonly string[]): void {
  overlay.commit({
    ...{ group: a, position, timestamp: position, horizonBefore: 0, horizon: 0 },
    writes: keys.map((key) => written(Buffer.from(key), Buffer.from('value'))),
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
      const overlay = new Overlay()
      let taken: readonly TakenGroup[] = []
      let position = 0
      for (const step of steps) {
        if (typeof step === 'object') commit(overlay, ++position, ...step)
        else if (step === 'take' && taken.length === 0) taken = overlay.take(1)
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

test('keys are in order, however many come and go between two looks', () => {
  const keys = fc.uniqueArray(fc.string({ maxLength: 3 }), { maxLength: 60 })
  fc.assert(
    fc.property(keys, fc.array(fc.nat(), { maxLength: 8 }), (drawn, cuts) => {
      const present = new Set(drawn.slice(0, 5))
      const order = new KeyOrder(present)
      for (const key of drawn.slice(5)) {
        order.add(key)
        present.add(key)
        if (!cuts.includes(present.size)) continue
        const gone = [...present].filter((_, at) => at % 3 === 0).sort(compareText)
        order.remove(gone)
        for (const one of gone) present.delete(one)
        expect(order.keys()).toEqual([...present].sort(compareText))
      }
      expect(order.keys()).toEqual([...present].sort(compareText))
    }),
    { seed: 12, numRuns: 500 },
  )
})

test('a scan after each of many rows does not sort all that are pending again', () => {
  const overlay = new Overlay()
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
