/** Where groups are: every bucket in one set, the same for all, first leaders spread. */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { groupOfBytes, nodeId, type GroupId, type NodeId } from '../../src/base/ids.ts'
import { encodePlace, placedPrefix, type Place } from '../../src/base/placed-group.ts'
import { Holdings } from '../../src/placement/holdings.ts'
import { setGroupOf } from '../../src/members/set-group.ts'
import {
  isFirstAlive,
  placementOver,
  staticPlacement,
  type LaterSet,
} from '../../src/placement/placement.ts'

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

const third = ['i', 'j', 'k'].map(nodeId)

function withThird(): ReturnType<typeof placementOver> {
  const placement = placementOver([east, west], [], [{ name: 'east' }, { name: 'west' }])
  placement.takeLater([later('third', third)])
  return placement
}

function later(name: string, nodes: readonly NodeId[]): LaterSet {
  return { name, version: 2, nodes: nodes.map((node) => ({ node, url: `http://${node}:1` })) }
}

test('MOVE-16: a set that comes later takes no group by its hash, and those that have it as their place', () => {
  const [before, after] = [placementOver([east, west]), withThird()]
  for (const group of groups) expect(after.setOf(group)).toBe(before.setOf(group))
  for (let bucket = 0; bucket < 4_096; bucket++) {
    expect(after.setOfBucket(bucket)).toBe(before.setOfBucket(bucket))
  }
  const inThird = placed({ kind: 'set', name: 'third' }, 'key')
  expect([after.setOf(inThird), after.refusalOf(inThird)]).toEqual([2, undefined])
  expect(after.replicasOf(inThird).voters.toSorted()).toEqual(third)
  expect(after.setsAlong(inThird)).toEqual([2])
  const old = placementOver([east, west], [], [{ name: 'east' }, { name: 'west' }])
  expect(old.refusalOf(inThird)).toMatch('no replica set has the name "third"')
})

test('MOVE-16: sets that come later have their numbers, names and nodes in the order of their row', () => {
  const placement = withThird()
  const south = later('south', [nodeId('s')])
  expect(placement.takeLater([later('third', third), south])).toEqual([3])
  // An answer of a node that is behind.
  expect(placement.takeLater([later('third', third)])).toEqual([])
  expect([placement.setCount, placement.firstSetCount]).toEqual([4, 2])
  expect(placement.sites.map(({ name, version }) => [name, version])).toEqual([
    ['east', undefined],
    ['west', undefined],
    ['third', 2],
    ['south', 2],
  ])
  expect([nodeId('d'), nodeId('j'), nodeId('s'), nodeId('x')].map(placement.setOfNode)).toEqual([
    1, 2, 3, -1,
  ])
  expect(placement.nodesOf(2)).toEqual(third)
  expect(placement.laterSets.at(-1)).toEqual(south)
})

test.each([
  ['another order of the sets', [later('south', [nodeId('s')])]],
  ['the name of a first set', [later('third', third), later('west', [nodeId('s')])]],
  ['a node of another set', [later('third', third), later('south', [nodeId('a')])]],
  ['a set without nodes', [later('third', third), later('south', [])]],
])('MOVE-16: %s is found out', (_, sets) => {
  expect(() => withThird().takeLater(sets)).toThrow('MOVE-16')
})

test('MOVE-16: no set comes later where one set holds all', () => {
  expect(() => staticPlacement(east).takeLater([later('third', third)])).toThrow('MOVE-16')
})

test('MOVE-16: each set has its own group, that of a later one by its place', () => {
  const placement = withThird()
  const own = [0, 1, 2].map((set) => setGroupOf(placement, set))
  expect(own.map(placement.setOf)).toEqual([0, 1, 2])
  expect(new Set(own).size).toBe(3)
})
