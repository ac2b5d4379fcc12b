/** Read positions ahead of the proposer, which are the word of a session: true, or of nothing. */
import { expect, test } from 'vitest'
import { noDeadline } from '../../src/replication/log.ts'
import { CoreCluster, type InFlight } from './core-cluster.ts'

const between =
  (cluster: CoreCluster, ...indexes: number[]) =>
  ({ from, to }: InFlight): boolean => {
    const names = indexes.map((index) => cluster.at(index).node)
    return names.includes(from) && names.includes(to)
  }

function suspect(cluster: CoreCluster, at: number, peer: number): void {
  const { node } = cluster.at(peer)
  cluster.at(at).replica.suspect(node, true)
  cluster.at(at).step({ kind: 'suspect', peer: node })
}

test.each([0, 1])('LOG-5: an unseen read position makes node %s write nothing', (index) => {
  const cluster = new CoreCluster()
  cluster.submit(0, { key: 'a' })
  cluster.settle()
  const request = cluster.submit(index, { key: 'b', readPosition: 1_000_000_000 })
  const seen = cluster.submit(index, { key: 'c', readPosition: 1, reads: ['a'] })
  cluster.settle()
  expect(cluster.at(index).verdicts.get(request)).toEqual({ kind: 'conflict', position: 2 })
  expect(cluster.at(index).verdicts.get(seen)).toMatchObject({ kind: 'committed', position: 2 })
  expect(cluster.marks).not.toContain('noop_proposed')
  for (const { replica, rows } of cluster.nodes) {
    expect([...rows.keys()]).toEqual(['a', 'c'])
    expect(replica.isAwaitingTime(cluster.group, noDeadline)).toBe(false)
  }
  expect(cluster.inFlight).toEqual([])
})

test('LOG-5: a transaction with an unseen read position conflicts while others go on writing', () => {
  const cluster = new CoreCluster()
  cluster.submit(0, { key: 'a' })
  cluster.settle()
  const request = cluster.submit(0, { key: 'b', readPosition: 1_000_000_000 })
  for (let at = 0; at < 60; at++) {
    cluster.submit(0, { key: `k${at}` })
    // A part of what is under way is there whenever a deadline passes.
    const held = cluster.hold(({ message }) => message.kind === 'accept')
    cluster.elapse(10)
    cluster.redeliver(held)
    cluster.deliver()
  }
  expect(cluster.at(0).verdicts.get(request)).toMatchObject({ kind: 'conflict' })
  expect(cluster.at(0).rows.has('b')).toBe(false)
  expect(cluster.at(0).rows.size).toBe(61)
})

test('LOG-5: a new leader with just one unseen read position closes at most one position', () => {
  const cluster = new CoreCluster()
  cluster.submit(0, { key: 'a' })
  cluster.settle()
  suspect(cluster, 1, 0)
  const request = cluster.submit(1, { key: 'b', readPosition: 1_000_000_000 })
  cluster.settle(between(cluster, 1, 2))
  expect(cluster.at(1).verdicts.get(request)).toEqual({ kind: 'conflict', position: 2 })
  expect(cluster.at(1).replica.isAwaitingTime(cluster.group, noDeadline)).toBe(false)
})

test('LOG-5: a node finishes a named read position that only a lost node has seen', () => {
  const cluster = new CoreCluster()
  cluster.submit(0, { key: 'a' })
  cluster.settle()
  // The second node takes over and commits; only it knows.
  suspect(cluster, 1, 0)
  cluster.submit(1, { key: 'b' })
  cluster.deliver((one) => between(cluster, 1, 2)(one) && one.message.kind !== 'committed')
  expect(cluster.at(1).rows.size).toBe(2)
  for (const at of [0, 2]) suspect(cluster, at, 1)
  const request = cluster.submit(0, { key: 'c', readPosition: 2, reads: ['b'] })
  cluster.settle(between(cluster, 0, 2), 8)
  expect(cluster.at(0).verdicts.get(request)).toMatchObject({ kind: 'committed', position: 3 })
  expect([...cluster.at(2).rows.keys()]).toEqual(['a', 'b', 'c'])
})
