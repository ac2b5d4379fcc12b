/** A replica that takes up a snapshot of a peer: records above its position stay, and transactions that wait get their answers. */
import { expect, test } from 'vitest'
import { AssertionError } from '../../src/base/assert.ts'
import { defaultLimits } from '../../src/base/limits.ts'
import {
  decodeState,
  emptyState,
  encodeState,
  type GroupState,
} from '../../src/replication/state.ts'
import { ValidationWindow } from '../../src/replication/window.ts'
import { CoreCluster, type CoreNode, type InFlight } from './core-cluster.ts'

/** The group's state in a snapshot of this node. */
function stateOf(node: CoreNode): GroupState {
  const state = node.stateBytes && decodeState(node.stateBytes)
  if (state === undefined) throw new Error('nothing is applied there')
  return state
}

/** As the data store does: it puts rows and state of the one in the place of those of the other, then the core goes on. */
function installFrom(from: CoreNode, into: CoreNode): void {
  const state = stateOf(from)
  into.stateBytes = from.stateBytes
  into.rows.clear()
  for (const [key, value] of from.rows) into.rows.set(key, value)
  into.step({ kind: 'install', state })
}

const toAndFrom =
  (node: CoreNode) =>
  ({ from, to }: InFlight): boolean =>
    from === node.node || to === node.node

function positionOf(cluster: CoreCluster, index: number): number | undefined {
  return cluster.at(index).replica.appliedInMemory(cluster.group)?.position
}

/** The last of three nodes hears nothing while the others write these. */
function writeWithout(cluster: CoreCluster, keys: readonly string[], session = 'others'): void {
  const isOfAway = toAndFrom(cluster.at(2))
  for (const [i, key] of keys.entries()) {
    cluster.submit(0, { key, session, sequence: i + 1 })
    cluster.deliver((one) => !isOfAway(one))
  }
}

test('SNAP-1: a replica is at the position of the snapshot, goes on from there, and its log has no entry below', () => {
  const cluster = new CoreCluster()
  cluster.submit(0, { key: 'first' })
  cluster.deliver()
  writeWithout(cluster, ['a', 'b', 'c'])
  const away = cluster.at(2)
  expect(positionOf(cluster, 2)).toBe(1)
  installFrom(cluster.at(0), away)
  expect(positionOf(cluster, 2)).toBe(4)
  expect(away.stateBytes).toEqual(cluster.at(0).stateBytes)
  expect([1, 2, 3, 4].filter((at) => away.durable.get(at)?.chosen)).toEqual([1])
  cluster.inFlight = []
  const request = cluster.submit(2, { key: 'd' })
  cluster.settle()
  expect(away.verdicts.get(request)).toMatchObject({ kind: 'committed', position: 5 })
  expect(away.rows).toEqual(cluster.at(0).rows)
  expect(cluster.at(1).stateBytes).toEqual(away.stateBytes)
})

test('SNAP-1: a snapshot of the position that is applied, or of an earlier one, is no snapshot to take up', () => {
  const cluster = new CoreCluster()
  for (const key of ['a', 'b']) {
    cluster.submit(0, { key })
    cluster.deliver()
  }
  const state = stateOf(cluster.at(0))
  expect(() => cluster.at(2).step({ kind: 'install', state })).toThrow(AssertionError)
  expect(() => cluster.at(2).step({ kind: 'install', state: emptyState() })).toThrow(/SNAP-1/)
})

test('MVCC-2, MVCC-1: neither the time nor the horizon of a group goes back by a snapshot', () => {
  const cluster = new CoreCluster()
  cluster.submit(0, { key: 'a' })
  cluster.deliver()
  const { position, timestamp, ...rest } = stateOf(cluster.at(0))
  const early = { ...rest, position: position + 1, timestamp }
  expect(() => cluster.at(2).step({ kind: 'install', state: early })).toThrow(/MVCC-2/)
  const other = new CoreCluster()
  other.submit(0, { key: 'a' })
  other.deliver()
  const behind = { ...rest, position: 2, timestamp: timestamp + 1, horizon: -1 }
  expect(() => other.at(2).step({ kind: 'install', state: behind })).toThrow(/MVCC-1/)
})

test('SNAP-1: a group that has left memory before it takes the snapshot up is read as the store has it', () => {
  const cluster = new CoreCluster()
  cluster.submit(0, { key: 'first' })
  cluster.deliver()
  writeWithout(cluster, ['a', 'b', 'c'])
  const away = cluster.at(2)
  away.crash()
  installFrom(cluster.at(0), away)
  expect(positionOf(cluster, 2)).toBe(4)
})

test('SNAP-1: promises and acceptances above the position of the snapshot stay, and those below go', () => {
  const cluster = new CoreCluster()
  writeWithout(cluster, ['a', 'b'])
  const snapshot = { bytes: cluster.at(0).stateBytes, state: stateOf(cluster.at(0)) }
  // It accepts position 3, of which nothing is decided yet; positions 1 and 2 it has never heard of.
  cluster.inFlight = []
  cluster.submit(0, { key: 'c', value: 'three' })
  cluster.deliver(({ to, message }) => to === cluster.at(2).node && message.kind === 'accept')
  const away = cluster.at(2)
  const accepted = away.durable.get(3)?.accepted
  expect(accepted).toBeDefined()
  expect(positionOf(cluster, 2)).toBe(0)
  away.stateBytes = snapshot.bytes
  away.step({ kind: 'install', state: snapshot.state })
  expect(positionOf(cluster, 2)).toBe(2)
  // The first leader is gone: the two others find the value that this one has accepted.
  cluster.inFlight = []
  const isOfLeader = toAndFrom(cluster.at(0))
  cluster.settle((one) => !isOfLeader(one))
  expect(positionOf(cluster, 2)).toBe(3)
  expect(away.durable.get(3)?.chosen?.value).toEqual(accepted?.value)
  expect(Buffer.from(away.rows.get('c') ?? []).toString()).toBe('three')
})

test('SNAP-1: decisions above the position of the snapshot are applied on it at once', () => {
  const cluster = new CoreCluster()
  writeWithout(cluster, ['a', 'b'])
  const snapshot = { bytes: cluster.at(0).stateBytes, state: stateOf(cluster.at(0)) }
  const rows = new Map(cluster.at(0).rows)
  cluster.inFlight = []
  cluster.submit(0, { key: 'c' })
  // All of position 3 comes here, and nothing of the two before.
  cluster.deliver(({ message }) => message.kind !== 'fetch' && message.kind !== 'entries')
  const away = cluster.at(2)
  expect(positionOf(cluster, 2)).toBe(0)
  expect(away.durable.get(3)?.chosen).toBeDefined()
  for (const [key, value] of rows) away.rows.set(key, value)
  away.stateBytes = snapshot.bytes
  away.step({ kind: 'install', state: snapshot.state })
  expect(positionOf(cluster, 2)).toBe(3)
  expect(away.stateBytes).toEqual(cluster.at(0).stateBytes)
  expect(away.rows).toEqual(cluster.at(0).rows)
})

test('LOG-3: a transaction that waits here and took effect in what the snapshot has is answered, once', () => {
  const cluster = new CoreCluster()
  const away = cluster.at(2)
  // It goes to the leader, which commits it; nothing of that comes back.
  const request = cluster.submit(2, { key: 'mine', session: 's', sequence: 1, attempt: 1 })
  const isFirst = ({ from, message }: InFlight): boolean =>
    from === away.node && message.kind === 'forward'
  cluster.deliver((one) => isFirst(one) || !toAndFrom(away)(one))
  writeWithout(cluster, ['a'])
  expect(stateOf(cluster.at(0)).position).toBe(2)
  expect(away.verdicts.has(request)).toBe(false)
  cluster.inFlight = []
  installFrom(cluster.at(0), away)
  const verdict = away.verdicts.get(request)
  expect(verdict).toMatchObject({ kind: 'committed', position: 1 })
  away.verdicts.clear()
  cluster.settle()
  // Nor is it proposed again, or answered again.
  expect(away.verdicts.size).toBe(0)
  expect([0, 1, 2].map((index) => positionOf(cluster, index))).toEqual([2, 2, 2])
})

test('LOG-3: a transaction that waits here and did not take effect goes on', () => {
  const cluster = new CoreCluster()
  const away = cluster.at(2)
  const request = cluster.submit(2, { key: 'mine', session: 'other', sequence: 1 })
  cluster.inFlight = []
  writeWithout(cluster, ['a', 'b'])
  cluster.inFlight = []
  installFrom(cluster.at(0), away)
  expect(away.verdicts.has(request)).toBe(false)
  cluster.settle()
  expect(away.verdicts.get(request)).toMatchObject({ kind: 'committed', position: 3 })
  expect(cluster.at(0).rows.has('mine')).toBe(true)
})

test('SNAP-1: a proposal at or below the position of the snapshot ends, and its transaction gets another position', () => {
  const cluster = new CoreCluster({ limits: { leaseMs: 0 } })
  const leader = cluster.at(0)
  // The first leader proposes position 1 and is cut off; the others go on without it, from the start.
  const request = cluster.submit(0, { key: 'mine', session: 'cut off' })
  expect(cluster.inFlight.map(({ message }) => message.kind)).toEqual(['accept', 'accept'])
  cluster.inFlight = []
  const isOfLeader = toAndFrom(leader)
  const others = cluster.submit(1, { key: 'theirs', session: 'others' })
  cluster.settle((one) => !isOfLeader(one))
  expect(cluster.at(1).verdicts.get(others)).toMatchObject({ kind: 'committed', position: 1 })
  expect(positionOf(cluster, 0)).toBe(0)
  cluster.inFlight = []
  installFrom(cluster.at(1), leader)
  expect(positionOf(cluster, 0)).toBe(1)
  expect(leader.verdicts.has(request)).toBe(false)
  cluster.settle()
  expect(leader.verdicts.get(request)).toMatchObject({ kind: 'committed', position: 2 })
  expect([0, 1, 2].map((index) => positionOf(cluster, index))).toEqual([2, 2, 2])
  const keys = [0, 1, 2].map((index) => [...cluster.at(index).rows.keys()].sort())
  expect(keys).toEqual([0, 1, 2].map(() => ['mine', 'theirs']))
})

test('TXN-1: reads of before the snapshot cannot be validated here, later ones can', () => {
  const window = new ValidationWindow(0, defaultLimits)
  const by = { session: 's', sequence: 1 }
  for (const position of [1, 2, 3]) {
    window.add({ position, timestamp: position, sets: [{ by, keys: [`key ${position}`] }] })
  }
  // Indexes what was added.
  expect(window.conflict(1, ['key 2'], [], 3)).toMatchObject({ position: 2, by })
  expect(window.through).toBe(3)
  window.restart(5)
  expect([window.from, window.through, [...window.entries()]]).toEqual([5, 5, []])
  expect(window.conflict(4, ['key 1'], [], 5)).toEqual({ position: 5 })
  expect(window.conflict(4, ['never written'], [], 5)).toEqual({ position: 5 })
  expect(window.conflict(5, ['key 2', 'key 3'], [], 5)).toBeUndefined()
  window.add({ position: 6, timestamp: 6, sets: [{ by, keys: ['key 2'] }] })
  expect(window.conflict(5, ['key 2'], [], 6)).toMatchObject({ position: 6, by })
  expect(window.conflict(5, ['key 3'], [], 6)).toBeUndefined()
  expect(() => window.restart(4)).toThrow(/TXN-1/)
})

test('TXN-1: a transaction that read before the snapshot is not committed by a replica that took it up', () => {
  const cluster = new CoreCluster()
  cluster.submit(0, { key: 'first' })
  cluster.deliver()
  writeWithout(cluster, ['a', 'b', 'c'])
  const away = cluster.at(2)
  cluster.inFlight = []
  installFrom(cluster.at(0), away)
  // The first leader is gone: this node proposes for itself. It has not seen who wrote `a`.
  const isOfLeader = toAndFrom(cluster.at(0))
  const early = cluster.submit(2, { key: 'x', readPosition: 1, reads: ['a'] })
  const late = cluster.submit(2, { key: 'y', readPosition: 4, reads: ['a'] })
  cluster.settle((one) => !isOfLeader(one))
  expect(away.verdicts.get(late)).toMatchObject({ kind: 'committed' })
  expect(away.verdicts.get(early)?.kind).not.toBe('committed')
  expect([away.rows.has('x'), away.rows.has('y')]).toEqual([false, true])
})

test('LIVE-6: a group that caught up to the position of the snapshot asks for no entries any more', () => {
  const cluster = new CoreCluster()
  writeWithout(cluster, ['a', 'b', 'c'])
  const away = cluster.at(2)
  cluster.inFlight = []
  away.step({ kind: 'exists', position: 3, informer: cluster.at(0).node })
  const fetches = cluster.inFlight.filter(({ message }) => message.kind === 'fetch')
  expect(fetches.map(({ message }) => message)).toMatchObject([{ from: 1, through: 3 }])
  cluster.inFlight = []
  installFrom(cluster.at(0), away)
  for (let i = 0; i < 20; i++) cluster.elapse(200)
  expect(cluster.inFlight.filter(toAndFrom(away))).toEqual([])
})

test('LIVE-6: a group that lacks more than the snapshot has asks for the rest', () => {
  const cluster = new CoreCluster()
  writeWithout(cluster, ['a', 'b'])
  const state = stateOf(cluster.at(0))
  writeWithout(cluster, ['c'], 'later')
  const away = cluster.at(2)
  cluster.inFlight = []
  away.step({ kind: 'exists', position: 3, informer: cluster.at(0).node })
  cluster.inFlight = []
  away.stateBytes = encodeState(state)
  away.step({ kind: 'install', state })
  expect(positionOf(cluster, 2)).toBe(2)
  cluster.settle()
  expect(positionOf(cluster, 2)).toBe(3)
  expect(away.stateBytes).toEqual(cluster.at(0).stateBytes)
  expect(away.durable.get(2)?.chosen).toBeUndefined()
})

test('a read that waits for a position is served when a snapshot brings it', () => {
  const cluster = new CoreCluster()
  writeWithout(cluster, ['a', 'b', 'c'])
  const away = cluster.at(2)
  cluster.inFlight = []
  expect(away.read(1)).toBe(false)
  // A majority tells it how far the log goes; the entries do not come.
  cluster.deliver(({ message }) => message.kind !== 'fetch' && message.kind !== 'entries')
  expect(away.served.has(1)).toBe(false)
  installFrom(cluster.at(0), away)
  expect(away.served.get(1)).toBe(3)
})
