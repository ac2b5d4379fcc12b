/** A node and a peer whose store has come to take the place of another one. */
import { SetNodes } from '../../src/placement/set-nodes.ts'
import { expect, test } from 'vitest'
import { groupOfBytes, nodeId, type NodeId } from '../../src/base/ids.ts'
import { defaultLimits } from '../../src/base/limits.ts'
import { PeerMemory } from '../../src/log/peer-memory.ts'
import type { Newcomer } from '../../src/peers/admission.ts'
import { Peers } from '../../src/peers/peers.ts'
import type { Work } from '../../src/peers/slices.ts'
import type { LinkInfo } from '../../src/ports/transport.ts'
import type { PeerFrame } from '../../src/replication/message.ts'
import { whole } from '../log/whole.ts'
import { RecordedTrace } from '../members/epochs-kit.ts'
import { HandClock } from '../ports/hand-clock.ts'

const [n1, n2, n3] = [nodeId('n1'), nodeId('n2'), nodeId('n3')]
const group = groupOfBytes(Buffer.from('a group'))
const seat = 4_099
const firstStore: LinkInfo = { storeId: 'first', incarnation: 3, durableFlush: 12, run: 1 }
const second: LinkInfo = { storeId: 'second', incarnation: seat, durableFlush: 2, run: 2, seat }
const third: LinkInfo = { storeId: 'of n3', incarnation: 2, durableFlush: 8, run: 3 }
const told: LinkInfo = { ...second, knowsLogEnds: true, compares: true, knowsEpochs: true }

/** Node n1, whose log remembers the first stores of n2 and n3. */
class Node {
  readonly memory = new PeerMemory([
    { node: n2, storeId: 'first', durableFlush: 12, incarnation: 3, run: 1 },
    { node: n3, storeId: 'of n3', durableFlush: 8, incarnation: 2, run: 3 },
  ])
  readonly trace = new RecordedTrace()
  readonly sent: (readonly [string, PeerFrame])[] = []
  readonly suspicions: (readonly [NodeId, boolean])[] = []
  readonly joined: NodeId[] = []
  readonly digested: NodeId[] = []
  readonly voters: NodeId[] = []
  newcomer: Newcomer | undefined = { seat, number: 1 }
  /** Answers of peers wait here in place of being taken up at once. */
  waiting: Work['pieces'][] | undefined
  readonly #clock = new HandClock()
  readonly peers = this.#makePeers()

  #makePeers(): Peers {
    const own = { durableFlush: 20, lastFlush: 20, highest: () => 0 }
    return new Peers({
      ...{ node: n1, incarnation: 1, nodes: new SetNodes(n1, [n1, n2, n3]), limits: defaultLimits },
      ...{ storeId: 'own', log: own, applied: own, clock: this.#clock, trace: this.trace },
      transport: {
        start: () => undefined,
        send: (to, frame) => this.sent.push([to, frame]) > 0,
        isUp: () => true,
        close: () => Promise.resolve(),
      },
      meta: { meta: () => undefined, setMeta: () => undefined },
      memory: this.memory,
      remember: () => this.keep(),
      hearVoters: () => undefined,
      findNewcomer: (node) => (node === n2 ? this.newcomer : undefined),
      lastSeat: () => 0,
      version: () => 1,
      knowsNodes: () => true,
      onJoined: (peer) => this.joined.push(peer),
      onVoter: (peer) => this.voters.push(peer),
      onSuspicion: (...news) => this.suspicions.push(news),
      onNamed: () => undefined,
      later: (_, { pieces }) => this.#takeUp(pieces),
      onDigested: (peer) => this.digested.push(peer),
    })
  }

  #takeUp(pieces: Work['pieces']): void {
    if (this.waiting === undefined) whole(pieces)
    else this.waiting.push(pieces)
  }

  keep(): void {
    if (this.memory.take() !== undefined) this.memory.onWritten()
  }

  /** The row of an epoch names the store, durably. */
  exchange(storeId: string): void {
    this.memory.exchange({ node: n2, storeId, durableFlush: 0, incarnation: 0, run: 0 })
    this.keep()
    this.peers.checkVoters()
  }

  digest(from: NodeId, through: number): void {
    const rest = { asked: 1, after: 0, isWhole: true, groups: [] }
    this.peers.onDigest(from, { kind: 'digest', through, ...rest })
    for (let look = 0; look < 3; look++) this.peers.askDigests()
  }

  /** The messages that went to the node since the last look. */
  took(node: NodeId): readonly string[] {
    this.peers.flush()
    const frames = this.sent.splice(0).filter(([to]) => to === node)
    return frames.flatMap(([, { messages }]) => messages.map(({ kind }) => kind))
  }

  /** Whether the node has a vote, as far as this one knows, and what of its flushes counts. */
  look(): readonly unknown[] {
    const { peers } = this
    const [, mark] = peers.heardMarks().find(([node]) => node === n2) ?? []
    return [peers.isNewcomer(n2), peers.isAlive(n2), peers.isHeardOf(n2), mark]
  }
}

test('MOVE-7: a newcomer has a link and is heard of, and is not alive; its mark does not count', () => {
  const node = new Node()
  expect(node.peers.admit(n2, told)).toBe(undefined)
  node.peers.onLink(n2, 'up', told)
  expect([node.joined, node.peers.linkOf(n2), node.peers.knowsEpochs(n2)]).toEqual([
    [n2],
    told,
    true,
  ])
  node.peers.onDurableMark(n2, 15)
  expect(node.look()).toEqual([true, false, true, undefined])
  expect(node.took(n2)).toContain('digest-request')
})

test('MOVE-7: the memory of the store that votes stays as it was while a newcomer copies', () => {
  const node = new Node()
  const before = node.memory.of(n2)
  node.peers.onLink(n2, 'up', told)
  node.peers.onFrame(n2, { durableFlush: 900, messages: [] })
  expect(node.memory.of(n2)).toEqual(before)
})

test('MOVE-7: a digest of a newcomer counts for no list of acknowledged groups', () => {
  const node = new Node()
  node.peers.onLink(n2, 'up', told)
  node.peers.onLink(n3, 'up', third)
  node.digest(n2, 2)
  node.digest(n3, 8)
  expect(node.digested).toEqual([n3])
})

test('MOVE-7: flushes of a newcomer do not stand for those of the store that votes (LOG-19)', () => {
  const node = new Node()
  node.peers.onLink(n2, 'up', told)
  node.digest(n2, 30)
  expect(node.peers.appliedThrough(n2)).toBe(0)
  node.exchange('second')
  expect(node.peers.appliedThrough(n2)).toBe(30)
})

test('MOVE-7: a newcomer that lets this node in vouches for no log: it has not met it', () => {
  const node = new Node()
  node.peers.onLink(n2, 'up', told)
  node.peers.onFrame(n2, { durableFlush: 2, messages: [] })
  expect(node.peers.isAdmitted).toBe(false)
  node.exchange('second')
  node.peers.onFrame(n2, { durableFlush: 3, messages: [] })
  expect(node.peers.isAdmitted).toBe(true)
})

test('MOVE-7: a newcomer does not count among the others that are a majority', () => {
  const node = new Node()
  node.peers.onLink(n3, 'up', third)
  node.peers.onLink(n2, 'up', firstStore)
  expect(node.peers.areOthersEnough).toBe(true)
  node.peers.onLink(n2, 'down', firstStore)
  expect(node.peers.areOthersEnough).toBe(false)
  node.peers.onLink(n2, 'up', told)
  expect(node.peers.areOthersEnough).toBe(false)
})

test('MOVE-6: a newcomer is a peer like any other from the epoch on that names its store', () => {
  const node = new Node()
  node.peers.onLink(n2, 'up', told)
  node.peers.onDurableMark(n2, 15)
  node.suspicions.length = 0
  node.exchange('second')
  expect(node.look()).toEqual([false, true, true, 15])
  expect([node.voters, node.suspicions]).toEqual([[n2], []])
  const { durableFlush, incarnation } = second
  expect(node.memory.of(n2)).toMatchObject({ storeId: 'second', durableFlush, incarnation })
  node.peers.onFrame(n2, { durableFlush: 7, messages: [] })
  expect(node.memory.of(n2)?.durableFlush).toBe(7)
  node.peers.checkVoters()
  expect(node.voters, 'once').toEqual([n2])
})

test('LOG-10: a newcomer is remembered with the flushes that it made before it had a vote', () => {
  const node = new Node()
  node.peers.onLink(n2, 'up', told)
  node.peers.onFrame(n2, { durableFlush: 6, messages: [] })
  expect(node.memory.of(n2)?.durableFlush, 'of the first store').toBe(12)
  node.exchange('second')
  expect(node.memory.of(n2)).toMatchObject({ storeId: 'second', durableFlush: 6 })
})

test('MOVE-6: the epoch cuts the store off that it replaces, and its mark counts no more', () => {
  const node = new Node()
  node.newcomer = undefined
  node.peers.onLink(n2, 'up', firstStore)
  node.peers.onDurableMark(n2, 11)
  expect(node.look()).toEqual([false, true, true, 11])
  node.took(n2)
  node.exchange('second')
  expect(node.trace.marks).toContain('replaced_store_cut_off')
  expect(node.look()).toEqual([false, false, false, undefined])
  expect([node.peers.linkOf(n2), node.suspicions.at(-1)]).toEqual([undefined, [n2, true]])
  node.peers.requestDigest(n2)
  expect(node.took(n2)).toEqual([])
  expect(node.peers.onFrame(n2, { durableFlush: 99, messages: [] })).toBe(undefined)
  expect(node.memory.of(n2)?.durableFlush).toBe(0)
})

test('LOG-18: when a peer first has a link with another store, this node forgets its marks of the old store', () => {
  const node = new Node()
  node.newcomer = undefined
  node.peers.onLink(n2, 'up', firstStore)
  node.digest(n2, 12)
  expect(node.peers.appliedThrough(n2)).toBe(12)
  node.newcomer = { seat, number: 1 }
  node.peers.onLink(n2, 'up', told)
  expect(node.trace.marks).toContain('marks_of_another_store_dropped')
  node.exchange('second')
  expect(node.peers.appliedThrough(n2)).toBe(0)
  expect(node.peers.isTakenThrough(n2, 1, () => true)).toBe(false)
  node.digest(n2, 2)
  expect(node.peers.isTakenThrough(n2, 2, () => true)).toBe(true)
  expect(node.peers.isTakenThrough(n2, 3, () => true)).toBe(false)
})

/** An answer of the first store of n2 comes, and that store is replaced before the node has taken the answer up. */
const answers = {
  digest: { kind: 'digest', asked: 1, after: 0, through: 12, isWhole: true, groups: [] },
  page: { kind: 'directory', asked: 1, through: 12, groups: [] },
} as const

test.for([
  ['digest', 'before its first piece', 0],
  ['digest', 'between two pieces', 1],
  ['page', 'before its first piece', 0],
] as const)(
  'LOG-19: a %s counts for no other store, where its own is replaced %s',
  ([kind, , taken]) => {
    const node = new Node()
    node.newcomer = undefined
    node.peers.onLink(n2, 'up', { ...firstStore, knowsLogEnds: true })
    const waiting: Work['pieces'][] = (node.waiting = [])
    if (kind === 'digest') node.peers.onDigest(n2, { ...answers.digest, groups: [[group, 1]] })
    else node.peers.onDirectory(n2, answers.page)
    const [pieces] = waiting
    for (let piece = 0; piece < taken; piece++) pieces?.next()
    node.peers.onLink(n2, 'down', firstStore)
    node.exchange('second')
    node.peers.onLink(n2, 'up', told)
    expect(node.trace.marks).toContain('marks_of_another_store_dropped')
    if (pieces !== undefined) whole(pieces)
    expect(node.digested, 'the new store has told nothing').toEqual([])
    expect(node.trace.marks).toContain('answer_of_another_store_dropped')
  },
)

test('LOG-18: a newcomer that goes away leaves no mark to the store that comes back', () => {
  const node = new Node()
  node.peers.onLink(n2, 'up', told)
  node.digest(n2, 12)
  node.peers.onDurableMark(n2, 15)
  node.newcomer = undefined
  node.peers.onLink(n2, 'up', firstStore)
  expect(node.look()).toEqual([false, true, true, undefined])
  expect(node.peers.appliedThrough(n2)).toBe(0)
})

test('a peer without a link is left as it is when voters change', () => {
  const node = new Node()
  node.exchange('second')
  expect([node.suspicions, node.trace.marks]).toEqual([[], []])
})
