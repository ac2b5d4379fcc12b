/**
 * Proposals and what is chosen.
 *
 * PAX-1  At most one value is chosen at a position, and it never changes.
 * PAX-5  One ballot, one value; after phase 1 the value accepted at the quorum's highest ballot.
 * PAX-6  Ballot zero only by the leader the chosen entry before names, where nothing was promised.
 * PAX-7  Quorums are majorities of the voters.
 * LOG-5  A no-op never displaces a value that is chosen.
 */
import { equalBytes } from '../../src/base/bytes.ts'
import type { BallotValue } from '../../src/paxos/acceptor.ts'
import { compareBallots, describeBallot, type Ballot } from '../../src/paxos/ballot.ts'
import { computeMajority } from '../../src/placement/placement.ts'
import { decodeEntry } from '../../src/replication/entry.ts'
import type { Accept, Message } from '../../src/replication/message.ts'
import type { Coverage } from '../coverage.ts'
import {
  ensureAcceptor,
  isAtLeast,
  describePlace,
  type PositionBook,
  type PositionView,
  type ProposedView,
} from './position-book.ts'
import type { Referee } from './referee.ts'

export interface ProposalParts {
  readonly book: PositionBook
  readonly referee: Referee
  readonly coverage: Coverage
  /** Told once a position, when its value is chosen. */
  onChosen(view: PositionView): void
}

export class ProposalChecker {
  readonly #parts: ProposalParts

  constructor(parts: ProposalParts) {
    this.#parts = parts
  }

  /** `node` begins phase 2. */
  onProposed(
    node: string,
    group: string,
    position: number,
    ballot: Ballot,
    value: Uint8Array,
  ): void {
    const view = this.#parts.book.of(group, position)
    const isNew = !view.proposed.has(describeBallot(ballot))
    this.#register(node, view, ballot, value)
    if (ballot.round === 0) this.#checkBallotZero(node, view, ballot)
    else if (isNew) this.#checkQuorum(node, view, ballot, value)
  }

  onSent(node: string, message: Message): void {
    switch (message.kind) {
      case 'accept':
        return this.#acceptLeaves(node, message)
      case 'committed':
        return this.#toldAsChosen(node, message.group, message.position, message.ballot)
      case 'entries':
        for (const { position, ballot, value } of message.entries) {
          this.onRegardedAsChosen(node, message.group, position, ballot, value)
        }
        return undefined
      default:
        return undefined
    }
  }

  /** A promise has reached its proposer. */
  onDelivered(from: string, to: string, message: Message): void {
    if (message.kind !== 'promised' || message.ballot.node !== to) return
    const view = this.#parts.book.of(message.group, message.position)
    const key = describeBallot(message.ballot)
    const heard = view.heardByBallot.get(key) ?? new Map<string, BallotValue | undefined>()
    view.heardByBallot.set(key, heard)
    if (!heard.has(from)) heard.set(from, message.accepted)
  }

  /** `node`'s acceptance is durable. */
  onAccepted(node: string, view: PositionView, ballot: Ballot, value: Uint8Array): void {
    const proposed = this.#register(node, view, ballot, value)
    proposed.acceptedBy.add(node)
    if (this.#parts.book.voters.isMajority(view, proposed.acceptedBy, ballot.epoch))
      this.#chosen(node, view, proposed)
  }

  /** A log says that a position is decided; without a value, as accepted there at this ballot. */
  onRecordedAsChosen(
    node: string,
    view: PositionView,
    ballot: Ballot,
    value: Uint8Array | undefined,
  ): void {
    const known = value ?? view.proposed.get(describeBallot(ballot))?.value
    if (known === undefined) this.#toldAsChosen(node, view.group, view.position, ballot)
    else this.onRegardedAsChosen(node, view.group, view.position, ballot, known)
  }

  /** `node` takes this value for chosen at this ballot. */
  onRegardedAsChosen(
    node: string,
    group: string,
    position: number,
    ballot: Ballot,
    value: Uint8Array,
  ): void {
    const view = this.#parts.book.of(group, position)
    this.#toldAsChosen(node, group, position, ballot)
    this.#parts.referee.check(
      view.chosen !== undefined && equalBytes(view.chosen.value, value),
      'PAX-1',
      'A value that is not the chosen one is taken for chosen.',
      () => ({ ...describePlace(view, node, ballot), chosenAt: view.chosen?.ballot }),
    )
  }

  #toldAsChosen(node: string, group: string, position: number, ballot: Ballot): void {
    const { book, referee } = this.#parts
    const view = book.of(group, position)
    const acceptedBy = view.proposed.get(describeBallot(ballot))?.acceptedBy ?? []
    referee.check(
      book.voters.isMajority(view, acceptedBy, ballot.epoch),
      'PAX-7',
      'A ballot is taken for chosen that no majority of voters has durably accepted.',
      () => ({ ...describePlace(view, node, ballot), acceptedBy: [...acceptedBy] }),
    )
  }

  #register(node: string, view: PositionView, ballot: Ballot, value: Uint8Array): ProposedView {
    const key = describeBallot(ballot)
    const known = view.proposed.get(key)
    if (known !== undefined) {
      this.#parts.referee.check(
        equalBytes(known.value, value),
        'PAX-5',
        'Two values were proposed at one ballot.',
        () => describePlace(view, node, ballot),
      )
      return known
    }
    const proposed = { ballot, value, acceptedBy: new Set<string>() }
    view.proposed.set(key, proposed)
    this.#checkAgainstChosen(node, view, proposed)
    return proposed
  }

  /** A proposal above a chosen ballot proposes the chosen value. */
  #checkAgainstChosen(node: string, view: PositionView, proposed: ProposedView): void {
    const { chosen } = view
    if (chosen === undefined || compareBallots(proposed.ballot, chosen.ballot) < 0) return
    const isNoOp = decodeEntry(proposed.value)?.transactions.length === 0
    this.#parts.referee.check(
      equalBytes(chosen.value, proposed.value),
      isNoOp ? 'LOG-5' : 'PAX-1',
      'Another value was proposed above the ballot at which one is chosen.',
      () => ({ ...describePlace(view, node, proposed.ballot), chosenAt: chosen.ballot }),
    )
  }

  #chosen(node: string, view: PositionView, proposed: ProposedView): void {
    const { referee, onChosen } = this.#parts
    const before = view.chosen
    referee.check(
      before === undefined || equalBytes(before.value, proposed.value),
      'PAX-1',
      'Two values are chosen at one position.',
      () => ({ ...describePlace(view, node, proposed.ballot), chosenAt: before?.ballot }),
    )
    if (before === undefined || compareBallots(proposed.ballot, before.ballot) < 0) {
      view.chosen = { ballot: proposed.ballot, value: proposed.value }
      for (const other of view.proposed.values()) this.#checkAgainstChosen(node, view, other)
    }
    if (before === undefined) onChosen(view)
  }

  #acceptLeaves(node: string, message: Accept): void {
    const { referee, book } = this.#parts
    const { group, position, ballot, value, previous } = message
    const view = book.of(group, position)
    referee.check(ballot.node === node, 'PAX-5', "A node proposes at another's ballot.", () =>
      describePlace(view, node, ballot),
    )
    const isNew = !view.proposed.has(describeBallot(ballot))
    this.#register(node, view, ballot, value)
    if (ballot.round === 0) {
      if (isNew) this.#checkBallotZero(node, view, ballot)
      const own = ensureAcceptor(view, node).accepted
      referee.check(
        position > 1 || isAtLeast(own?.ballot, ballot),
        'PAX-6',
        "At position 1 ballot zero left before its leader's own acceptance was durable.",
        () => describePlace(view, node, ballot),
      )
    }
    if (previous !== undefined) this.#toldAsChosen(node, group, position - 1, previous)
  }

  #checkBallotZero(node: string, view: PositionView, ballot: Ballot): void {
    const { referee, book } = this.#parts
    const { promised } = ensureAcceptor(view, node)
    referee.check(
      isAtLeast(ballot, promised),
      'PAX-6',
      'Ballot zero was used where a higher ballot was promised.',
      () => ({ ...describePlace(view, node, ballot), promised }),
    )
    if (view.position === 1) {
      referee.check(
        book.voters.firstFull(view.group, ballot.epoch) === node,
        'PAX-6',
        'Ballot zero at position 1 was used by another than the first full replica.',
        () => describePlace(view, node, ballot),
      )
      return
    }
    const before = book.of(view.group, view.position - 1).chosen
    const leader = before === undefined ? undefined : decodeEntry(before.value)?.nextLeader
    referee.check(
      leader?.node === ballot.node && leader.incarnation === ballot.incarnation,
      'PAX-6',
      'Ballot zero was used by another than the leader that the chosen entry before names.',
      () => ({ ...describePlace(view, node, ballot), named: leader }),
    )
  }

  /**
   * There must be a majority among the answers heard so far whose highest acceptance is this value,
   * or, for a free choice, that had accepted nothing.
   */
  #checkQuorum(node: string, view: PositionView, ballot: Ballot, value: Uint8Array): void {
    const { referee, book, coverage } = this.#parts
    const answers = [...this.#answersTo(node, view, ballot)]
      .filter(([voter]) => book.voters.isVoter(view, voter, ballot.epoch))
      .map(([, accepted]) => accepted)
    const needed = computeMajority(book.voters.of(view, ballot.epoch))
    referee.check(
      answers.length >= needed,
      'PAX-7',
      'A value was proposed without promises of a majority of voters.',
      () => ({ ...describePlace(view, node, ballot), promises: answers.length }),
    )
    const adopted = findHighest(
      answers.filter((one) => one !== undefined && equalBytes(one.value, value)),
    )
    if (adopted !== undefined && adopted.ballot.node !== node) coverage.count("adopted another's")
    const allowed = answers.filter((one) => isAtLeast(adopted?.ballot, one?.ballot))
    referee.check(
      answers.length < needed || allowed.length >= needed,
      'PAX-5',
      'The value proposed is not the one accepted at the highest ballot of any majority heard.',
      () => ({
        ...describePlace(view, node, ballot),
        answers: answers.map((one) => (one === undefined ? 'nothing' : describeBallot(one.ballot))),
        adopted: adopted === undefined ? 'nothing' : describeBallot(adopted.ballot),
      }),
    )
  }

  /** The answers that the proposer may have counted: those delivered to it, and its own disk's. */
  #answersTo(
    node: string,
    view: PositionView,
    ballot: Ballot,
  ): ReadonlyMap<string, BallotValue | undefined> {
    const key = describeBallot(ballot)
    const answers = new Map(view.heardByBallot.get(key))
    const own = ensureAcceptor(view, node).answerByBallot
    if (own.has(key)) answers.set(node, own.get(key))
    return answers
  }
}

function findHighest(list: readonly (BallotValue | undefined)[]): BallotValue | undefined {
  let highest: BallotValue | undefined
  for (const one of list) {
    if (one === undefined) continue
    if (highest === undefined || compareBallots(one.ballot, highest.ballot) > 0) highest = one
  }
  return highest
}
