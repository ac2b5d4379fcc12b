import { expect, test } from 'vitest'
import { nodeId, type NodeId } from '../../src/base/ids.ts'
import { computeMajority } from '../../src/placement/placement.ts'
import { Restoring } from '../../src/peers/restoring.ts'
import { silentTrace } from '../../src/ports/trace.ts'

function restoringAmong(names: readonly string[], isRestored = false) {
  const others = names.map((name) => nodeId(name))
  const applied = new Map<NodeId, number>()
  const asked: NodeId[] = []
  const drains: (() => void)[] = []
  /** The writes that say so in the data store. */
  const keeps: { readonly resolve: () => void; readonly reject: (reason: Error) => void }[] = []
  /** Peers whose directories are not here. */
  const nameless = new Set<NodeId>()
  let restored = 0
  /** The marks as the data store allows them, which are looked at when the node goes on. */
  const allowed = new Map<NodeId, number>()
  const restoring = new Restoring({
    ...{ trace: silentTrace, isRestored },
    nodes: { otherVoters: others, majority: computeMajority({ length: others.length + 1 }) },
    advanceMarks: () => allowed.forEach((through, peer) => applied.set(peer, through)),
    drain: () => new Promise((resolve) => drains.push(resolve)),
    ask: (peer) => asked.push(peer),
    appliedThrough: (peer) => applied.get(peer) ?? 0,
    hasNamedAll: (peer) => !nameless.has(peer),
    keep: () => new Promise((resolve, reject) => keeps.push({ resolve, reject })),
    onRestored: () => (restored += 1),
    onFailed: (error) => {
      throw error
    },
  })
  /** The data store has written all that it was given. */
  const write = async (): Promise<void> => {
    for (const { resolve } of keeps) resolve()
    await turn()
  }
  const told = { applied, allowed, drains, keeps, asked, others, nameless }
  return { restoring, ...told, write, times: () => restored }
}

async function turn(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve))
}

test('LOG-19: a node of three is restored when it has applied the flushes of both others, and not before', async () => {
  const { restoring, applied, asked, others, write, times } = restoringAmong(['n2', 'n3'])
  const [n2, n3] = [nodeId('n2'), nodeId('n3')]
  restoring.look()
  expect(asked).toEqual(others)
  restoring.onDigested(n2, 10)
  applied.set(n2, 10)
  restoring.look()
  await write()
  expect([restoring.isOver, restoring.lacking]).toEqual([false, [n3]])
  restoring.onDigested(n3, 7)
  // Votes that were lost are older than these flushes.
  restoring.onDigested(n3, 900)
  applied.set(n3, 6)
  restoring.look()
  await write()
  expect(restoring.isOver).toBe(false)
  applied.set(n3, 7)
  restoring.look()
  await write()
  expect([restoring.isOver, restoring.lacking, times()]).toEqual([true, [], 1])
  restoring.look()
  await write()
  expect(times()).toBe(1)
})

test('LOG-19: a node is not restored before its data store durably says so, and is so once', async () => {
  const { restoring, applied, keeps, drains, write, times } = restoringAmong(['n2', 'n3'])
  for (const peer of [nodeId('n2'), nodeId('n3')]) {
    restoring.onDigested(peer, 3)
    applied.set(peer, 3)
  }
  restoring.look()
  restoring.goOn()
  await turn()
  expect([restoring.isOver, times(), keeps.length, drains.length]).toEqual([false, 0, 1, 0])
  await write()
  restoring.goOn()
  expect([restoring.isOver, times(), keeps.length, drains.length]).toEqual([true, 1, 1, 0])
})

test('LOG-19: a node whose data store stops before it says so is not restored', async () => {
  const { restoring, applied, keeps, times } = restoringAmong(['n2', 'n3'])
  for (const peer of [nodeId('n2'), nodeId('n3')]) {
    restoring.onDigested(peer, 3)
    applied.set(peer, 3)
  }
  restoring.look()
  keeps[0]?.reject(new Error('this node is stopping'))
  await turn()
  expect([restoring.isOver, times()]).toEqual([false, 0])
})

test('LOG-19: a peer that may have groups by snapshots alone counts once its directory is here', async () => {
  const { restoring, applied, nameless, write } = restoringAmong(['n2', 'n3'])
  const peers = [nodeId('n2'), nodeId('n3')]
  for (const peer of peers) {
    restoring.onDigested(peer, 3)
    applied.set(peer, 3)
    nameless.add(peer)
  }
  restoring.look()
  await write()
  expect([restoring.isOver, restoring.lacking]).toEqual([false, peers])
  nameless.clear()
  restoring.look()
  await write()
  expect(restoring.isOver).toBe(true)
})

test('LOG-19: of five, three others are needed: two of them and the node itself are no majority', async () => {
  const { restoring, applied, others, write } = restoringAmong(['n2', 'n3', 'n4', 'n5'])
  for (const [at, peer] of others.entries()) {
    restoring.look()
    await write()
    expect(restoring.isOver).toBe(at === 3)
    restoring.onDigested(peer, 5)
    applied.set(peer, 5)
  }
})

test('ERASE-1: a node that has started knows all deletions of before when both others have told theirs', () => {
  const { restoring, applied } = restoringAmong(['n2', 'n3'], true)
  const [n2, n3] = [nodeId('n2'), nodeId('n3')]
  restoring.onDigested(n2, 10)
  restoring.onDigested(n3, 0)
  expect(restoring.hasTakenUp).toBe(false)
  applied.set(n2, 10)
  expect(restoring.hasTakenUp).toBe(true)
  expect(restoringAmong([], true).restoring.hasTakenUp, 'a node alone').toBe(true)
})

test('a node whose data store is whole asks no peer', () => {
  const { restoring, asked, times } = restoringAmong(['n2', 'n3'], true)
  restoring.look()
  expect([restoring.isOver, asked, times()]).toEqual([true, [], 0])
})

test('LOG-19: a node that is not restored has one drain of its data store under way, and goes by each batch', async () => {
  const { restoring, allowed, drains, asked, write, times } = restoringAmong(['n2', 'n3'])
  const [n2, n3] = [nodeId('n2'), nodeId('n3')]
  restoring.look()
  for (const peer of [n2, n3]) restoring.onDigested(peer, 4)
  for (let beat = 0; beat < 3; beat++) restoring.goOn()
  expect([drains.length, asked.length]).toEqual([1, 2])
  drains[0]?.()
  await turn()
  for (let beat = 0; beat < 3; beat++) restoring.goOn()
  expect(drains).toHaveLength(2)
  allowed.set(n2, 4).set(n3, 3)
  restoring.goOn()
  expect(restoring.isOver).toBe(false)
  allowed.set(n3, 4)
  restoring.goOn()
  await write()
  restoring.goOn()
  expect([restoring.isOver, times(), drains.length, asked.length]).toEqual([true, 1, 2, 2])
})

test('a node whose data store is whole drains nothing', () => {
  const { restoring, drains } = restoringAmong(['n2', 'n3'], true)
  restoring.goOn()
  expect(drains).toEqual([])
})
