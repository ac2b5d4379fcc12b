/** The memory that guards who may vote, over starts; and claims about a log, held against the log. */
import { expect, test } from 'vitest'
import { nodeId } from '../../src/base/ids.ts'
import { decodeMemory, encodeMemory, PeerMemory } from '../../src/log/peer-memory.ts'
import { claimIn } from '../../src/peers/refusal.ts'

const one = { node: nodeId('n2'), storeId: 'of n2', durableFlush: 12, incarnation: 3, run: 9 }

test('LOG-10: the memory calls a waiter once its write is durable, and not before', () => {
  const memory = new PeerMemory([])
  let joined = 0
  memory.learn(one)
  memory.whenKept(() => (joined += 1))
  const put = memory.take()
  expect([joined, memory.kept]).toEqual([0, []])
  memory.onWritten()
  expect([joined, memory.kept]).toEqual([1, [one]])
  expect(decodeMemory(put?.value ?? new Uint8Array())).toEqual([one])
  // A number never falls, and a store is not exchanged.
  memory.learn({ ...one, durableFlush: 5 })
  memory.learn({ ...one, storeId: 'another', durableFlush: 50 })
  expect([memory.of(one.node), memory.isUnsaved]).toEqual([one, false])
})

test('LOG-11: a record that is damaged is no memory, and nothing is kept of it before it is whole', () => {
  const bytes = Buffer.from(encodeMemory([one]))
  bytes[bytes.length - 1] = 99
  expect(decodeMemory(bytes)).toBe(undefined)
  const memory = new PeerMemory(undefined)
  memory.learn(one)
  expect([memory.isWhole, memory.take()]).toEqual([false, undefined])
  expect(() => memory.restore(1, 2)).toThrow('LOG-11')
  memory.restore(2, 2)
  expect(memory.take()).not.toBe(undefined)
})

test('LOG-12: a claim that the node’s own log refutes does not end it', () => {
  const own = {
    storeId: 'mine',
    incarnation: 4,
    openedFlush: 10,
    seat: 0,
    epoch: 1,
    isMember: true,
    isDoubted: false,
    hasVoted: true,
  }
  const claim = (flush: number): string =>
    claimIn(`stale-disk: n1 once had flush ${flush} on disk and now has 9`, own)
  expect([10, 11, 2 ** 52].map(claim)).toEqual(['refuted', 'fatal', 'refuted'])
  const store = (id: string): string =>
    claimIn(`unknown-store: n1 voted with store ${id}; an emptied folder`, own)
  expect([store('mine'), store('another')]).toEqual(['refuted', 'fatal'])
  expect(claimIn('forgetful: whatever', own)).toBe('none')
  const removed = (epoch: number, of: object): string =>
    claimIn(`removed-node: n1 has no vote since epoch ${epoch}; move`, { ...own, ...of })
  expect([removed(2, {}), removed(1, {})]).toEqual(['fatal', 'none'])
  // It has told the seal of the epoch before, or it is a newcomer.
  const sealed = { epoch: 2, isMember: false }
  expect([removed(2, sealed), removed(1, sealed)]).toEqual(['fatal', 'none'])
  expect(removed(2, { ...sealed, hasVoted: false })).toBe('none')
  // A first store whose record is lost cannot tell whether it votes in the epoch that its identity names.
  const doubted = { epoch: 2, isDoubted: true }
  expect([removed(2, doubted), removed(1, doubted)]).toEqual(['fatal', 'none'])
})
