import { expect, test } from 'vitest'
import { nodeId } from '../../src/base/ids.ts'
import { firstEpochs } from '../../src/log/own-epochs.ts'
import { placementOver } from '../../src/placement/placement.ts'
import { VoterBook } from '../../sim/checkers/voter-book.ts'

const n1 = nodeId('n1')
const n2 = nodeId('n2')
const n3 = nodeId('n3')
const n5 = nodeId('n5')

test('LOG-16: a node waits for voters of its epoch that have not left since, whatever its disk names', () => {
  const book = new VoterBook(placementOver([[n1, n2, n3]], [{ node: n5, set: 0 }]))
  expect(book.stayingOf('n1')).toEqual([n1, n2, n3])
  book.note('n1', { ...firstEpochs, epoch: 2, voters: [n1, n3] })
  // A store that is to have a vote has no record, and goes by what its peers tell.
  expect(book.stayingOf('n5')).toEqual([n1, n3])
  book.note('n3', { ...firstEpochs, epoch: 3, voters: [n1, n3, n5] })
  expect(book.stayingOf('n1')).toEqual([n1, n3])
  expect(book.stayingOf('n3')).toEqual([n1, n3, n5])
  // It is back in a later epoch, with another store: that is for nodes of that epoch to wait for.
  book.note('n1', { ...firstEpochs, epoch: 4, voters: [n1, n2, n3] })
  expect([book.stayingOf('n1'), book.stayingOf('n2')]).toEqual([
    [n1, n2, n3],
    [n1, n3],
  ])
})

test('LEASE-2: a set that a group has left needs the entry by which it left, and none behind it', () => {
  const placement = placementOver([[n1, n2, n3], ['n4', 'n5', 'n6'].map(nodeId)])
  const book = new VoterBook(placement)
  const group = 'group'
  const own = book.setAt(group, 1)
  const [here, there] = own === 0 ? ['n1', 'n4'] : ['n4', 'n1']
  const [ofHere, ofThere] = [0, 1].map((at) => placement.sites[at === 0 ? own : 1 - own]?.name)
  const needed = (node: string, position: number): number =>
    book.neededAt(node, { group, position })
  expect([needed(here, 5), needed(there, 5)]).toEqual([5, 5])
  book.noteMove(group, 6, ofThere ?? '')
  expect([5, 6, 7, 9].map((position) => needed(here, position))).toEqual([5, 6, 6, 6])
  // A lease over there from before the group came is wrong at any position.
  expect([5, 6, 7, 9].map((position) => needed(there, position))).toEqual([5, 6, 7, 9])
  book.noteMove(group, 9, ofHere ?? '')
  expect([6, 8, 9, 10].map((position) => needed(here, position))).toEqual([6, 6, 6, 10])
  expect([9, 10].map((position) => needed(there, position))).toEqual([9, 9])
})
