/** Where groups are: every bucket in one set, the same for all, first leaders spread. */
import { expect, test } from 'vitest'
import { groupOfBytes, nodeId, type GroupId, type NodeId } from '../../src/base/ids.ts'
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
