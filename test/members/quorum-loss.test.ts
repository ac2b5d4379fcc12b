/** The epoch that an operator begins where a majority of the voters is lost for good. */
import { expect, test } from 'vitest'
import { nodeId } from '../../src/base/ids.ts'
import { firstEpochs, lostEpochs } from '../../src/log/own-epochs.ts'
import { PeerMemory } from '../../src/log/peer-memory.ts'
import { isRecovered, recoveredEpochs, recoveryEpochAfter } from '../../src/log/quorum-loss.ts'
import { beginAdd, firstRow, recordRecovery } from '../../src/members/change.ts'
import { decodeRow, encodeRow } from '../../src/members/row-codec.ts'
import { groupNamed, Member, n1, n2, n3, storeOf } from './epochs-kit.ts'
import { acceptance, AtGate, damaged, page, sealed } from './gate-kit.ts'

const [a, b] = [groupNamed('a'), groupNamed('b')]
const alone = { storeId: storeOf(n1), epoch: 2_000, voters: [n1] }
const pair = { storeId: storeOf(n1), epoch: 2_000, voters: [n1, n2] }

test('a recovered epoch is a thousand above any that changes of the voters have begun meanwhile', () => {
  expect([1, 2, 999, 1_000, 2_001].map(recoveryEpochAfter)).toEqual([
    ...[2_000, 2_000, 2_000, 3_000, 4_000],
  ])
  expect(isRecovered(2_000, 999)).toBe(true)
  expect(isRecovered(2_000, 1_999)).toBe(false)
})

test('MOVE-6: a node alone takes the epoch up at its start, once it is durable passes the gate, and keeps it', async () => {
  const node = new AtGate({ recovery: alone })
  const { epochs, nodes, trace } = node.member
  expect([epochs.own, nodes.voters, nodes.others]).toMatchObject([
    { epoch: 2_000, gated: 1, soundFor: 2_000, isMember: true },
    [n1],
    [],
  ])
  expect(trace.marks).toContain('quorum_loss_recovered')
  expect([epochs.isVoting, epochs.standingOf(a)]).toEqual([false, 'before-gate'])
  node.go()
  expect(node.asked()).toEqual([])
  await node.synced()
  expect([node.isThrough, epochs.standingOf(a)]).toEqual([true, 'voting'])
})

test('MOVE-3: of two nodes that are left each needs the seal of the other, and carries its acceptances', async () => {
  const node = new AtGate({ recovery: pair })
  expect(node.member.nodes.others).toEqual([n2])
  node.go()
  expect(node.syncing).toBe(0)
  const open = acceptance(4, 3, 7)
  node.looks.set(a, { applied: 3, open: [], damaged: [] })
  node.keeper.onPage(n2, page([sealed(a, 3, open), damaged(b)], { epoch: 2_000 }))
  node.go()
  await node.synced()
  expect(node.stepped).toContainEqual([a, { kind: 'carry', acceptances: [open] }])
  // The other node's log is damaged there, and no other node is left.
  expect(node.member.epochs.own).toMatchObject({ gated: 2_000, blocked: [b] })
})

test.each([
  ['of another store', { ...alone, storeId: storeOf(n1, 2) }, firstEpochs],
  ['that the log has already', alone, { ...firstEpochs, epoch: 2_001, gated: 2_001 }],
])('MOVE-2: a recovery %s is not taken up', (_, recovery, own) => {
  const { epochs, trace } = new Member({ recovery, own })
  expect(epochs.own).toBe(own)
  expect(trace.marks).toEqual([])
})

test('LOG-11: a node that has lost its memory of its peers too asks none: those that could tell are lost', () => {
  const memory = new PeerMemory(undefined, lostEpochs(0, 3))
  const { epochs } = new Member({ recovery: alone, memory })
  expect([memory.isWhole, epochs.own.isDoubted, epochs.lastHeard]).toEqual([true, false, 2_000])
})

test('MOVE-7: nothing is recovered at a store that is not to vote, or with a third one', () => {
  const others = { ...pair, voters: [n2, n3] }
  expect(() => new Member({ recovery: others })).toThrow(/MOVE-7/)
  expect(() => new Member({ recovery: { ...pair, voters: [n1, n2, n3] } })).toThrow(/MOVE-3/)
  expect(() => recoveredEpochs({ ...firstEpochs, epoch: 2_000 }, alone)).toThrow(/MOVE-2/)
})

test('MOVE-6: the row that says so ends the change under way, and forgets the lost nodes', () => {
  const n4 = nodeId('n4')
  const row = beginAdd(firstRow, { node: n4, url: 'http://h:4', seat: 9_000 }, 3)
  const stores = new Map([n1, n3].map((node) => [node, { store: storeOf(node), seat: 5 }]))
  const recovered = { epoch: 2_000, voters: [n1], lastSeat: 9_500 }
  const next = recordRecovery({ ...row, stores }, recovered, 8)
  expect(next).toEqual({
    ...{
      epoch: 2_000,
      voters: [n1],
      before: [n1],
      urls: new Map(),
      readers: new Map(),
      lastSeat: 9_500,
    },
    stores: new Map([[n1, { store: storeOf(n1), seat: 5 }]]),
    change: { number: 2, kind: 'recover', phase: 'done', sinceMicros: 8 },
  })
  expect(decodeRow(encodeRow(next))).toEqual(next)
  expect(() => recordRecovery(next, recovered, 9)).toThrow(/MOVE-6/)
})
