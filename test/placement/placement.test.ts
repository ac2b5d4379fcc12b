/** Where groups are: every bucket in one set, the same for all, first leaders spread. */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { groupOfBytes, nodeId, type GroupId, type NodeId } from '../../src/base/ids.ts'
import { encodePlace, placedPrefix, type Place } from '../../src/base/placed-group.ts'
import { Holdings } from '../../src/placement/holdings.ts'
import { isFirstAlive, placementOver, staticPlacement } from '../../src/placement/placement.ts'

const groups = Array.from({ length: 2_000 }, (_, i) => groupOfBytes(Buffer.from(`group ${i}`)))
const east = ['a', 'b', 'c'].map(nodeId)
const west = ['d', 'e', 'f', 'g', 'h'].map(nodeId)

function countBy<Key>(of: (group: GroupId) => Key): Map<Key, number> {
  const counts = new Map<Key, number>()
  for (const group of groups) counts.set(of(group), (counts.get(of(group)) ?? 0) + 1)
  return counts
}

test('MOVE-4: each group is held by the nodes of one set, and by no other', () => {
  const placement = placementOver([east, west])
  const holdings = [...east, ...west].map((node) => new Holdings(placement, node))
  for (const group of groups) {
    const set = placement.setOf(group) === 0 ? east : west
    expect(placement.replicasOf(group).voters.toSorted()).toEqual(set)
    const holders = [...east, ...west].filter((_, i) => holdings[i]?.has(group))
    expect(holders).toEqual(set)
  }
  for (const count of countBy((group) => placement.setOf(group)).values()) {
    expect(count).toBeGreaterThan(groups.length * 0.4)
  }
})

test('the first position of groups is led by each node of a set about as often', () => {
  const placement = placementOver([east, west])
  const counts = countBy((group) => placement.replicasOf(group).firstFull)
  for (const node of east) expect(counts.get(node)).toBeGreaterThan((groups.length / 6) * 0.7)
  for (const node of west) expect(counts.get(node)).toBeGreaterThan((groups.length / 10) * 0.7)
})

test('one set places groups as ever: by the bucket modulo the nodes', () => {
  const placement = staticPlacement(east)
  expect([placement.setCount, placement.setOfNode(nodeId('b'))]).toEqual([1, 0])
  for (const group of groups) {
    const { voters, firstFull } = placement.replicasOf(group)
    expect(voters[0]).toBe(firstFull)
    expect(new Holdings(placement, nodeId('b')).has(group)).toBe(true)
  }
})

test('exactly one live node, the first of those that hold a group, takes itself for the first', () => {
  const placement = placementOver([east, west])
  const isAlive = (node: NodeId): boolean => node !== 'a' && node !== 'e'
  for (const group of groups.slice(0, 200)) {
    const { voters } = placement.replicasOf(group)
    const first = [...east, ...west].filter((node) => isFirstAlive(node, voters, isAlive))
    expect(first).toHaveLength(1)
    expect(first.every(isAlive)).toBe(true)
  }
})

test('a node in two sets, and a set without nodes, are bugs of the caller', () => {
  expect(() => placementOver([east, east])).toThrow('a node is named twice')
  expect(() => placementOver([east, []])).toThrow('a set has nodes')
})

const north = ['i', 'j', 'k'].map(nodeId)
const sites = [
  { name: 'east', region: 'eu' },
  { name: 'west', region: 'us' },
  { name: 'north', region: 'eu' },
]

function placed(place: Place, key: string): GroupId {
  const parts = [placedPrefix('tables', 'trips', 1), encodePlace(place), Buffer.from(key)]
  return groupOfBytes(Buffer.concat(parts))
}

test('MOVE-8: a group is in the set that its name says, or in one of the sets of that region, about evenly', () => {
  const placement = placementOver([east, west, north], [], sites)
  const counts = [0, 0, 0]
  for (let i = 0; i < 1_000; i++) {
    expect(placement.setOf(placed({ kind: 'set', name: 'west' }, `${i}`))).toBe(1)
    expect(placement.setOf(placed({ kind: 'region', name: 'us' }, `${i}`))).toBe(1)
    const set = placement.setOf(placed({ kind: 'region', name: 'eu' }, `${i}`))
    counts[set] = (counts[set] ?? 0) + 1
  }
  expect(counts[1]).toBe(0)
  for (const count of [counts[0], counts[2]]) expect(count).toBeGreaterThan(400)
})

test('MOVE-8: every name, with a place or without, known or not, is held by exactly one set, at every node alike', () => {
  const nodes = [...east, ...west, ...north]
  const placements = [1, 2].map(() => placementOver([east, west, north], [], sites))
  const [placement, other] = placements
  if (placement === undefined || other === undefined) return
  const holdings = nodes.map((node) => new Holdings(other, node))
  const name = fc.constantFrom('east', 'west', 'north', 'eu', 'us', 'asia', 'none')
  const place = fc.record({ kind: fc.constantFrom('set' as const, 'region' as const), name })
  const group = fc.oneof(
    fc.tuple(place, fc.string()).map(([one, key]) => placed(one, key)),
    fc.uint8Array({ minLength: 1, maxLength: 60 }).map(groupOfBytes),
  )
  fc.assert(
    fc.property(group, (one) => {
      const set = placement.nodesOf(placement.setOf(one))
      expect(nodes.filter((_, i) => holdings[i]?.has(one))).toEqual(set)
      expect(placement.replicasOf(one).voters.toSorted()).toEqual(set)
    }),
  )
})

test('the first position of groups with a place is led by each node of the set about as often', () => {
  const placement = placementOver([east, west, north], [], sites)
  const leaders = groups.map(
    (_, i) => placement.replicasOf(placed({ kind: 'region', name: 'us' }, `${i}`)).firstFull,
  )
  for (const node of west) {
    const count = leaders.filter((one) => one === node).length
    expect(count).toBeGreaterThan((groups.length / west.length) * 0.7)
  }
})

test('MOVE-8: a place that no set has is refused, in words that say which there are', () => {
  const placement = placementOver([east, west, north], [], sites)
  const refusal = (place: Place): string | undefined => placement.refusalOf(placed(place, 'k'))
  expect(refusal({ kind: 'region', name: 'eu' })).toBeUndefined()
  expect(refusal({ kind: 'set', name: 'west' })).toBeUndefined()
  expect(placement.refusalOf(groupOfBytes(Buffer.from('k')))).toBeUndefined()
  expect(refusal({ kind: 'region', name: 'asia' })).toBe(
    'no replica set is in region "asia"; of regions, there are eu, us',
  )
  expect(refusal({ kind: 'set', name: 'eu' })).toBe(
    'no replica set has the name "eu"; there are east, west, north',
  )
  expect(placementOver([east, west]).refusalOf(placed({ kind: 'region', name: 'eu' }, 'k'))).toBe(
    'no replica set is in region "eu"; of regions, no node has one',
  )
})

test('one set without a region takes every place; with a region it takes its own', () => {
  const eu = placed({ kind: 'region', name: 'eu' }, 'k')
  expect(staticPlacement(east).refusalOf(eu)).toBeUndefined()
  const inUs = placementOver([east], [], [{ name: 'main', region: 'us' }])
  expect(inUs.refusalOf(eu)).toMatch('no replica set is in region "eu"')
  expect(inUs.setOf(eu)).toBe(0)
})
