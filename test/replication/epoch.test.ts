/** The end of an epoch and the beginning of the next one, at the core. */
import { expect, test } from 'vitest'
import { AssertionError } from '../../src/base/assert.ts'
import { defaultLimits } from '../../src/base/limits.ts'
import { Leases } from '../../src/lease/leases.ts'
import type { Ballot } from '../../src/paxos/ballot.ts'
import type { ReplicaSet } from '../../src/placement/placement.ts'
import { silentTrace } from '../../src/ports/trace.ts'
import type { Context, Effect } from '../../src/replication/effect.ts'
import { onCarry, openRecords } from '../../src/replication/epoch.ts'
import type { OpenAcceptance } from '../../src/replication/message.ts'
import { restoreLog, type GroupLog, type PositionRecord } from '../../src/replication/log.ts'
import { emptyState } from '../../src/replication/state.ts'
import { CoreCluster, type CoreNode } from './core-cluster.ts'

const value = Buffer.from('value')

function nextSet(cluster: CoreCluster): ReplicaSet {
  return { ...cluster.placement.replicasOf(cluster.group), epoch: 2 }
}

/** The seal is durable, and the next epoch known. */
function seal(cluster: CoreCluster, node: CoreNode): void {
  node.step({ kind: 'seal' })
  node.step({ kind: 'epoch', set: nextSet(cluster) })
}

function open(cluster: CoreCluster, acceptances: readonly OpenAcceptance[] = []): void {
  for (const node of cluster.nodes) seal(cluster, node)
  for (const node of cluster.nodes) {
    node.step({ kind: 'carry', acceptances })
    node.step({ kind: 'gate' })
  }
}

/** The ballots of what is in flight, with the nodes that it goes to. */
function ballotsOf(cluster: CoreCluster, kind: 'accept' | 'prepare'): readonly Ballot[] {
  return cluster.inFlight.flatMap(({ message }) => (message.kind === kind ? [message.ballot] : []))
}

test('MOVE-1: an accept of another epoch gets no vote, and teaches the value chosen before it', () => {
  const cluster = new CoreCluster()
  const [leader, other] = [cluster.at(0), cluster.at(1)]
  cluster.submit(0, { key: 'a' })
  cluster.deliver(({ message }) => message.kind !== 'committed')
  cluster.inFlight = []
  cluster.submit(0, { key: 'b' })
  const accept = cluster.inFlight.find(({ to }) => to === other.node)
  if (accept === undefined || accept.message.kind !== 'accept') throw new Error('no accept')
  expect(accept.message.previous).toBeDefined()
  seal(cluster, other)
  cluster.inFlight = []
  other.take(leader.node, accept.message)
  expect(cluster.inFlight).toEqual([])
  expect(other.durable.get(2)).toBeUndefined()
  expect(other.replica.appliedInMemory(cluster.group)?.position).toBe(1)
  expect(cluster.marks).toContain('message_of_other_epoch')
})

test('MOVE-1: a ballot of another epoch than its message gets no vote, and ends no proposal', () => {
  const cluster = new CoreCluster()
  const [leader, other] = [cluster.at(0), cluster.at(1)]
  const at = { group: cluster.group, epoch: 1, position: 1 }
  const foreign = { epoch: 7, round: 1, node: leader.node, incarnation: 1 }
  other.take(leader.node, { kind: 'prepare', ...at, ballot: foreign })
  other.take(leader.node, { kind: 'accept', ...at, ballot: foreign, value: Buffer.from('v') })
  expect(cluster.inFlight).toEqual([])
  expect(other.durable.size).toBe(0)
  cluster.submit(0, { key: 'a' })
  const [ballot] = ballotsOf(cluster, 'accept')
  if (ballot === undefined) throw new Error('no accept')
  for (const from of [other.node, cluster.at(2).node]) {
    leader.take(from, { kind: 'refused', ...at, ballot, promised: foreign })
  }
  cluster.deliver()
  expect([...leader.verdicts.values()].map(({ kind }) => kind)).toEqual(['committed'])
})

test('MOVE-2: a node that has sealed gives no vote, answers no round, and begins nothing', () => {
  const cluster = new CoreCluster()
  const [leader, sealed] = [cluster.at(0), cluster.at(1)]
  sealed.step({ kind: 'seal' })
  cluster.submit(0, { key: 'a' })
  leader.read(1)
  const asked = cluster.inFlight.filter(({ to }) => to === sealed.node)
  expect(asked.map(({ message }) => message.kind)).toEqual(['accept', 'query'])
  cluster.inFlight = []
  for (const { from, message } of asked) sealed.take(from, message)
  expect(cluster.inFlight).toEqual([])
  cluster.submit(1, { key: 'b' })
  sealed.read(2)
  expect(cluster.inFlight).toEqual([])
  expect(sealed.durable.size).toBe(0)
})

test('MOVE-1, MOVE-3: a transaction and a read that wait as an epoch ends go on in the next one', () => {
  const cluster = new CoreCluster()
  const leader = cluster.at(0)
  cluster.submit(0, { key: 'a' })
  cluster.deliver()
  cluster.submit(0, { key: 'b' })
  leader.read(7)
  cluster.inFlight = []
  for (const node of cluster.nodes) seal(cluster, node)
  // It waits for a majority that votes: its own vote does not count yet.
  expect(ballotsOf(cluster, 'prepare').every(({ epoch }) => epoch === 2)).toBe(true)
  expect(ballotsOf(cluster, 'accept')).toEqual([])
  for (const node of cluster.nodes) node.step({ kind: 'gate' })
  cluster.deliver()
  for (let looks = 0; looks < 20 && leader.verdicts.size < 2; looks++) {
    leader.wakeNext()
    cluster.deliver()
  }
  expect([...leader.verdicts.values()].map(({ kind }) => kind)).toEqual(['committed', 'committed'])
  expect(leader.served.has(7)).toBe(true)
  expect(leader.durable.get(2)?.chosen?.ballot.epoch).toBe(2)
})

test('MOVE-3: a read that began before the gate counts this node behind it, where another voter is down', () => {
  const cluster = new CoreCluster()
  const [reader, other, dead] = [cluster.at(0), cluster.at(1), cluster.at(2)]
  cluster.submit(0, { key: 'a' })
  cluster.deliver()
  for (const node of [reader, other]) seal(cluster, node)
  other.step({ kind: 'gate' })
  const isWell = ({ from, to }: { readonly from: string; readonly to: string }): boolean =>
    from !== dead.node && to !== dead.node
  reader.read(7)
  cluster.deliver(isWell)
  expect(reader.served.has(7)).toBe(false)
  reader.step({ kind: 'gate' })
  cluster.deliver(isWell)
  expect(reader.served.get(7)).toBe(1)
})

test('PAX-6: the leader of an epoch before uses ballot zero in the next one where it has no record', () => {
  const cluster = new CoreCluster()
  cluster.submit(0, { key: 'a' })
  cluster.deliver()
  open(cluster)
  cluster.submit(0, { key: 'b' })
  const [ballot] = ballotsOf(cluster, 'accept')
  expect(ballot).toEqual({ epoch: 2, round: 0, node: cluster.at(0).node, incarnation: 1 })
  cluster.deliver()
  expect(cluster.at(2).replica.appliedInMemory(cluster.group)?.position).toBe(2)
})

test('MOVE-5: a carried acceptance is kept under any promise, told to a prepare, and counts for no majority', () => {
  const cluster = new CoreCluster()
  const [taker, asker] = [cluster.at(1), cluster.at(2)]
  const at = { group: cluster.group, position: 1 }
  const promised = { epoch: 1, round: 9, node: asker.node, incarnation: 1 }
  taker.take(asker.node, { kind: 'prepare', ...at, epoch: 1, ballot: promised })
  seal(cluster, taker)
  cluster.inFlight = []
  const ballot = { epoch: 1, round: 0, node: cluster.at(0).node, incarnation: 1 }
  const value = Buffer.from('carried')
  taker.step({ kind: 'carry', acceptances: [{ position: 1, ballot, value }] })
  expect(taker.durable.get(1)).toMatchObject({ promised, accepted: { ballot, value } })
  expect(cluster.inFlight).toEqual([])
  taker.step({ kind: 'gate' })
  const higher = { epoch: 2, round: 1, node: asker.node, incarnation: 1 }
  taker.take(asker.node, { kind: 'prepare', ...at, epoch: 2, ballot: higher })
  expect(cluster.inFlight.map(({ message }) => message)).toMatchObject([
    { kind: 'promised', epoch: 2, ballot: higher, accepted: { ballot, value } },
  ])
})

test('MOVE-5: a carried acceptance leaves a higher one, and an applied position, as they are', () => {
  const cluster = new CoreCluster()
  const [leader, taker] = [cluster.at(0), cluster.at(1)]
  cluster.submit(0, { key: 'a' })
  cluster.deliver()
  const at = { group: cluster.group, epoch: 1, position: 2 }
  const own = { epoch: 1, round: 3, node: cluster.at(2).node, incarnation: 1 }
  const value = taker.durable.get(1)?.accepted?.value ?? Buffer.from('?')
  taker.take(cluster.at(2).node, { kind: 'accept', ...at, ballot: own, value })
  seal(cluster, taker)
  const lower = { epoch: 1, round: 0, node: leader.node, incarnation: 1 }
  const other = Buffer.from('other')
  const acceptances = [1, 2].map((position) => ({ position, ballot: lower, value: other }))
  taker.step({ kind: 'carry', acceptances })
  expect(taker.durable.get(2)?.accepted).toEqual({ ballot: own, value })
  expect(taker.durable.get(1)?.accepted?.value).toEqual(value)
})

/** Of a node that has this acceptor's record at position 1, and a damaged one at position 2. */
function damagedLog(): GroupLog {
  const { group, placement, limits } = new CoreCluster()
  const set = placement.replicasOf(group)
  const accepted = { ballot: { epoch: 1, round: 0, node: set.firstFull, incarnation: 1 }, value }
  const records = new Map<number, PositionRecord>([
    [1, { kind: 'present', acceptor: { accepted } }],
    [2, { kind: 'faulty' }],
  ])
  return restoreLog(group, set, emptyState(), records, limits)
}

test('MOVE-3: a seal beside a damaged record tells nothing of its group', () => {
  const log = damagedLog()
  expect(openRecords(log.records).damaged).toEqual([2])
  log.records.delete(2)
  expect(openRecords(log.records)).toMatchObject({ open: [{ position: 1, value }], damaged: [] })
})

test('MOVE-3: a node asks a voter that leaves for what that one alone has, again and again', () => {
  const cluster = new CoreCluster()
  const [leaver, stays] = [cluster.at(0), cluster.at(1)]
  cluster.submit(0, { key: 'a' })
  cluster.deliver(({ to }) => to !== stays.node)
  cluster.inFlight = []
  stays.step({ kind: 'seal' })
  const { voters } = cluster.placement.replicasOf(cluster.group)
  expect(voters).toContain(stays.node)
  stays.step({ kind: 'epoch', set: { epoch: 2, voters: [stays.node], firstFull: stays.node } })
  stays.step({ kind: 'exists', position: 1, informer: leaver.node })
  let asked = 0
  for (let tries = 0; tries < 20 && asked < 3; tries++) {
    const fetches = cluster.inFlight.filter(({ message }) => message.kind === 'fetch')
    asked += fetches.filter(({ to }) => to === leaver.node).length
    // All of them are lost.
    cluster.inFlight = []
    stays.wakeNext()
  }
  expect(asked).toBe(3)
})

test('RDR-1: a voter without others asks the read-only members for what they alone have', () => {
  const cluster = new CoreCluster()
  const [leaver, alone, third] = [cluster.at(0), cluster.at(1), cluster.at(2)]
  cluster.submit(0, { key: 'a' })
  cluster.deliver(({ to }) => to !== alone.node)
  cluster.inFlight = []
  const readers = [leaver.node, third.node]
  const set = { epoch: 2, voters: [alone.node], firstFull: alone.node, readers }
  for (const reader of [leaver, third]) {
    reader.step({ kind: 'seal' })
    reader.step({ kind: 'follow', set })
  }
  alone.step({ kind: 'seal' })
  alone.step({ kind: 'epoch', set })
  // It knows of the position, and of no node that has it.
  alone.step({ kind: 'exists', position: 1, informer: alone.node })
  for (
    let tries = 0;
    tries < 20 && (alone.replica.appliedInMemory(cluster.group)?.position ?? 0) === 0;
    tries++
  ) {
    cluster.deliver(({ message }) => ['fetch', 'entries'].includes(message.kind))
    alone.wakeNext()
  }
  expect(alone.replica.appliedInMemory(cluster.group)?.position ?? 0).toBe(1)
})

test('MOVE-5: acceptances that come behind the gate are passed over', () => {
  const cluster = new CoreCluster()
  const node = cluster.at(0)
  for (const kind of ['seal', 'epoch', 'gate'] as const) {
    node.step(kind === 'epoch' ? { kind, set: nextSet(cluster) } : { kind })
  }
  const ballot = { epoch: 1, round: 3, node: node.node, incarnation: 1 }
  node.step({ kind: 'carry', acceptances: [{ position: 1, ballot, value }] })
  expect(node.durable.size).toBe(0)
  expect(cluster.marks).toContain('acceptances_carried_late')
})

test('MOVE-5: a carried acceptance leaves a damaged record as it is', () => {
  const log = damagedLog()
  const ballot = { epoch: 1, round: 3, node: log.set.firstFull, incarnation: 1 }
  log.set = { ...log.set, epoch: 2 }
  log.standing = 'before-gate'
  const emitted: Effect[] = []
  const acceptances = [1, 2].map((position) => ({ position, ballot, value: Buffer.from('more') }))
  onCarry(log, contextOf(log, emitted), acceptances)
  expect(log.records.get(2)).toEqual({ kind: 'faulty' })
  expect(emitted).toMatchObject([
    { kind: 'persist', records: [{ kind: 'copied', position: 1, ballot }] },
  ])
})

function contextOf({ set }: GroupLog, emitted: Effect[]): Context {
  const [node, incarnation, limits] = [set.firstFull, 1, defaultLimits]
  return {
    ...{ node, incarnation, limits, trace: silentTrace, wall: 1, now: 1, stamp: 1 },
    ...{ mayPropose: true, isAdmitted: true, isRestored: true },
    leases: new Leases({ node, nodes: set.voters, incarnation, limits, startedMs: 0 }),
    isSuspected: () => false,
    fetchPatienceMs: () => 0,
    drawNumber: () => 1,
    emit: (effect) => emitted.push(effect),
  }
}

test.each([
  ['MOVE-1: an epoch goes back', ['seal', 'epoch', 'epoch']],
  ['MOVE-2: a voter that has not sealed begins the next epoch', ['epoch']],
  ['MOVE-3: a node seals an epoch whose gate it has not passed', ['seal', 'epoch', 'seal']],
  ['MOVE-3: a gate is passed twice', ['seal', 'epoch', 'gate', 'gate']],
] as const)('%s: that stops the node', (rule, events) => {
  const cluster = new CoreCluster()
  const node = cluster.at(0)
  const take = (kind: (typeof events)[number]): void => {
    if (kind === 'epoch') node.step({ kind, set: nextSet(cluster) })
    else node.step({ kind })
  }
  for (const kind of events.slice(0, -1)) take(kind)
  const last = events.at(-1)
  if (last === undefined) throw new Error('no event')
  expect(() => take(last)).toThrow(AssertionError)
  expect(() => take(last)).toThrow(rule.slice(0, 6))
})
