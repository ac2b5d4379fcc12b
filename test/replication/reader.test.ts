/** A read-only member of a replica set, at the core: three voters, and a fourth node that reads. */
import { expect, test } from 'vitest'
import type { NodeId } from '../../src/base/ids.ts'
import type { ReplicaSet } from '../../src/placement/placement.ts'
import { CoreCluster, type CoreNode, type InFlight } from './core-cluster.ts'

/** The last node reads, from epoch 2 on. */
function setOf(cluster: CoreCluster, epoch = 2, reader = cluster.at(3)): ReplicaSet {
  const voters = cluster.nodes.filter((one) => one !== reader).map(({ node }) => node)
  const [firstFull] = voters
  if (firstFull === undefined) throw new Error('no voters')
  return { epoch, voters, firstFull, readers: [reader.node] }
}

function clusterWithReader(): { readonly cluster: CoreCluster; readonly reader: CoreNode } {
  const cluster = new CoreCluster({ nodes: 4 })
  change(cluster, setOf(cluster))
  return { cluster, reader: cluster.at(3) }
}

/** All seal; the voters of the set pass their gates, the others follow. */
function change(cluster: CoreCluster, set: ReplicaSet): void {
  for (const node of cluster.nodes) {
    const isVoter = set.voters.includes(node.node)
    node.step({ kind: 'seal' })
    node.step({ kind: isVoter ? 'epoch' : 'follow', set })
    if (isVoter) node.step({ kind: 'gate' })
  }
}

function kindsTo(cluster: CoreCluster, to: NodeId): readonly string[] {
  return cluster.inFlight.filter((one) => one.to === to).map(({ message }) => message.kind)
}

function isFrom({ node }: CoreNode): (one: InFlight) => boolean {
  return ({ from }) => from === node
}

test('RDR-1: a reader gives no promise, accepts nothing, and answers no read round', () => {
  const { cluster, reader } = clusterWithReader()
  const asker = cluster.at(0).node
  const at = { group: cluster.group, epoch: 2, position: 1 }
  const ballot = { epoch: 2, round: 1, node: asker, incarnation: 1 }
  reader.take(asker, { kind: 'prepare', ...at, ballot })
  reader.take(asker, { kind: 'accept', ...at, ballot, value: Buffer.from('v') })
  const { group, epoch } = at
  reader.take(asker, { kind: 'query', group, epoch, read: 5, mayRegister: true })
  expect(cluster.inFlight).toEqual([])
  expect(reader.durable.size).toBe(0)
  expect(cluster.marks).toContain('message_of_voters_at_reader')
})

test('RDR-1: a current read at a reader is of a majority of the voters, and registers nothing', () => {
  const { cluster, reader } = clusterWithReader()
  cluster.submit(0, { key: 'a' })
  cluster.deliver(({ to }) => to !== reader.node)
  reader.read(1)
  const queries = cluster.inFlight.filter(isFrom(reader))
  expect(queries.map(({ message }) => message)).toMatchObject(
    [1, 2, 3].map(() => ({ kind: 'query', epoch: 2, mayRegister: false })),
  )
  // One voter's answer beside the reader itself is no majority.
  cluster.inFlight = queries.slice(0, 1)
  cluster.deliver()
  expect(reader.served.size).toBe(0)
  cluster.inFlight = queries.slice(1)
  cluster.settle()
  expect(reader.served.get(1)).toBe(1)
  expect(reader.read(2)).toBe(false)
})

test('RDR-1: a voter gives no lease for the question of a reader', () => {
  const { cluster, reader } = clusterWithReader()
  const voter = cluster.at(1)
  const { group } = cluster
  voter.take(reader.node, { kind: 'query', group, epoch: 2, read: 5, mayRegister: true })
  const [answer] = cluster.inFlight
  expect(answer?.message).toMatchObject({ kind: 'highest', position: 0 })
  expect(answer?.message).not.toHaveProperty('term')
})

test('RDR-1: a reader hears of each chosen value, also where the next entry tells the voters', () => {
  const { cluster, reader } = clusterWithReader()
  cluster.submit(0, { key: 'a' })
  cluster.submit(0, { key: 'b' })
  const told: number[] = []
  cluster.deliver(({ to, message }) => {
    if (to === reader.node && message.kind === 'committed') told.push(message.position)
    return true
  })
  expect(told).toEqual([1, 2])
  expect(reader.replica.appliedInMemory(cluster.group)?.position).toBe(2)
})

test('RDR-2: a reader forwards to the leader, then to the voters in turn, and proposes nothing', () => {
  const { cluster, reader } = clusterWithReader()
  const request = cluster.submit(3, { key: 'a' })
  const sentTo: NodeId[] = []
  for (let tries = 0; tries < 8; tries++) {
    for (const { from, to, message } of cluster.inFlight) {
      expect([from, message.kind]).toEqual([reader.node, 'forward'])
      sentTo.push(to)
    }
    cluster.inFlight = []
    reader.wakeNext()
  }
  const [leader, ...others] = setOf(cluster).voters
  expect(sentTo.slice(0, 3)).toEqual([leader, leader, leader])
  expect(new Set(sentTo.slice(3, 6))).toEqual(new Set([leader, ...others]))
  cluster.settle()
  expect(reader.verdicts.get(request)).toMatchObject({ kind: 'committed', position: 1 })
  expect(reader.durable.get(1)?.promised).toBeUndefined()
})

test('RDR-2: a reader drops a transaction that no proposer takes any more, without a verdict', () => {
  const { cluster, reader } = clusterWithReader()
  cluster.submit(3, { key: 'a', expiresAt: 2_000_000 })
  cluster.settle(() => false, 20)
  expect(cluster.marks).toContain('forwarded')
  expect(reader.replica.waiting()).toEqual([])
  expect(reader.verdicts.size).toBe(0)
})

test('RDR-2: a voter whose leader has become a reader proposes the transaction itself: a reader drops forwarded ones', () => {
  const cluster = new CoreCluster({ nodes: 4 })
  const [leader, voter] = [cluster.at(0), cluster.at(1)]
  cluster.submit(1, { key: 'a' })
  const late = cluster.hold(({ message }) => message.kind === 'forward')
  expect(late.map(({ to }) => to)).toEqual([leader.node])
  change(cluster, setOf(cluster, 2, leader))
  cluster.redeliver(late)
  cluster.deliver()
  expect(cluster.marks).toContain('forward_at_reader')
  const request = cluster.submit(1, { key: 'b' })
  expect(kindsTo(cluster, leader.node)).toEqual([])
  cluster.settle()
  expect([...voter.verdicts.values()].map(({ kind }) => kind)).toEqual(['committed', 'committed'])
  expect(voter.verdicts.has(request)).toBe(true)
})

test('RDR-2: a reader prepares nothing for what it accepted as a voter, and serves its reads', () => {
  const cluster = new CoreCluster({ nodes: 4 })
  const [leader, reader] = [cluster.at(0), cluster.at(3)]
  cluster.submit(0, { key: 'a' })
  cluster.deliver(({ to, message }) => to === reader.node && message.kind === 'accept')
  expect(reader.durable.get(1)?.accepted?.ballot.node).toBe(leader.node)
  // The seals of the two others were enough for the gates: neither tells of the value.
  leader.crash()
  leader.durable.clear()
  change(cluster, setOf(cluster))
  reader.read(1)
  const sent: string[] = []
  cluster.settle((one) => {
    if (one.from === reader.node) sent.push(one.message.kind)
    return true
  })
  expect(reader.served.get(1)).toBe(0)
  expect(sent).not.toContain('prepare')
  expect(sent).not.toContain('accept')
  expect(cluster.marks).toContain('swept')
})

test('RDR-1: a reader becomes a voter by an epoch and its gate, and votes from there on', () => {
  const { cluster, reader } = clusterWithReader()
  cluster.submit(0, { key: 'a' })
  cluster.settle()
  const voters = cluster.nodes.map(({ node }) => node)
  const set: ReplicaSet = { ...setOf(cluster, 3), voters, readers: [] }
  for (const node of cluster.nodes) {
    if (node !== reader) node.step({ kind: 'seal' })
    node.step({ kind: 'epoch', set })
    node.step({ kind: 'gate' })
  }
  cluster.submit(0, { key: 'b' })
  cluster.deliver()
  expect(reader.durable.get(2)?.accepted?.ballot.epoch).toBe(3)
})

test('MOVE-2: a voter that has not sealed becomes no reader: that stops the node', () => {
  const cluster = new CoreCluster({ nodes: 4 })
  const follow = (): void => cluster.at(3).step({ kind: 'follow', set: setOf(cluster) })
  expect(follow).toThrow('MOVE-2')
})

test('RDR-1: a node that lost its record, and took itself for a voter of the epoch, becomes a reader in it', () => {
  const cluster = new CoreCluster({ nodes: 4 })
  const reader = cluster.at(3)
  const voters = cluster.nodes.map(({ node }) => node)
  reader.step({ kind: 'seal' })
  reader.step({ kind: 'epoch', set: { ...setOf(cluster), voters } })
  reader.read(1)
  cluster.inFlight = []
  reader.step({ kind: 'follow', set: setOf(cluster) })
  expect(cluster.inFlight.every(({ message }) => message.kind === 'query')).toBe(true)
  expect(reader.durable.size).toBe(0)
})

test('RDR-1: a voter of an epoch that is to read in it stops its node', () => {
  const cluster = new CoreCluster()
  const node = cluster.at(0)
  node.step({ kind: 'seal' })
  const set = { ...cluster.placement.replicasOf(cluster.group), epoch: 2 }
  expect(() => node.step({ kind: 'follow', set })).toThrow('RDR-1')
})
