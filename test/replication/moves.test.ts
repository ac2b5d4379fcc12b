/** A group that leaves its replica set, at the core: behind the entry that says so the set proposes, votes for and shows nothing. */
import { expect, test } from 'vitest'
import { encodeMove, movedKey } from '../../src/group/moved-row.ts'
import { emptyState } from '../../src/replication/state.ts'
import { hasLeft, isBeyondBase, isProposer, lacksBase } from '../../src/replication/standing.ts'
import { CoreCluster } from './core-cluster.ts'

/** The first node moves the group to that set; the nodes of these numbers hear of it. */
function move(cluster: CoreCluster, to: string, heard: readonly number[]): number {
  const nodes = heard.map((index) => cluster.at(index).node)
  const mutations = [{ key: movedKey, value: encodeMove(to) }]
  const request = cluster.submit(0, { key: 'moved', mutations })
  cluster.deliver(({ from, to: target }) => nodes.includes(from) && nodes.includes(target))
  return request
}

const ballot = { epoch: 1, round: 9, incarnation: 1 }

test('MOVE-9: a transaction that waits behind the last entry of the set is refused with the next set, and is in no entry', () => {
  const cluster = new CoreCluster()
  const moved = move(cluster, 'west', [0, 1, 2])
  const verdict = { kind: 'moved', set: 'west', position: 1 }
  expect(cluster.at(0).verdicts.get(moved)).toMatchObject({ kind: 'committed', position: 1 })
  for (const index of [0, 1, 2]) {
    const late = cluster.submit(index, { key: 'late' })
    cluster.settle()
    expect(cluster.at(index).verdicts.get(late)).toEqual(verdict)
    expect(cluster.at(index).replica.applied(cluster.group)).toMatchObject({
      ...{ position: 1, movedTo: 'west' },
    })
  }
})

test('MOVE-9: a node that is behind the last entry learns of it, and its transaction gets no other place in the set', () => {
  const cluster = new CoreCluster()
  move(cluster, 'west', [0, 1])
  const late = cluster.submit(2, { key: 'late' })
  cluster.settle()
  expect(cluster.at(2).verdicts.get(late)).toEqual({ kind: 'moved', set: 'west', position: 1 })
})

test('MOVE-9: a node that has applied the last entry promises and accepts nothing behind it', () => {
  const cluster = new CoreCluster()
  move(cluster, 'west', [0, 1, 2])
  cluster.inFlight = []
  const [first, second] = [cluster.at(0), cluster.at(1)]
  const at = {
    group: cluster.group,
    epoch: 1,
    position: 2,
    ballot: { ...ballot, node: second.node },
  }
  first.take(second.node, { kind: 'prepare', ...at })
  first.take(second.node, { kind: 'accept', ...at, value: Buffer.from('v') })
  expect(cluster.inFlight.filter(({ message }) => message.kind !== 'fetch')).toEqual([])
  expect(first.durable.get(2)).toBeUndefined()
})

test('MOVE-9: a group that goes to its own set stays: the name in its state is that of the set', () => {
  const state = { ...emptyState(), position: 4, movedTo: 'west' }
  const guest = { set: 'west', isGuest: true, mayMove: true }
  const standing = 'voting' as const
  expect(hasLeft({ home: guest, state })).toBe(false)
  expect(isProposer({ home: guest, state, standing })).toBe(true)
  expect(hasLeft({ home: { set: 'east', isGuest: false, mayMove: true }, state })).toBe(true)
  expect(
    isProposer({ home: { set: 'east', isGuest: false, mayMove: true }, state, standing }),
  ).toBe(false)
})

test('MOVE-10: a node of the next set has no part in a group before it has what came before', () => {
  const guest = { set: 'west', isGuest: true, mayMove: true }
  const without = { home: guest, state: emptyState() }
  expect(lacksBase(without)).toBe(true)
  expect(isBeyondBase(without, 1)).toBe(true)
  expect(isProposer({ ...without, standing: 'voting' })).toBe(false)
  const taken = { home: guest, state: { ...emptyState(), position: 4, movedTo: 'west' } }
  expect(lacksBase(taken)).toBe(false)
  expect(isBeyondBase(taken, 5)).toBe(false)
  // A group that begins in the set has no base.
  expect(
    lacksBase({ home: { set: 'west', isGuest: false, mayMove: true }, state: emptyState() }),
  ).toBe(false)
})

test('MOVE-10: a node whose set has the group back gives no vote in it before it has taken that up', () => {
  const home = { set: 'east', isGuest: false, mayMove: true }
  const left = { home, state: { ...emptyState(), position: 4, movedTo: 'west' } }
  expect(isBeyondBase(left, 9)).toBe(true)
  expect(isBeyondBase(left, 4)).toBe(false)
  const back = { home, state: { ...emptyState(), position: 8, movedTo: 'east' } }
  expect(isBeyondBase(back, 9)).toBe(false)
  expect(hasLeft(back)).toBe(false)
  // It may have left, and have come back, behind all that this node knows of.
  expect(isBeyondBase(back, 10)).toBe(true)
  const fixed = { ...back, home: { ...home, mayMove: false } }
  expect(isBeyondBase(fixed, 10)).toBe(false)
})
