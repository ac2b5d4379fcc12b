/** Which store may come to a node's name while a change replaces the store that votes under it. */
import { SetNodes } from '../../src/placement/set-nodes.ts'
import { expect, test } from 'vitest'
import { nodeId, storeId } from '../../src/base/ids.ts'
import { firstEpochs, type OwnEpochs } from '../../src/log/own-epochs.ts'
import { PeerMemory } from '../../src/log/peer-memory.ts'
import { Admission, type Newcomer } from '../../src/peers/admission.ts'
import { claimIn, describeSelf } from '../../src/peers/refusal.ts'
import { silentTrace } from '../../src/ports/trace.ts'
import type { LinkInfo } from '../../src/ports/transport.ts'

const [n1, n2, n3] = [nodeId('n1'), nodeId('n2'), nodeId('n3')]
const old = { node: n2, storeId: 'old', durableFlush: 90, incarnation: 3, run: 2 }
const third = { node: n3, storeId: 'of n3', durableFlush: 7, incarnation: 4, run: 3 }
const seat = 4_099
const newStore = storeId('00000000-0000-4000-8000-000000000001')
const coming: Newcomer = { seat, number: 2 }

/** The first store of n2, as its own log has it. */
const oldWord = {
  ...{ storeId: 'old', incarnation: 4, openedFlush: 90 },
  ...{ seat: 0, epoch: 1, isMember: true, isDoubted: false, hasVoted: true },
}

/** Node n1, which remembers both others; `newcomer`: to n2. */
function admitting(newcomer?: Newcomer, memory: PeerMemory = new PeerMemory([old, third])) {
  const state: { newcomer: Newcomer | undefined; knowsNodes: boolean } = {
    ...{ newcomer, knowsNodes: true },
  }
  const nodes = new SetNodes(n1, [n1, n2, n3])
  const admission = new Admission({
    ...{
      node: n1,
      nodes,
      storeId: 'of n1',
      trace: silentTrace,
      memory,
    },
    meta: { meta: () => undefined, setMeta: () => undefined },
    remember: () => undefined,
    hearVoters: ({ nodes: told }) => nodes.set(told, [], []),
    findNewcomer: (node) => (node === n2 ? state.newcomer : undefined),
    lastSeat: () => seat,
    version: () => 1,
    knowsNodes: () => state.knowsNodes,
  })
  return { memory, admission, state, nodes }
}

function hello(id: string, of: Partial<LinkInfo> = {}): LinkInfo {
  return { storeId: id, durableFlush: 0, incarnation: seat, run: 5, ...of }
}

const oldHello = hello('old', { durableFlush: 90, incarnation: 4 })

test('MOVE-6: the first store that comes with the seat has a link, and none before the change', () => {
  const { admission, state } = admitting()
  expect(admission.findProblem(n2, hello('new', { seat }))).toMatch(/^unknown-store/)
  state.newcomer = coming
  expect(admission.findProblem(n2, hello('new', { seat }))).toBe(undefined)
  expect(admission.isNewcomer(n2, hello('new', { seat }))).toBe(true)
})

test.each([
  ['the old store', oldHello],
  ['the old store with an invented seat', { ...oldHello, seat: 7 }],
  ['an empty store without a seat', hello('new')],
  ['a store with the seat of another change', hello('new', { seat: seat + 1 })],
])('MOVE-6: while a seat waits, %s is refused, with the command to go on with', (_, info) => {
  const { admission } = admitting(coming)
  const problem = admission.findProblem(n2, info)
  expect(problem).toBe(
    'being-replaced: change 2 replaces the store of n2; an empty folder comes with --seat 4099, and the old one after trilithon nodes cancel',
  )
  expect(claimIn(problem ?? '', oldWord)).toBe('none')
})

test('MOVE-6: one store alone comes to a seat', () => {
  const { admission } = admitting({ ...coming, store: 'new' })
  expect(admission.findProblem(n2, hello('new', { seat }))).toBe(undefined)
  expect(admission.findProblem(n2, hello('second', { seat }))).toBe(
    'seat-taken: store new has come to seat 4099 of n2, and no other one may',
  )
})

test('MOVE-6: a change of one node lets no other store to the names of the rest', () => {
  const { admission } = admitting(coming)
  expect(admission.findProblem(n3, hello('new', { seat }))).toMatch(/^unknown-store: n3 /)
  const known = hello('of n3', { durableFlush: 8, incarnation: 5 })
  expect(admission.findProblem(n3, known)).toBe(undefined)
  expect(admission.isNewcomer(n3, known)).toBe(false)
})

test('MOVE-6: a change that is given up lets the old store in again, and the newcomer no more', () => {
  const { admission, state } = admitting({ ...coming, store: 'new' })
  expect(admission.findProblem(n2, oldHello)).toMatch(/^being-replaced/)
  state.newcomer = undefined
  expect(admission.findProblem(n2, oldHello)).toBe(undefined)
  expect(admission.isNewcomer(n2, oldHello)).toBe(false)
  expect(admission.findProblem(n2, hello('new', { seat }))).toMatch(/^unknown-store/)
})

test('MOVE-6: in its epoch the new store is a voter, and the old one is refused for good once the change is done', () => {
  const { admission, memory, state } = admitting({ ...coming, store: 'new' })
  memory.exchange({ node: n2, storeId: 'new', durableFlush: 0, incarnation: 0, run: 0 })
  const info = hello('new', { seat })
  expect([admission.findProblem(n2, info), admission.isNewcomer(n2, info)]).toEqual([
    undefined,
    false,
  ])
  expect(admission.findProblem(n2, oldHello)).toMatch(/^being-replaced/)
  state.newcomer = undefined
  expect(admission.findProblem(n2, info)).toBe(undefined)
  const problem = admission.findProblem(n2, oldHello)
  expect(problem).toBe(
    'unknown-store: n2 voted with store new (epoch 1); an emptied or exchanged data folder must not vote under its name: trilithon nodes replace n2 makes it a member',
  )
  expect(claimIn(problem ?? '', oldWord)).toBe('fatal')
})

test('LOG-10: a new store that votes is held to its own flushes, and not to those of the old one', () => {
  const { admission, memory } = admitting()
  memory.exchange({ node: n2, storeId: 'new', durableFlush: 0, incarnation: 0, run: 0 })
  admission.learn(n2, hello('new', { seat, durableFlush: 5 }))
  admission.raise(n2, 12)
  expect(memory.of(n2)).toMatchObject({ storeId: 'new', durableFlush: 12, incarnation: seat })
  const later = hello('new', { seat, durableFlush: 11, incarnation: seat + 1, run: 6 })
  expect(admission.findProblem(n2, later)).toMatch(/^stale-disk: n2 once had flush 12 /)
  expect(admission.findProblem(n2, { ...later, durableFlush: 12 })).toBe(undefined)
})

test('MOVE-6: a node that has not met the one replaced lets the newcomer in', () => {
  const { admission } = admitting(coming, new PeerMemory([third]))
  expect(admission.findProblem(n2, hello('new', { seat }))).toBe(undefined)
  expect(admission.isNewcomer(n2, hello('new', { seat }))).toBe(true)
  expect(admission.findProblem(n2, oldHello)).toMatch(/^being-replaced/)
})

test('LOG-11: a newcomer tells a forgetful node nothing, and gets no link before a majority has told', () => {
  const { memory, admission } = admitting(coming, new PeerMemory(undefined))
  const own = { node: n1, storeId: 'of n1', durableFlush: 5, incarnation: 2, run: 1 }
  const told = hello('of n3', { durableFlush: 8, incarnation: 5, known: [own, old] })
  expect(admission.findProblem(n3, told)).toMatch(/^forgetful/)
  const info = hello('new', { seat, known: [own, third] })
  expect(admission.findProblem(n2, info)).toMatch(/^forgetful/)
  expect(memory.isWhole).toBe(false)
})

test('LOG-11: a node whose first peers are gone is let in by those that vote now', () => {
  const { memory, admission, nodes } = admitting(undefined, new PeerMemory(undefined))
  const [n4, n5] = [nodeId('n4'), nodeId('n5')]
  const fourth = { node: n4, storeId: 'of n4', durableFlush: 3, incarnation: 1, run: 1 }
  const own = { node: n1, storeId: 'of n1', durableFlush: 5, incarnation: 2, run: 1 }
  const voters = { epoch: 4, nodes: [n1, n4, n5] }
  const silent = hello('of n4', { durableFlush: 3, incarnation: 1, run: 1, known: [own] })
  const told = { ...silent, voters }
  expect(admission.findProblem(n4, silent)).toMatch(/^unknown-node/)
  expect(admission.findProblem(n4, told)).toMatch(/^forgetful/)
  expect(nodes.otherVoters).toEqual([n4, n5])
  // A node that has left tells nothing that counts.
  const left = hello('of n3', { durableFlush: 8, incarnation: 4, run: 3, known: [own, fourth] })
  expect(admission.findProblem(n3, left)).toMatch(/^unknown-node/)
  expect(memory.isWhole).toBe(false)
  const last = { storeId: 'of n5', durableFlush: 1, incarnation: 1, run: 1 }
  expect(admission.findProblem(n5, { ...last, known: [own, fourth], voters })).toBe(undefined)
  expect(memory.isWhole).toBe(true)
  expect(admission.findProblem(n4, told)).toBe(undefined)
  expect(admission.findProblem(n4, { ...told, durableFlush: 2, run: 2 })).toMatch(/^stale-disk/)
})

test('a store tells which nodes vote, where it knows them and a change has named them', () => {
  const identity = { storeId: newStore, incarnation: 1, seat: 0 }
  const tell = (epochs: Partial<OwnEpochs>): LinkInfo =>
    describeSelf({
      ...{ identity, openedFlush: 4, run: 1 },
      memory: new PeerMemory([], { ...firstEpochs, epoch: 3, ...epochs }),
    })
  const voters = [n1, n3]
  expect(tell({ voters }).voters).toEqual({ epoch: 3, nodes: voters })
  expect(tell({})).not.toHaveProperty('voters')
  expect(tell({ voters, isDoubted: true })).not.toHaveProperty('voters')
  expect(tell({ voters, isMember: false })).not.toHaveProperty('voters')
})

test('a store tells its seat with a link, and its first store tells none', () => {
  const own = { memory: new PeerMemory([]), openedFlush: 4, run: 1 }
  const identity = { storeId: newStore, incarnation: seat, seat }
  expect(describeSelf({ ...own, identity: { ...identity, seat } })).toMatchObject({
    ...{ seat, storeId: newStore, knowsEpochs: true },
  })
  expect(describeSelf({ ...own, identity: { ...identity, seat: 0 } })).not.toHaveProperty('seat')
})

const readerAt: Newcomer = { seat, store: 'reader', number: 4, isReader: true }
const wordOfReader = { ...oldWord, storeId: 'reader', seat, isMember: false, hasVoted: false }

test('RDR-3: a read-only member has a link, and no vote', () => {
  const { admission } = admitting(readerAt)
  const info = hello('reader', { seat })
  expect(admission.findProblem(n2, info)).toBe(undefined)
  expect(admission.isNewcomer(n2, info)).toBe(true)
  expect(admission.findProblem(n2, hello('another', { seat }))).toMatch(/^seat-taken/)
})

test('RDR-3: a voter that became a read-only member keeps its link, and has no vote from that epoch on', () => {
  const { admission, nodes } = admitting({ ...readerAt, seat: 0, store: 'old' })
  expect(admission.findProblem(n2, oldHello)).toBe(undefined)
  expect(admission.isNewcomer(n2, oldHello)).toBe(false)
  nodes.set([n1, n3], [n2], [n2])
  expect(admission.isNewcomer(n2, oldHello)).toBe(true)
  // Its log is remembered all the same: a copy of the past must not come back.
  const past = { ...oldHello, durableFlush: 89, run: 6, incarnation: 5 }
  expect(admission.findProblem(n2, past)).toMatch(/^stale-disk/)
})

test('RDR-3: a read-only member that was removed or replaced ends by the words of its peers', () => {
  const { admission, nodes, state } = admitting(readerAt)
  const info = hello('reader', { seat })
  state.newcomer = { ...readerAt, seat: seat + 4_096, store: 'next' }
  const replaced = admission.findProblem(n2, info) ?? ''
  expect(replaced).toMatch(
    /^removed-seat: n2 has no part in the replica set with seat 4099 any more/,
  )
  expect(claimIn(replaced, wordOfReader)).toBe('fatal')
  expect(claimIn(replaced, { ...wordOfReader, seat: seat + 4_096 })).toBe('none')
  expect(claimIn(replaced, { ...wordOfReader, isMember: true })).toBe('none')
  state.newcomer = undefined
  nodes.set([n1, n3], [], [])
  const removed = admission.findProblem('n7', info) ?? ''
  expect(removed).toMatch(/^removed-seat: n7 /)
  expect(claimIn(removed, wordOfReader)).toBe('fatal')
  // This node's row has not handed that seat out: the node may be one that it has not heard of.
  const later = hello('reader', { seat: seat + 1 })
  expect(admission.findProblem('n7', later)).toMatch(/^unknown-node/)
})

test('RDR-3: a voter with a seat that was removed hears of its epoch, and ends by that', () => {
  const old = { node: n2, storeId: 'seated', durableFlush: 3, incarnation: seat, run: 1 }
  const { admission, nodes } = admitting(undefined, new PeerMemory([old, third]))
  nodes.set([n1, n3], [], [])
  const problem = admission.findProblem(n2, hello('seated', { seat })) ?? ''
  expect(problem).toMatch(/^removed-node: n2 has no vote since epoch 1;/)
  expect(claimIn(problem, { ...wordOfReader, isMember: true, epoch: 0 })).toBe('fatal')
  // A read-only member that came under the name of such a voter.
  expect(admission.findProblem(n2, hello('reader', { seat }))).toMatch(/^removed-seat: n2 /)
})

test('RDR-3: peers tell a voter that lost its record that its very store had a vote, by which it ends', () => {
  const old = { node: n2, storeId: 'seated', durableFlush: 3, incarnation: seat, run: 1 }
  const { admission, nodes } = admitting(undefined, new PeerMemory([old, third]))
  nodes.set([n1, n3], [], [])
  const problem = admission.findProblem(n2, hello('seated', { seat })) ?? ''
  const lost = { ...wordOfReader, storeId: 'seated', epoch: 1, isMember: false, hasVoted: false }
  expect(claimIn(problem, lost)).toBe('fatal')
  expect(claimIn(problem, { ...lost, epoch: 2 })).toBe('none')
  // A newcomer under the name of such a voter: the words are about another store.
  expect(claimIn(problem, { ...lost, storeId: 'new' })).toBe('none')
})

test('RDR-3: a node that does not know which nodes take part refuses none of them for good', () => {
  const { admission, nodes, state } = admitting()
  nodes.set([n1, n3], [], [])
  state.knowsNodes = false
  for (const [name, info] of [
    [n2, oldHello],
    [n2, hello('reader', { seat })],
    ['n7', hello('new')],
  ] as const) {
    const problem = admission.findProblem(name, info) ?? ''
    expect(problem).toMatch(/^forgetful: this node does not know yet which nodes take part/)
    expect(claimIn(problem, { ...oldWord, isMember: false })).toBe('none')
  }
  state.knowsNodes = true
  expect(admission.findProblem(n2, oldHello)).toMatch(
    /^removed-node: n2 has no vote since epoch 1;/,
  )
})
