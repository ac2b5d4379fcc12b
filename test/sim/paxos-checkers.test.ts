import { expect, test } from 'vitest'
import { groupOfBytes, nodeId } from '../../src/base/ids.ts'
import type { Ballot } from '../../src/paxos/ballot.ts'
import { staticPlacement } from '../../src/placement/placement.ts'
import { encodeEntry } from '../../src/replication/entry.ts'
import type { Message } from '../../src/replication/message.ts'
import { encodeTransaction } from '../../src/group/transaction.ts'
import { AcceptorChecker } from '../../sim/checkers/acceptor-checker.ts'
import { PositionBook, type PositionView } from '../../sim/checkers/position-book.ts'
import { ProposalChecker } from '../../sim/checkers/proposal-checker.ts'
import { Referee } from '../../sim/checkers/referee.ts'
import { Coverage } from '../../sim/coverage.ts'

const nodes = ['n1', 'n2', 'n3'].map(nodeId)
const placement = staticPlacement(nodes)
const group = groupOfBytes(Buffer.from('a group'))
const first = placement.replicasOf(group).firstFull
const second = nodes.find((node) => node !== first) ?? first
const third = nodes.find((node) => node !== first && node !== second) ?? first

function ballot(round: number, node: string, incarnation = 1): Ballot {
  return { epoch: 1, round, node: nodeId(node), incarnation }
}

/** An entry that names `node` as the leader of the position after it. */
function entry(position: number, node: string, content = 'x'): Uint8Array {
  const transaction = encodeTransaction({
    ...{ session: content, sequence: 1, attempt: 1, floor: 1, expiresAt: 10 ** 15 },
    ...{ allocations: [], mutations: [] },
  })
  const nextLeader = { node: nodeId(node), incarnation: 1 }
  return encodeEntry({
    position,
    timestamp: position,
    horizon: 0,
    nextLeader,
    transactions: [transaction],
  })
}

function noOp(position: number, node: string): Uint8Array {
  const nextLeader = { node: nodeId(node), incarnation: 1 }
  return encodeEntry({ position, timestamp: position, horizon: 0, nextLeader, transactions: [] })
}

class Court {
  readonly referee = new Referee(() => 0)
  readonly coverage = new Coverage()
  readonly book = new PositionBook(placement)
  readonly chosen: PositionView[] = []
  readonly proposals = new ProposalChecker({
    ...{ book: this.book, referee: this.referee, coverage: this.coverage },
    onChosen: (view) => this.chosen.push(view),
  })
  readonly acceptors = new AcceptorChecker(this.book, this.referee, this.proposals, {
    epochOf: () => 1,
  })

  get rules(): string[] {
    return [...new Set(this.referee.violations.map((violation) => violation.rule))]
  }

  promise(node: string, position: number, at: Ballot): void {
    this.acceptors.onDurable(node, { kind: 'promise', group, position, ballot: at })
  }

  accept(node: string, position: number, at: Ballot, value: Uint8Array): void {
    this.acceptors.onDurable(node, { kind: 'accept', group, position, ballot: at, value })
  }

  propose(position: number, at: Ballot, value: Uint8Array): void {
    this.proposals.onProposed(at.node, group, position, at, value)
  }

  send(from: string, message: Message): void {
    this.acceptors.onSent(from, message)
    this.proposals.onSent(from, message)
  }

  /** `voter` promises and tells the proposer. */
  answer(voter: string, position: number, at: Ballot): void {
    this.promise(voter, position, at)
    const accepted = this.book.of(group, position).acceptors.get(voter)?.accepted
    const message: Message = {
      ...{ kind: 'promised', group, epoch: 1, position, ballot: at },
      ...(accepted === undefined ? {} : { accepted }),
    }
    this.send(voter, message)
    this.proposals.onDelivered(voter, at.node, message)
  }

  /** Position 1 chosen at ballot zero by the first full replica, who leads on. */
  chooseFirst(): void {
    const at = ballot(0, first)
    this.propose(1, at, entry(1, first))
    this.accept(first, 1, at, entry(1, first))
    this.accept(second, 1, at, entry(1, first))
  }
}

test('PAX-1: an orderly run of prepare, accept and choice is clean', () => {
  const court = new Court()
  court.chooseFirst()
  const at = ballot(1, second)
  court.answer(second, 2, at)
  court.answer(third, 2, at)
  court.propose(2, at, entry(2, second))
  court.accept(second, 2, at, entry(2, second))
  court.accept(third, 2, at, entry(2, second))
  court.send(second, { kind: 'committed', group, epoch: 1, position: 2, ballot: at })
  expect(court.rules).toEqual([])
  expect(court.chosen.map((view) => view.position)).toEqual([1, 2])
})

test('PAX-1: two chosen values at one position are found', () => {
  const court = new Court()
  court.accept('n1', 3, ballot(1, 'n1'), entry(3, 'n1', 'x'))
  court.accept('n2', 3, ballot(1, 'n1'), entry(3, 'n1', 'x'))
  court.accept('n2', 3, ballot(2, 'n2'), entry(3, 'n2', 'y'))
  court.accept('n3', 3, ballot(2, 'n2'), entry(3, 'n2', 'y'))
  expect(court.rules).toEqual(['PAX-1'])
})

test('PAX-1: taking another value than the chosen one for chosen is found', () => {
  const court = new Court()
  court.chooseFirst()
  const { ballot: at } = court.chosen[0]?.chosen ?? { ballot: ballot(9, 'n1') }
  court.proposals.onRegardedAsChosen(third, group, 1, at, entry(1, third, 'other'))
  expect(court.rules).toEqual(['PAX-1'])
})

test('PAX-2: a promise that goes back on the disk is found', () => {
  const court = new Court()
  court.promise('n1', 2, ballot(5, 'n2'))
  court.promise('n1', 2, ballot(4, 'n3'))
  expect(court.rules).toEqual(['PAX-2'])
})

test('PAX-3: an acceptance below the promise is found', () => {
  const court = new Court()
  court.promise('n1', 2, ballot(5, 'n2'))
  court.accept('n1', 2, ballot(4, 'n3'), entry(2, 'n3'))
  expect(court.rules).toEqual(['PAX-3'])
})

test('PAX-4: a promise, an acceptance or a refusal that leaves before it is durable is found', () => {
  const at = ballot(1, 'n2')
  const common = { group, epoch: 1, position: 2, ballot: at }
  const messages: readonly Message[] = [
    { kind: 'promised', ...common },
    { kind: 'accepted', ...common, holders: [] },
    { kind: 'refused', ...common, promised: ballot(2, 'n3') },
  ]
  for (const message of messages) {
    const court = new Court()
    court.send('n1', message)
    expect(court.rules, message.kind).toEqual(['PAX-4'])
  }
})

test('PAX-4: a promise that leaves out what was accepted is found', () => {
  const court = new Court()
  court.accept('n1', 2, ballot(1, 'n2'), entry(2, 'n2'))
  const at = ballot(2, 'n3')
  court.promise('n1', 2, at)
  court.send('n1', { kind: 'promised', group, epoch: 1, position: 2, ballot: at })
  expect(court.rules).toEqual(['PAX-4'])
})

test('PAX-5: two values at one ballot are found', () => {
  const court = new Court()
  const common = { kind: 'accept', group, epoch: 1, position: 2, ballot: ballot(1, 'n2') } as const
  court.send('n2', { ...common, value: entry(2, 'n2', 'x') })
  court.send('n2', { ...common, value: entry(2, 'n2', 'y') })
  expect(court.rules).toEqual(['PAX-5'])
})

test('PAX-5: a proposal that passes over the value accepted at the highest ballot is found', () => {
  const court = new Court()
  court.accept('n1', 2, ballot(1, 'n1'), entry(2, 'n1', 'older'))
  court.accept('n2', 2, ballot(2, 'n2'), entry(2, 'n2', 'newer'))
  const at = ballot(3, 'n3')
  court.answer('n1', 2, at)
  court.answer('n2', 2, at)
  court.propose(2, at, entry(2, 'n1', 'older'))
  expect(court.rules).toEqual(['PAX-5'])
})

test('PAX-5: a free choice although a majority cannot be empty is found', () => {
  const court = new Court()
  court.accept('n2', 2, ballot(2, 'n2'), entry(2, 'n2'))
  const at = ballot(3, 'n3')
  court.answer('n1', 2, at)
  court.answer('n2', 2, at)
  court.propose(2, at, entry(2, 'n3', 'own'))
  expect(court.rules).toEqual(['PAX-5'])
})

test('PAX-5: any majority among more answers may be the one that was counted', () => {
  const court = new Court()
  court.accept('n2', 2, ballot(2, 'n2'), entry(2, 'n2'))
  const at = ballot(3, 'n3')
  for (const voter of nodes) court.answer(voter, 2, at)
  court.propose(2, at, entry(2, 'n3', 'own'))
  expect(court.rules).toEqual([])
})

test('PAX-6: ballot zero of another than the named leader is found', () => {
  const court = new Court()
  court.chooseFirst()
  court.propose(2, ballot(0, second), entry(2, second))
  expect(court.rules).toEqual(['PAX-6'])
})

test('PAX-6: ballot zero of the named leader in another incarnation is found', () => {
  const court = new Court()
  court.chooseFirst()
  court.propose(2, ballot(0, first, 2), entry(2, first))
  expect(court.rules).toEqual(['PAX-6'])
})

test('PAX-6: ballot zero where its node has promised a higher ballot is found', () => {
  const court = new Court()
  court.chooseFirst()
  court.promise(first, 2, ballot(1, second))
  court.propose(2, ballot(0, first), entry(2, first))
  expect(court.rules).toEqual(['PAX-6'])
})

test('PAX-6: at position 1 ballot zero must not leave before it is durable', () => {
  const court = new Court()
  const at = ballot(0, first)
  const value = entry(1, first)
  court.send(first, { kind: 'accept', group, epoch: 1, position: 1, ballot: at, value })
  expect(court.rules).toEqual(['PAX-6'])
})

test('PAX-7: a proposal without promises of a majority is found', () => {
  const court = new Court()
  const at = ballot(1, 'n1')
  court.answer('n1', 2, at)
  court.propose(2, at, entry(2, 'n1'))
  expect(court.rules).toEqual(['PAX-7'])
})

test('PAX-7: telling of a commit that no majority of voters accepted is found', () => {
  const court = new Court()
  const at = ballot(1, 'n1')
  court.accept('n1', 2, at, entry(2, 'n1'))
  court.accept('stranger', 2, at, entry(2, 'n1'))
  court.send('n1', { kind: 'committed', group, epoch: 1, position: 2, ballot: at })
  expect(court.rules).toEqual(['PAX-7'])
})

test('LOG-5: a no-op over a chosen value is found', () => {
  const court = new Court()
  court.chooseFirst()
  const at = ballot(1, third)
  court.answer(second, 1, at)
  court.answer(third, 1, at)
  court.propose(1, at, noOp(1, third))
  expect(court.rules).toContain('LOG-5')
})

test('LOG-7: a copy tells of an acceptance that was, or of the ballot that a crash has left of one', () => {
  const court = new Court()
  const copied = (at: Ballot, value?: Uint8Array): void => {
    const record = { kind: 'copied', group, position: 1, ballot: at } as const
    court.acceptors.onDurable(third, { ...record, ...(value !== undefined && { value }) })
  }
  const [at, later] = [ballot(1, second), ballot(2, second)]
  const isOfLostValue = true
  court.acceptors.onDurable(third, {
    kind: 'promise',
    group,
    position: 1,
    ballot: at,
    isOfLostValue,
  })
  copied(at)
  expect(court.rules).toEqual([])
  copied(later)
  expect(court.rules, 'a promise is no acceptance').toEqual(['LOG-7'])
})
