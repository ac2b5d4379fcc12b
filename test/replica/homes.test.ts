/** Groups of a closed bucket at one node: in memory as the bucket closes, and as it is settled (`src/replica/replica.ts`). */
import { expect, test } from 'vitest'
import type { Share, SharePhase } from '../../src/placement/shares.ts'
import { hashToBucket } from '../../src/placement/placement.ts'
import { CoreCluster, type CoreNode } from '../replication/core-cluster.ts'

const epoch = 2
const moved = { kind: 'moved', set: 'west', position: 0 }

function clusterOfTables(): CoreCluster {
  return new CoreCluster({ mayMove: true })
}

function shareOf(cluster: CoreCluster, phase: SharePhase, isListed = false): Share {
  const { group } = cluster
  const began = isListed ? [group] : []
  return { phase, set: 'west', term: 1, buckets: [hashToBucket(group)], epoch, began }
}

/** The node enters the epoch that closes the bucket, and passes its gate; its groups take no step for that. */
function close(cluster: CoreCluster, node: CoreNode): void {
  node.shares.take([shareOf(cluster, 'closed')], epoch)
  node.enter(epoch)
}

test('MOVE-14: a group in memory as its bucket closes becomes a guest with the epoch, before it acts in that', () => {
  const cluster = clusterOfTables()
  const [first] = cluster.nodes
  if (first === undefined) throw new Error('there are three nodes')
  // The leader has proposed a transaction, and the others have not heard of it.
  const proposed = cluster.submit(0, { key: 'first' })
  cluster.inFlight = []
  close(cluster, first)
  first.wake()
  expect(first.verdicts.get(proposed)).toEqual(moved)
  expect(cluster.inFlight).toEqual([])
  // Its acceptance stays: the seal tells of that.
  expect(first.durable.get(1)?.accepted?.ballot.epoch).toBe(1)
})

test('MOVE-14: a transaction that waits as its bucket closes gets the verdict that the other set is to carry it out', () => {
  for (const index of [0, 1]) {
    const cluster = clusterOfTables()
    const node = cluster.at(index)
    const waiting = cluster.submit(index, { key: 'a' })
    cluster.inFlight = []
    close(cluster, node)
    const late = cluster.submit(index, { key: 'b' })
    expect([waiting, late].map((one) => node.verdicts.get(one))).toEqual([moved, moved])
    const votes = cluster.inFlight.filter(({ message }) => message.kind !== 'forward')
    expect(votes).toEqual([])
  }
})

test('MOVE-14: a node gives no vote for a group of a closed bucket of which it has nothing', () => {
  const cluster = clusterOfTables()
  const [first, second] = cluster.nodes
  if (first === undefined || second === undefined) throw new Error('there are three nodes')
  close(cluster, second)
  const { group } = cluster
  const ballot = { epoch, round: 1, node: first.node, incarnation: 1 }
  second.take(first.node, { kind: 'prepare', group, epoch, position: 1, ballot })
  second.take(first.node, { kind: 'query', group, epoch, read: 1, mayRegister: false })
  expect(cluster.inFlight).toEqual([])
  expect(second.durable.get(1)).toBeUndefined()
})

test('MOVE-14: a group on the list begins in its set again with the next step, and no other one does', () => {
  for (const isListed of [true, false]) {
    const cluster = clusterOfTables()
    for (const node of cluster.nodes) {
      close(cluster, node)
      node.wake()
      node.shares.take([shareOf(cluster, 'settled', isListed)], epoch)
    }
    const request = cluster.submit(0, { key: 'a' })
    cluster.settle()
    const verdict = isListed ? { kind: 'committed', position: 1 } : moved
    expect(cluster.at(0).verdicts.get(request)).toMatchObject(verdict)
  }
})

test('MOVE-14: a node that has lost the entry which closed a bucket waits until it has the entry again', () => {
  const cluster = clusterOfTables()
  const [first] = cluster.nodes
  if (first === undefined) throw new Error('there are three nodes')
  first.shares.take([], 1)
  first.enter(epoch)
  const request = cluster.submit(0, { key: 'a' })
  expect(cluster.inFlight).toEqual([])
  expect(first.verdicts.get(request)).toBeUndefined()
  first.shares.take([shareOf(cluster, 'closed')], epoch)
  first.wake()
  expect(first.verdicts.get(request)).toEqual(moved)
})

test('MOVE-14: a group with an entry stays in its set as its bucket closes', () => {
  const cluster = clusterOfTables()
  cluster.submit(0, { key: 'first' })
  cluster.settle()
  for (const node of cluster.nodes) close(cluster, node)
  const request = cluster.submit(0, { key: 'second' })
  cluster.settle()
  expect(cluster.at(0).verdicts.get(request)).toMatchObject({ kind: 'committed', position: 2 })
})
