/** Rows that the cache of rows keeps, and those that it lets go. */
import { expect, test } from 'vitest'
import { RowCache } from '../../src/store/row-cache.ts'
import type { Stored } from '../../src/store/row-format.ts'
import { group } from '../log/log-fixture.ts'

const [a, b] = [group('a'), group('b')]

function row(stamp: number, bytes = 0): Stored {
  return { stamp, payload: new Uint8Array(bytes) }
}

test('a row is found under its own group and key', () => {
  const cache = new RowCache(10_000)
  cache.put(a, 'x', row(1))
  cache.put(b, 'x', row(2))
  expect(cache.get(a, 'x')).toEqual(row(1))
  expect(cache.get(b, 'x')).toEqual(row(2))
  expect(cache.get(a, 'y')).toBeUndefined()
})

test('a row that is read again outlives those that are not', () => {
  const cache = new RowCache(10_000)
  cache.put(a, 'read', row(1))
  cache.put(a, 'left', row(2))
  for (let at = 0; at < 40; at++) {
    cache.put(b, `${at}`, row(at, 500))
    expect(cache.get(a, 'read')).toEqual(row(1))
  }
  expect(cache.get(a, 'left')).toBeUndefined()
})

test('all rows together stay within the bound, whatever their sizes', () => {
  const bytesMax = 10_000
  const cache = new RowCache(bytesMax)
  for (let at = 0; at < 200; at++) cache.put(a, `${at}`, row(at, (at * 37) % 900))
  const kept = Array.from({ length: 200 }, (_, at) => `${at}`).filter((key) => cache.get(a, key))
  expect(kept.length).toBeGreaterThan(1)
  const bytes = kept.reduce((sum, key) => sum + (cache.get(a, key)?.payload.length ?? 0), 0)
  expect(bytes).toBeLessThanOrEqual(bytesMax)
})

test('a row that is dropped is gone from both generations', () => {
  const cache = new RowCache(2_000)
  cache.put(a, 'x', row(1))
  cache.put(a, 'y', row(2, 400))
  cache.put(a, 'z', row(3, 400))
  // The first is in both now: it has aged, and was read again.
  expect(cache.get(a, 'x')).toEqual(row(1))
  cache.drop(a, 'x')
  expect(cache.get(a, 'x')).toBeUndefined()
  expect(cache.get(a, 'y')).toEqual(row(2, 400))
})

test('the cache keeps no row that is too large, and none within a bound of 0', () => {
  const cache = new RowCache(2_000)
  cache.put(a, 'large', row(1, 1_000))
  expect(cache.get(a, 'large')).toBeUndefined()
  const none = new RowCache(0)
  none.put(a, 'x', row(1))
  expect(none.get(a, 'x')).toBeUndefined()
})
