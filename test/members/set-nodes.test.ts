/** The nodes that a node has links with, and those that majorities are of, as the row of its set changes. */
import { expect, test } from 'vitest'
import { nodeId } from '../../src/base/ids.ts'
import {
  beginAdd,
  beginEpoch,
  beginRemove,
  bindStore,
  endChange,
  firstRow,
  type SetRow,
} from '../../src/members/change.ts'
import { lostEpochs } from '../../src/log/own-epochs.ts'
import { staticPlacement } from '../../src/placement/placement.ts'
import { groupNamed, Member, n1, n2, n3, newcomerEpochs, storeOf } from './epochs-kit.ts'

const n4 = nodeId('n4')
const first = [n1, n2, n3]

/** Behind the gate of the row's epoch, where there is one. */
function passed(member: Member, row: SetRow): Member {
  if (row.epoch > member.epochs.own.epoch) {
    member.epochs.enter(row, () => undefined)
    member.epochs.pass([], () => undefined)
  }
  member.epochs.look(row)
  return member
}

const removing = beginRemove(firstRow, { node: n3, voters: first, lastSeat: 0 }, 1)
const removed = endChange(removing, 2)
const adding = beginAdd(removed, { node: n4, url: 'http://h:4', seat: 9_000 }, 3)
const added = beginEpoch(bindStore(adding, storeOf(n2, 4)), [n1, n2], 4)

test('a node that leaves has links until its removal is done, and has none again with a later change', () => {
  const member = new Member()
  const { nodes, epochs } = member
  epochs.look(removing)
  expect([nodes.voters, nodes.others, nodes.majority]).toEqual([first, [n2, n3], 2])
  passed(member, removing)
  expect([nodes.voters, nodes.others, epochs.before]).toEqual([[n1, n2], [n2, n3], first])
  passed(member, removed)
  expect(nodes.others).toEqual([n2])
  passed(member, adding)
  expect([nodes.voters, nodes.others, nodes.all]).toEqual([
    [n1, n2],
    [n2, n4],
    [n1, n2, n4],
  ])
})

test('a node that is added has links at once, and counts in majorities from its epoch on', () => {
  const member = passed(passed(new Member(), removed), adding)
  const { nodes, epochs } = member
  expect([nodes.has(n4), nodes.isVoter(n4), nodes.majority]).toEqual([true, false, 2])
  passed(member, added)
  expect([nodes.voters, nodes.otherVoters, epochs.before]).toEqual([
    [n1, n2, n4],
    [n2, n4],
    [n1, n2],
  ])
  expect(nodes.isVoter(n3)).toBe(false)
})

test('the lists are the same arrays for good, and a group has the voters of now', () => {
  const member = new Member()
  const { others, voters } = member.nodes
  const placement = staticPlacement(first)
  const [g, h] = [groupNamed('g'), groupNamed('h')].map((one) => placement.replicasOf(one))
  passed(member, removed)
  expect([others, voters]).toEqual([[n2], [n1, n2]])
  for (const set of [g, h]) {
    const now = set && member.epochs.setOf(set)
    expect([now?.epoch, now?.voters.toSorted()]).toEqual([2, [n1, n2]])
    expect(now?.firstFull).toBe(now?.voters[0])
  }
})

test('a newcomer goes by the voters of the row that it finds', () => {
  const { epochs, nodes } = new Member({ own: newcomerEpochs, node: n2, isSeated: true })
  expect(nodes.voters).toEqual(first)
  epochs.look(removed)
  expect([nodes.voters, nodes.others]).toEqual([[n1, n2], [n1]])
})

test('a newcomer goes by the voters that a peer tells, until it has a row of that epoch', () => {
  const { epochs, nodes } = new Member({ own: newcomerEpochs, node: n2, isSeated: true })
  expect(epochs.hear({ epoch: 3, nodes: [n1, n4] })).toBe(true)
  epochs.look(firstRow)
  expect([nodes.voters, nodes.others, epochs.lastHeard]).toEqual([[n1, n4], [n1, n4], 3])
  expect(epochs.hear({ epoch: 2, nodes: [n1, n3] })).toBe(false)
  epochs.look(removed)
  expect(nodes.voters).toEqual([n1, n4])
  epochs.look({ ...added, epoch: 4 })
  expect(nodes.voters).toEqual([n1, n2, n4])
})

test('a voter goes by its own record, and one that has lost it by the voters that a peer tells', () => {
  const told = { epoch: 5, nodes: [n1, n4] }
  expect(new Member().epochs.hear(told)).toBe(false)
  const { epochs, nodes } = new Member({ own: lostEpochs(0, 5) })
  expect(epochs.hear({ epoch: 4, nodes: [n1, n3] })).toBe(false)
  expect(epochs.hear(told)).toBe(true)
  epochs.look(firstRow)
  expect(nodes.voters).toEqual([n1, n4])
})

test('the voters of the epoch, and of the one before, are those of the record after a start', () => {
  const member = passed(passed(new Member(), removed), added)
  const record = member.memory.take()
  const again = member.restarted(record?.value ?? new Uint8Array())
  expect([again.nodes.voters, again.nodes.others]).toEqual([
    [n1, n2, n4],
    [n2, n4],
  ])
  expect(again.epochs.before).toEqual([n1, n2])
})
