/** Read-only members in the row of the voters, and in the part of a node that is one. */
import { expect, test } from 'vitest'
import { nodeId } from '../../src/base/ids.ts'
import { firstEpochs, lostEpochs } from '../../src/log/own-epochs.ts'
import {
  beginAdd,
  beginEpoch,
  beginRemove,
  beginReplace,
  bindStore,
  endChange,
  firstRow,
  giveUp,
  isOver,
  isVoter,
  recordRecovery,
  type SetRow,
} from '../../src/members/change.ts'
import { findWithoutVote } from '../../src/members/newcomer.ts'
import {
  beginDemote,
  beginPromote,
  endCopy,
  isForReader,
  removeReader,
} from '../../src/members/reader-change.ts'
import { decodeRow, encodeRow } from '../../src/members/row-codec.ts'
import { staticPlacement } from '../../src/placement/placement.ts'
import { groupNamed, Member, n1, n2, n3, newcomerEpochs, storeOf } from './epochs-kit.ts'

const r = nodeId('r9')
const [store, later] = [storeOf(r), storeOf(r, 2)]
const seat = 4_100
const url = 'http://10.0.0.9:4700'
const first = [n1, n2, n3]
const g = groupNamed('g')

const asked = beginAdd(firstRow, { kind: 'add-reader', node: r, url, seat }, 10)
const joined = endCopy(bindStore(asked, store), 20)

/** All rows that a set goes through as `r` joins, gets a vote, loses it and leaves. */
const promoting = beginPromote(joined, r, 30)
const promoted = endChange(beginEpoch(promoting, first, 40), 50)
const demoting = beginDemote(promoted, { node: r, voters: [...first, r], store }, 60)
const demoted = endChange(demoting, 70)
const left = removeReader(demoted, { node: r, lastSeat: seat + 3 }, 80)

/** Whether the row lets the store of `r` vote, and whether it ends it. */
function standingIn(row: SetRow, storeId = store, at = seat): readonly [boolean, boolean] {
  return [isVoter(row, r, storeId, at), isOver(row, r, storeId, at)]
}

test('RDR-3: a read-only member begins no epoch as it joins or leaves', () => {
  expect(asked.change).toMatchObject({ kind: 'add-reader', phase: 'copying', node: r, seat })
  expect(isForReader(asked)).toBe(true)
  expect(joined).toMatchObject({ epoch: 1, change: { phase: 'done' } })
  expect(joined.voters).toBe(undefined)
  expect([...joined.readers]).toEqual([[r, { store, seat }]])
  const gone = removeReader(joined, { node: r, lastSeat: 0 }, 90)
  expect(gone).toMatchObject({
    epoch: 1,
    lastSeat: seat,
    change: { kind: 'remove', phase: 'done' },
  })
  expect([gone.readers.size, gone.urls.size]).toEqual([0, 0])
})

test('RDR-3: it votes in the epochs between its promotion and its demotion, and in no other', () => {
  const rows = { asked, joined, promoting, promoted, demoting, demoted, left }
  const standings = Object.entries(rows).map(([name, row]) => [name, ...standingIn(row)])
  expect(standings).toEqual([
    ['asked', false, false],
    ['joined', false, false],
    ['promoting', false, false],
    ['promoted', true, false],
    ['demoting', false, false],
    ['demoted', false, false],
    ['left', false, true],
  ])
  expect(promoted).toMatchObject({ epoch: 2, voters: [...first, r] })
  expect(promoted.readers.size).toBe(0)
  expect(demoted).toMatchObject({ epoch: 3, voters: first, before: [...first, r] })
  expect([...demoted.readers]).toEqual([[r, { store, seat }]])
  expect(left.lastSeat).toBe(seat + 3)
})

test('RDR-3: of a set with its first voters, too, a seat that was given up or left has no part any more', () => {
  const givenUp = giveUp(asked, 15)
  expect(standingIn(givenUp)).toEqual([false, true])
  expect(givenUp.urls.size).toBe(0)
  const gone = removeReader(joined, { node: r, lastSeat: 0 }, 90)
  expect(standingIn(gone)).toEqual([false, true])
  expect(firstRow.voters).toBe(undefined)
  expect([n1, n2].map((node) => isOver(gone, node, storeOf(node), 0))).toEqual([false, false])
})

test('RDR-3: a promotion that is given up leaves the member as it was', () => {
  const givenUp = giveUp(promoting, 35)
  expect(standingIn(givenUp)).toEqual([false, false])
  expect([...givenUp.readers, ...givenUp.urls]).toEqual([...joined.readers, ...joined.urls])
})

test('a disk of a read-only member is replaced without an epoch, and its old store is over', () => {
  const replacing = beginReplace(joined, r, seat + 4_096, 30)
  expect(isForReader(replacing)).toBe(true)
  expect(standingIn(replacing)).toEqual([false, false])
  const replaced = endCopy(bindStore(replacing, later), 40)
  expect(replaced).toMatchObject({ epoch: 1, change: { kind: 'replace', phase: 'done' } })
  expect(standingIn(replaced)).toEqual([false, true])
  expect(standingIn(replaced, later, seat + 4_096)).toEqual([false, false])
  expect(isForReader(beginReplace(joined, n2, seat + 4_096, 30))).toBe(false)
})

test('a first store that was demoted is removed by its epoch, and comes back under its name with a seat alone', () => {
  const own = storeOf(n3)
  const row = endChange(beginDemote(firstRow, { node: n3, voters: first, store: own }, 10), 20)
  expect([...row.readers]).toEqual([[n3, { store: own, seat: 0 }]])
  expect([isVoter(row, n3, own, 0), isOver(row, n3, own, 0)]).toEqual([false, false])
  const gone = removeReader(row, { node: n3, lastSeat: 7 }, 30)
  expect([isVoter(gone, n3, own, 0), isOver(gone, n3, own, 0)]).toEqual([false, true])
  const again = beginAdd(gone, { node: n3, url, seat }, 40)
  expect(isOver(again, n3, own, 0)).toBe(true)
})

test('where a quorum was lost no read-only member stays: it may have entries that the others have not', () => {
  const row = recordRecovery(joined, { epoch: 2_000, voters: [n1], lastSeat: 9 }, 30)
  expect(row.readers.size).toBe(0)
  expect(standingIn(row)).toEqual([false, true])
})

test.each([
  [
    'a member is removed as a voter',
    () => beginRemove(joined, { node: r, voters: first, lastSeat: 0 }, 1),
    'MOVE-6',
  ],
  [
    'a voter leaves as a member does',
    () => removeReader(joined, { node: n2, lastSeat: 0 }, 1),
    'RDR-3',
  ],
  ['a voter gets a vote', () => beginPromote(joined, n2, 1), 'RDR-3'],
  [
    'the last voter loses its vote',
    () => beginDemote(firstRow, { node: n1, voters: [n1], store }, 1),
    'MOVE-6',
  ],
])('MOVE-6: it cannot be that %s', (_, step, rule) => {
  expect(step).toThrow(rule)
})

test('a row with read-only members is of another format, which a build of before does not take for one of its own', () => {
  const bytes = encodeRow(joined)
  expect(decodeRow(bytes)).toEqual(joined)
  expect([bytes[1], encodeRow(firstRow)[1]]).toEqual([2, 1])
})

test('a link without a vote is of a store at the seat of a change, or of a read-only member', () => {
  expect(findWithoutVote(asked, r)).toEqual({ seat, number: 1 })
  expect(findWithoutVote(joined, r)).toEqual({ seat, store, number: 1, isReader: true })
  expect(findWithoutVote(promoting, r)).toEqual({ seat, store, number: 2 })
  expect(findWithoutVote(promoted, r)).toBe(undefined)
  expect(findWithoutVote(left, r)).toBe(undefined)
  expect(findWithoutVote(joined, n2)).toBe(undefined)
})

const configured = staticPlacement([...first]).replicasOf(g)
const { voters } = configured

test('RDR-3: a read-only member goes by the row of its epoch, and gives no seal', () => {
  const member = new Member({ node: r, own: newcomerEpochs, isSeated: true })
  const { epochs, nodes } = member
  let told = 0
  expect([epochs.standingOf(g), epochs.mayFollow(asked)]).toEqual(['sealed', false])
  epochs.follow(joined, () => (told += 1))
  expect([epochs.standingOf(g), epochs.isVoting, told]).toEqual(['reading', false, 0])
  member.keep()
  expect([told, epochs.mayFollow(joined)]).toEqual([1, false])
  expect(epochs.own).toMatchObject({ epoch: 1, isMember: false, isDoubted: false, soundFor: 0 })
  expect(epochs.setOf(configured)).toMatchObject({ epoch: 1, voters, readers: [] })
  expect(nodes.others).toEqual(first)
})

test('RDR-3: it asks the voters of its epoch for reads, whatever later voters a peer tells of', () => {
  const { epochs, nodes } = new Member({ node: r, own: newcomerEpochs, isSeated: true })
  epochs.follow(joined, () => undefined)
  const n4 = nodeId('n4')
  expect(epochs.hear({ epoch: 5, nodes: [n1, n4] })).toBe(true)
  epochs.look(joined)
  expect(nodes.voters).toEqual([n1, n4])
  expect(epochs.setOf(configured)).toMatchObject({ epoch: 1, voters })
})

test('RDR-3: a voter seals its epoch before it is a read-only member', () => {
  const own = storeOf(n3)
  const row = beginDemote(firstRow, { node: n3, voters: first, store: own }, 10)
  const { epochs } = new Member({ node: n3, own: firstEpochs })
  expect(epochs.mayFollow(row)).toBe(false)
  expect(() => epochs.follow(row, () => undefined)).toThrow('RDR-3')
  epochs.enter(row, () => undefined)
  expect(epochs.standingOf(g)).toBe('reading')
  // Its seal of the epoch before counts.
  expect(epochs.own).toMatchObject({ epoch: 2, isMember: false, soundFor: 2 })
  expect(epochs.mayFollow(endChange(row, 20))).toBe(false)
})

test('RDR-3: one that lost its record is a member again with a row of that epoch, and not with an earlier one', () => {
  const own = storeOf(n3)
  const row = endChange(beginDemote(firstRow, { node: n3, voters: first, store: own }, 10), 20)
  const { epochs } = new Member({ node: n3, own: lostEpochs(0, 2) })
  expect(epochs.standingOf(g)).toBe('before-gate')
  expect(epochs.mayFollow({ ...row, epoch: 1 })).toBe(false)
  epochs.follow(row, () => undefined)
  expect([epochs.standingOf(g), epochs.own.isDoubted]).toEqual(['reading', false])
})

test('LOG-8: a read-only member needs directories of each epoch behind the first', () => {
  const { epochs } = new Member({ node: r, own: newcomerEpochs, isSeated: true })
  expect(epochs.directoriesOf).toBe(0)
  epochs.follow(joined, () => undefined)
  expect(epochs.directoriesOf).toBe(0)
  epochs.follow(demoted, () => undefined)
  expect(epochs.directoriesOf).toBe(3)
  expect(new Member().epochs.directoriesOf).toBe(0)
})

test('MOVE-3: a voter that became a read-only member tells its seal after a start, too', () => {
  const own = storeOf(n3)
  const row = beginDemote(firstRow, { node: n3, voters: first, store: own }, 10)
  const before = new Member({ node: n3, own: firstEpochs })
  before.epochs.enter(row, () => undefined)
  const { epochs } = new Member({ node: n3, own: before.epochs.own })
  expect(epochs.mayFollow(row)).toBe(true)
  epochs.follow(row, () => undefined)
  expect(epochs.own).toMatchObject({ epoch: 2, isMember: false, soundFor: 2 })
  // In a later epoch that seal is needed no more.
  epochs.follow({ ...row, epoch: 3 }, () => undefined)
  expect(epochs.own).toMatchObject({ epoch: 3, soundFor: 0 })
})
