/** The messages of a read-only member at a voter, and of voters at a read-only member. */
import { expect, test } from 'vitest'
import { groupOfBytes, nodeId } from '../../src/base/ids.ts'
import { Inbound, type InboundParts } from '../../src/replica/inbound.ts'
import type { Message } from '../../src/replication/message.ts'

const [own, reader, voter] = [nodeId('n1'), nodeId('n2'), nodeId('n3')]
const group = groupOfBytes(Buffer.from('g'))
const at = { group, epoch: 1, position: 1 }
const ballot = { epoch: 1, round: 1, node: own, incarnation: 1 }

const ofVoters: readonly Message[] = [
  { kind: 'promised', ...at, ballot },
  { kind: 'accepted', ...at, ballot, holders: [] },
  { kind: 'refused', ...at, ballot, promised: ballot },
  { kind: 'prepare', ...at, ballot },
  { kind: 'highest', ...at, read: 1 },
  { kind: 'revoked', ...at, holder: own },
]
const ofLeases: readonly Message[] = [
  { kind: 'slow', holder: own },
  { kind: 'release', group, epoch: 1, attempt: 1 },
  { kind: 'hand-back', term: { incarnation: 1, number: 1 } },
]
const ofAll: readonly Message[] = [
  { kind: 'committed', ...at, ballot },
  { kind: 'fetch', group, epoch: 1, from: 1, through: 2, isAwaited: false },
]
const query: Message = { kind: 'query', group, epoch: 1, read: 1, mayRegister: false }

/** The kinds that pass, where these nodes read. `withoutVote`: those that have no vote in this node's epoch. */
function passing(
  from: typeof own,
  readers: readonly (typeof own)[],
  messages: readonly Message[],
  withoutVote: readonly (typeof own)[] = readers,
): readonly string[] {
  const passed: string[] = []
  const unused = (): never => {
    throw new Error('not in this test')
  }
  const parts = {
    work: { noteForeground: () => undefined },
    ending: { onMessage: unused },
    comparing: { onMessage: unused, findRefusal: () => undefined },
    epochs: { onMessage: unused },
    peers: { isNewcomer: (node: typeof own) => withoutVote.includes(node) },
    keeper: { onMessage: (_: unknown, { kind }: Message) => passed.push(kind) },
    backpressure: { admits: () => true },
    trace: { emit: () => undefined, mark: () => undefined },
    isHeld: () => true,
    isReader: (node: typeof own) => readers.includes(node),
    node: own,
    step: (_: unknown, event: { readonly kind: string; readonly message?: Message }) =>
      passed.push(event.message?.kind ?? event.kind),
    onBug: unused,
  }
  const inbound = new Inbound(fake(parts))
  for (const message of messages) inbound.take(from, message)
  return passed
}

/** The parts that the messages of this test come to. */
function fake(parts: object): InboundParts {
  const isParts = (one: object): one is InboundParts => 'keeper' in one && 'peers' in one
  if (!isParts(parts)) throw new Error('no parts')
  return parts
}

const kindsOf = (messages: readonly Message[]): readonly string[] =>
  messages.map(({ kind }) => kind)

test('RDR-1: a voter takes two kinds of messages from a reader: questions of read rounds, and messages of no epoch', () => {
  const all = [...ofVoters, ...ofLeases, ...ofAll, query]
  expect(passing(reader, [reader], all)).toEqual(kindsOf([...ofAll, query]))
  expect(passing(voter, [reader], all)).toEqual(kindsOf(all))
})

test('RDR-3: of a voter that is to lose its vote, another one takes all as long as it has not sealed the epoch', () => {
  const all = [...ofVoters, ...ofLeases, ...ofAll, query]
  expect(passing(reader, [reader], all, [])).toEqual(kindsOf(all))
})

test('MOVE-7: of a store without a vote that is no member yet, no question of a read round is taken', () => {
  expect(passing(voter, [], [...ofAll, query], [voter])).toEqual(kindsOf(ofAll))
})

test('RDR-1: a reader takes no message of leases', () => {
  const all = [...ofLeases, ...ofAll]
  expect(passing(voter, [own], all)).toEqual(kindsOf(ofAll))
})
