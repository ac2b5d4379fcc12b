/** The buckets that a set has given away and got, as one of its nodes knows them. */
import { expect, test } from 'vitest'
import { groupOfBytes, type GroupId } from '../../src/base/ids.ts'
import { encodeTuple } from '../../src/base/tuple.ts'
import { hashToBucket } from '../../src/placement/placement.ts'
import { OwnShares, type Share } from '../../src/placement/shares.ts'

const group = groupOfBytes(encodeTuple(['tables', 'photos', 1, 'ann']))
const other = groupOfBytes(encodeTuple(['tables', 'photos', 1, 'bob']))
const bucket = hashToBucket(group)

function shareOf(phase: Share['phase'], began: readonly GroupId[] = []): Share {
  const epoch = phase === 'leaving' || phase === 'here' ? 0 : 3
  const buckets = [bucket, hashToBucket(other)].toSorted((a, b) => a - b)
  return { phase, set: 'west', term: 1, buckets, epoch, began }
}

/** Of a node of the set to which the configuration gives the bucket, in that epoch. */
function sharesWith(share: Share, ownEpoch: number, rowEpoch = 3): OwnShares {
  const shares = new OwnShares()
  shares.enter(ownEpoch)
  shares.take([share], rowEpoch)
  return shares
}

test('MOVE-14: no group begins in a closed bucket from the epoch on that closed it', () => {
  const closed = shareOf('closed')
  expect(sharesWith(closed, 2).begins(group, true)).toBe(true)
  expect(sharesWith(closed, 3).begins(group, true)).toBe(false)
  expect(sharesWith(closed, 4, 4).begins(group, true)).toBe(false)
})

test('MOVE-14: a group that may have begun before goes on in the set that has closed its bucket', () => {
  for (const phase of ['settled', 'gone'] as const) {
    const shares = sharesWith(shareOf(phase, [group]), 3)
    expect(shares.begins(group, true)).toBe(true)
    expect(shares.begins(other, true)).toBe(false)
  }
})

test('MOVE-14: a node that has lost the entry by a restart begins no group that is shared out', () => {
  const shares = new OwnShares()
  shares.enter(3)
  shares.take([], 2)
  expect(shares.begins(group, true)).toBe(false)
  shares.take([], 3)
  expect(shares.begins(group, true)).toBe(true)
})

test('MOVE-14: groups of cells, and groups with a place, are not shared out', () => {
  const shares = new OwnShares()
  shares.enter(3)
  const cells = groupOfBytes(encodeTuple(['tables', 'Schemaless', 1, 'trips', 7]))
  const placed = groupOfBytes(encodeTuple(['placed', 'tables', 'photos', 1, 'set:west']))
  for (const one of [cells, placed, groupOfBytes(encodeTuple(['schemas', 'photos']))]) {
    expect(shares.begins(one, true)).toBe(true)
    expect(shares.begins(one, false)).toBe(false)
  }
})

test('a bucket that has come begins groups whose names put them in another set', () => {
  const shares = sharesWith(shareOf('here'), 3)
  expect(shares.begins(group, false)).toBe(true)
  const elsewhere = groupOfBytes(encodeTuple(['tables', 'photos', 1, 'carl']))
  expect(shares.begins(elsewhere, false)).toBe(false)
})

test('each change of the row and of the epoch has another version', () => {
  const shares = new OwnShares()
  const row = [shareOf('leaving')]
  shares.take(row, 1)
  const first = shares.version
  shares.take(row, 1)
  expect(shares.version).toBe(first)
  shares.enter(2)
  shares.take(row, 2)
  expect(shares.version).toBe(first + 2)
})
