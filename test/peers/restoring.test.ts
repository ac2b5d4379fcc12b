import { expect, test } from 'vitest'
import { nodeId, type NodeId } from '../../src/base/ids.ts'
import { Restoring } from '../../src/peers/restoring.ts'
import { silentTrace } from '../../src/ports/trace.ts'

function restoringAmong(names: readonly string[], isRestored = false) {
  const others = names.map((name) => nodeId(name))
  const applied = new Map<NodeId, number>()
  const asked: NodeId[] = []
  let restored = 0
  const restoring = new Restoring({
    ...{ trace: silentTrace, others, isRestored },
    ask: (peer) => asked.push(peer),
    appliedThrough: (peer) => applied.get(peer) ?? 0,
    onRestored: () => (restored += 1),
  })
  return { restoring, applied, asked, others, times: () => restored }
}

test('LOG-19: a node of three is restored when it has applied the flushes of both others, and not before', () => {
  const { restoring, applied, asked, others, times } = restoringAmong(['n2', 'n3'])
  const [n2, n3] = [nodeId('n2'), nodeId('n3')]
  restoring.look()
  expect(asked).toEqual(others)
  restoring.onDigested(n2, 10)
  applied.set(n2, 10)
  restoring.look()
  expect([restoring.isOver, restoring.lacking]).toEqual([false, [n3]])
  restoring.onDigested(n3, 7)
  // Votes that were lost are older than these flushes.
  restoring.onDigested(n3, 900)
  applied.set(n3, 6)
  restoring.look()
  expect(restoring.isOver).toBe(false)
  applied.set(n3, 7)
  restoring.look()
  expect([restoring.isOver, restoring.lacking, times()]).toEqual([true, [], 1])
  restoring.look()
  expect(times()).toBe(1)
})

test('LOG-19: of five, three others are needed: two of them and the node itself are no majority', () => {
  const { restoring, applied, others } = restoringAmong(['n2', 'n3', 'n4', 'n5'])
  for (const [at, peer] of others.entries()) {
    restoring.look()
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
