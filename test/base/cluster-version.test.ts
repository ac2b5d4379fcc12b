/** Cluster versions: whole numbers, and the builds that support some of them. */
import { expect, test } from 'vitest'
import {
  actingAs,
  allowsFeature,
  isVersion,
  ownVersions,
  readVersions,
  supportsVersion,
  versionsText,
} from '../../src/base/cluster-version.ts'

test('UPG-3: a feature is allowed from its version on', () => {
  const features = ['told-version', 'numbered-cancel'] as const
  expect(features.map((one) => allowsFeature(1, one))).toEqual([false, false])
  expect(features.map((one) => allowsFeature(2, one))).toEqual([true, true])
  expect(features.map((one) => allowsFeature(3, one))).toEqual([true, true])
})

test('a build supports the versions between two, and acts as an earlier one', () => {
  expect([1, 2, 3, 4].map((one) => supportsVersion({ min: 2, max: 3 }, one))).toEqual([
    ...[false, true, true, false],
  ])
  expect(actingAs(1)).toEqual({ min: 1, max: 1 })
  expect(actingAs(ownVersions.max)).toEqual(ownVersions)
  for (const odd of [0, ownVersions.max + 1, 1.5, Number.NaN]) {
    expect(() => actingAs(odd), String(odd)).toThrow(RangeError)
  }
  expect(versionsText({ min: 1, max: 1 })).toBe('cluster version 1')
  expect(versionsText({ min: 1, max: 2 })).toBe('cluster versions 1 to 2')
})

test('only whole numbers from 1 on are versions', () => {
  expect([1, 2, 1_000_000].map(isVersion)).toEqual([true, true, true])
  const odd = [0, -1, 1.5, 1_000_001, '1', null, undefined, Number.NaN]
  expect(odd.filter(isVersion)).toEqual([])
  expect(readVersions([1, 3])).toEqual({ min: 1, max: 3 })
  for (const one of [[3, 1], [1], [1, 2, 3], [0, 1], 'a', undefined]) {
    expect(readVersions(one)).toBe(undefined)
  }
})
