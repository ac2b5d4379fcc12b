/** A node's part in the epochs of its replica set: the seal, the gate, and what a crash leaves of both. */
import { expect, test } from 'vitest'
import { firstEpochs, lostEpochs } from '../../src/log/own-epochs.ts'
import { firstRow } from '../../src/members/change.ts'
import { PeerMemory } from '../../src/log/peer-memory.ts'
import { staticPlacement } from '../../src/placement/placement.ts'
import {
  groupNamed,
  Member,
  n1,
  n2,
  n3,
  newcomerEpochs,
  renewedTo,
  replaced,
  storeOf,
} from './epochs-kit.ts'

const [g, h] = [groupNamed('g'), groupNamed('h')]

test('MOVE-2: a group seals for a newcomer, waits before the gate, and votes behind it', () => {
  const newcomer = new Member({ own: newcomerEpochs })
  expect([newcomer.epochs.standingOf(g), newcomer.epochs.isVoting]).toEqual(['sealed', false])
  const { epochs } = new Member()
  expect([epochs.standingOf(g), epochs.isVoting]).toEqual(['voting', true])
  epochs.enter(renewedTo(2), () => undefined)
  expect([epochs.standingOf(g), epochs.isVoting]).toEqual(['before-gate', false])
  epochs.pass([g], () => undefined)
  expect([g, h].map((one) => epochs.standingOf(one))).toEqual(['before-gate', 'voting'])
  expect(epochs.isVoting).toBe(true)
  epochs.pass([], () => undefined)
  expect(epochs.standingOf(g)).toBe('voting')
})

test('MOVE-2: from the turn of the seal on the node has no vote, and it tells of that once it is durable', () => {
  const member = new Member()
  const { epochs, memory } = member
  let told = 0
  epochs.enter(renewedTo(2), () => (told += 1))
  expect([epochs.standingOf(g), epochs.isKept, told]).toEqual(['before-gate', false, 0])
  expect([member.remembered, memory.keptEpochs.epoch]).toEqual([1, 1])
  member.keep()
  expect([epochs.isKept, told, memory.keptEpochs.epoch]).toEqual([true, 1, 2])
  expect(member.trace.marks).toEqual(['epoch_sealed'])
  expect(member.trace.events).toEqual([{ kind: 'epoch', epoch: 2, isMember: true, isSound: true }])
})

test('MOVE-3: the gate is durable before the node tells of it', () => {
  const member = new Member()
  member.epochs.enter(renewedTo(2), () => undefined)
  member.keep()
  let told = 0
  member.epochs.pass([h, g], () => (told += 1))
  expect([member.epochs.isKept, told]).toEqual([false, 0])
  member.keep()
  expect([member.epochs.isKept, told]).toEqual([true, 1])
  expect(member.epochs.own).toMatchObject({ epoch: 2, gated: 2, blocked: [h, g] })
  expect(member.trace.events.at(-1)).toEqual({ kind: 'gate', epoch: 2, blocked: 2 })
})

test('MOVE-2: a restart goes on where the last write stood', () => {
  const member = new Member()
  member.memory.renew()
  const before = member.memory.take()?.value ?? new Uint8Array()
  member.memory.onWritten()
  member.epochs.enter(renewedTo(2), () => undefined)
  const sealed = member.memory.take()?.value ?? new Uint8Array()
  member.memory.onWritten()
  member.epochs.pass([g], () => undefined)
  const passed = member.memory.take()?.value ?? new Uint8Array()
  const standings = [before, sealed, passed].map((written) => {
    const { epochs } = member.restarted(written)
    return [epochs.own.epoch, epochs.standingOf(g), epochs.standingOf(h), epochs.isKept]
  })
  expect(standings).toEqual([
    [1, 'voting', 'voting', true],
    [2, 'before-gate', 'before-gate', true],
    [2, 'before-gate', 'voting', true],
  ])
})

test('MOVE-2: a node enters no epoch that it has sealed', () => {
  const { epochs, memory } = new Member()
  epochs.enter(renewedTo(3), () => undefined)
  expect(() => epochs.enter(renewedTo(3), () => undefined)).toThrow('MOVE-2')
  expect(() => epochs.enter(renewedTo(2), () => undefined)).toThrow('MOVE-2')
  expect(() => memory.setEpochs(firstEpochs)).toThrow('MOVE-2')
})

test('MOVE-7: a store without a vote passes no gate', () => {
  const { epochs } = new Member({ own: newcomerEpochs })
  expect(() => epochs.pass([], () => undefined)).toThrow('MOVE-7')
})

test.each([
  ['the gate of the epoch before', { gated: 2, isMember: true }, 3],
  ['an earlier gate alone', { gated: 1, isMember: true }, 0],
  ['no gate', { gated: 0, isMember: true }, 0],
  ['no vote', { gated: 0, isMember: false }, 0],
])('MOVE-2: the seal of a node that had %s counts accordingly', (_, part, soundFor) => {
  const own = { ...firstEpochs, epoch: 2, soundFor: 0, ...part }
  const { epochs } = new Member({ own })
  epochs.enter(renewedTo(3), () => undefined)
  expect(epochs.own.soundFor).toBe(soundFor)
})

test('MOVE-2: the seal of a node that slept through an epoch counts for nothing', () => {
  const { epochs } = new Member()
  epochs.enter(renewedTo(3), () => undefined)
  expect(epochs.own).toMatchObject({ epoch: 3, gated: 1, soundFor: 0 })
})

test('MOVE-3: groups outside of one gate are those in which the next seal counts for nothing', () => {
  const { epochs } = new Member()
  epochs.enter(renewedTo(2), () => undefined)
  epochs.pass([g], () => undefined)
  epochs.enter(renewedTo(3), () => undefined)
  expect(epochs.own).toMatchObject({ epoch: 3, gated: 2, soundFor: 3, blocked: [], unsound: [g] })
  epochs.pass([], () => undefined)
  expect(epochs.own, 'the seal still counts').toMatchObject({ soundFor: 3, unsound: [g] })
  epochs.enter(renewedTo(4), () => undefined)
  expect(epochs.own).toMatchObject({ soundFor: 4, unsound: [] })
})

test('MOVE-6: a newcomer has a vote in the epoch that names its store, and no other store has', () => {
  const row = replaced(n2)
  const parts = [
    new Member({ node: n2, storeId: storeOf(n2, 2), isSeated: true, own: newcomerEpochs }),
    new Member({ node: n2 }),
    new Member({ node: n2, storeId: storeOf(n2, 3), isSeated: true, own: newcomerEpochs }),
    new Member({ node: n1 }),
  ].map(({ epochs }) => {
    epochs.enter(row, () => undefined)
    return [epochs.own.isMember, epochs.own.soundFor, epochs.standingOf(g)]
  })
  expect(parts).toEqual([
    [true, 0, 'before-gate'],
    [false, 2, 'sealed'],
    [false, 0, 'sealed'],
    [true, 2, 'before-gate'],
  ])
})

test('MOVE-6: with the epoch the memory takes up the store that votes in it, and keeps what it knows of others', () => {
  const { epochs, memory } = new Member()
  const third = memory.of(n3)
  epochs.enter(replaced(n2), () => undefined)
  const begun = { node: n2, storeId: storeOf(n2, 2), durableFlush: 0, incarnation: 0, run: 0 }
  expect([memory.of(n2), memory.of(n3)]).toEqual([begun, third])
  const further = { ...begun, durableFlush: 9, incarnation: 4_100, run: 5 }
  memory.learn(further)
  epochs.enter({ ...replaced(n2), epoch: 3 }, () => undefined)
  expect(memory.of(n2), 'the same store').toEqual(further)
  expect(() => memory.exchange(further)).toThrow('MOVE-6')
})

test('MOVE-6: a node keeps no memory of its own store', () => {
  const { epochs, memory } = new Member({
    node: n2,
    storeId: storeOf(n2, 2),
    isSeated: true,
    own: newcomerEpochs,
  })
  epochs.enter(replaced(n2), () => undefined)
  expect(memory.of(n2)).toBe(undefined)
})

test('a configured set is one object for an epoch, and another one for the next', () => {
  const placement = staticPlacement([n1, n2, n3])
  const { epochs } = new Member()
  const sets = [g, h, groupNamed('other')].map((group) => placement.replicasOf(group))
  const [first] = sets
  if (first === undefined) throw new Error('no set')
  const own = epochs.setOf(first)
  expect(own).toEqual({ ...first, readers: [] })
  expect(epochs.setOf(first)).toBe(own)
  epochs.enter(renewedTo(2), () => undefined)
  const second = epochs.setOf(first)
  expect(second).toEqual({ ...first, epoch: 2, readers: [] })
  epochs.pass([g], () => undefined)
  epochs.pass([], () => undefined)
  expect(epochs.setOf(first), 'behind the gate').toBe(second)
  expect(sets.map((set) => epochs.setOf(set).firstFull)).toEqual(
    sets.map(({ firstFull }) => firstFull),
  )
  epochs.enter(renewedTo(3), () => undefined)
  expect(epochs.setOf(first)).toEqual({ ...first, epoch: 3, readers: [] })
  expect(epochs.setOf(first)).toBe(epochs.setOf(first))
})

/** Node n2 after a loss of its memory in epoch 2; its store is the one of that turn. */
function lossy(turn: number): Member {
  const isSeated = turn > 1
  return new Member({
    ...{ node: n2, storeId: storeOf(n2, turn), isSeated },
    own: lostEpochs(isSeated ? 4_100 : 0, 2),
  })
}

test('MOVE-2: a node that lost its memory takes from the row of its epoch whether it votes there', () => {
  const parts = [1, 2, 3].map((turn) => {
    const { epochs } = lossy(turn)
    epochs.confirm(replaced(n2), () => undefined)
    return [epochs.own.isMember, epochs.own.isDoubted, epochs.own.gated, epochs.standingOf(g)]
  })
  expect(parts).toEqual([
    [false, false, 0, 'sealed'],
    [true, false, 0, 'before-gate'],
    [false, false, 0, 'sealed'],
  ])
})

test('MOVE-2: rows of other epochs leave the doubt, and a node without doubt confirms nothing', () => {
  const { epochs } = lossy(2)
  const before = epochs.own
  epochs.confirm({ ...replaced(n2), epoch: 3 }, () => undefined)
  epochs.confirm(firstRow, () => undefined)
  expect(epochs.own).toBe(before)
  expect(() => new Member().epochs.confirm(firstRow, () => undefined)).toThrow('MOVE-2')
  epochs.enter({ ...replaced(n2), epoch: 3 }, () => undefined)
  expect(epochs.own).toMatchObject({ isDoubted: false, isMember: true, gated: 0, soundFor: 0 })
})

test('MOVE-2: in the first epoch a node that lost its memory votes as it did, and its seal counts', () => {
  const member = new Member({ own: lostEpochs(0, 1) })
  const { epochs } = member
  expect([epochs.own.isDoubted, epochs.isVoting]).toEqual([true, false])
  let told = 0
  epochs.confirm(firstRow, () => (told += 1))
  expect([epochs.own, epochs.isVoting]).toEqual([firstEpochs, true])
  expect(told, 'no peer hears of it before it is durable').toBe(0)
  member.keep()
  expect(told).toBe(1)
})

test('MOVE-6: a node that lost its memory in an epoch knows the store that the row of that epoch names', () => {
  // One voucher had not heard of the epoch, and told the store of before.
  const memory = new PeerMemory(undefined, lostEpochs(0, 2))
  const member = new Member({ memory })
  memory.learn({ node: n2, storeId: storeOf(n2), durableFlush: 9, incarnation: 2, run: 1 })
  memory.restore(2, 2)
  member.epochs.confirm(replaced(n2), () => undefined)
  expect(memory.of(n2)?.storeId).toBe(storeOf(n2, 2))
  member.keep()
  expect(memory.kept.map(({ storeId }) => storeId)).toEqual([storeOf(n2, 2)])
})

test('MOVE-2: a seal is durable no earlier than the acceptances before it', () => {
  const member = new Member()
  member.flushes.last = 25
  member.epochs.enter(renewedTo(2), () => undefined)
  expect(member.epochs.isSealDurable).toBe(false)
  member.keep()
  expect([member.epochs.isKept, member.epochs.isSealDurable]).toEqual([true, false])
  member.flushes.durable = 25
  expect(member.epochs.isSealDurable).toBe(true)
})

test('MOVE-2: a seal waits for no other flush: acceptances before it that none has forced are written with it', () => {
  const idle = new Member()
  idle.epochs.enter(renewedTo(2), () => undefined)
  expect(idle.forced, 'all is durable').toBe(0)
  const member = new Member()
  member.flushes.last = 21
  member.epochs.enter(renewedTo(2), () => undefined)
  expect(member.forced).toBe(1)
})
