/**
 * Acceptors, as their disks show them.
 *
 * PAX-2  The promised ballot never goes down, over crashes too.
 * PAX-3  A ballot is accepted only at or above the promise.
 * PAX-4  What an answer claims is durable when the answer leaves.
 */
import { describeBallot, equalBallots } from '../../src/paxos/ballot.ts'
import type { CopiedAcceptance } from '../../src/log/flush.ts'
import type { LogRecord } from '../../src/replication/effect.ts'
import type { Accepted, Message, Promised, Refused } from '../../src/replication/message.ts'
import {
  ensureAcceptor,
  isAtLeast,
  isSameValue,
  describePlace,
  type PositionBook,
  type PositionView,
} from './position-book.ts'
import type { BallotValue } from '../../src/paxos/acceptor.ts'
import type { EpochChecker } from './epoch-checker.ts'
import type { LeftRecord } from './flush-records.ts'
import type { ProposalChecker } from './proposal-checker.ts'
import type { Referee } from './referee.ts'

export class AcceptorChecker {
  readonly #book: PositionBook
  readonly #referee: Referee
  readonly #proposals: ProposalChecker
  readonly #epochs: Pick<EpochChecker, 'epochOf'>

  constructor(
    book: PositionBook,
    referee: Referee,
    proposals: ProposalChecker,
    epochs: Pick<EpochChecker, 'epochOf'>,
  ) {
    this.#epochs = epochs
    this.#book = book
    this.#referee = referee
    this.#proposals = proposals
  }

  /** A record has become durable at `node`, after all those before it. */
  onDurable(node: string, record: LeftRecord): void {
    const view = this.#book.of(record.group, record.position)
    if (record.kind === 'copied') this.#copied(node, view, record)
    else if (record.kind === 'promise') this.#promised(node, view, record)
    else if (record.kind === 'accept') this.#accepted(node, view, record)
    else this.#learned(node, view, record)
  }

  /** A value learnt as chosen counts as accepted at its ballot: the acceptor answers with it. */
  #learned(
    node: string,
    view: PositionView,
    record: LogRecord & { readonly kind: 'chosen' },
  ): void {
    const { ballot, value } = record
    this.#proposals.onRecordedAsChosen(node, view, ballot, value)
    const acceptor = ensureAcceptor(view, node)
    acceptor.hasChosen = true
    if (value === undefined || isAtLeast(acceptor.accepted?.ballot, ballot)) return
    acceptor.accepted = { ballot, value }
    if (!isAtLeast(acceptor.promised, ballot)) acceptor.promised = ballot
  }

  #promised(node: string, view: PositionView, record: LeftRecord): void {
    const acceptor = ensureAcceptor(view, node)
    const { ballot } = record
    this.#referee.check(
      isAtLeast(ballot, acceptor.promised),
      'PAX-2',
      'A promise on the disk went back.',
      () => ({ ...describePlace(view, node, ballot), promised: acceptor.promised }),
    )
    acceptor.promised = ballot
    if (record.isOfLostValue === true) acceptor.lost = ballot
    acceptor.answerByBallot.set(describeBallot(ballot), acceptor.accepted)
  }

  #accepted(
    node: string,
    view: PositionView,
    record: LogRecord & { readonly kind: 'accept' },
  ): void {
    const acceptor = ensureAcceptor(view, node)
    const { ballot, value } = record
    this.#referee.check(
      isAtLeast(ballot, acceptor.promised),
      'PAX-3',
      'A ballot below the promise was accepted.',
      () => ({ ...describePlace(view, node, ballot), promised: acceptor.promised }),
    )
    this.#referee.check(
      this.#book.voters.isVoter(view, node, ballot.epoch),
      'PAX-7',
      'A node that does not vote accepted.',
      () => describePlace(view, node, ballot),
    )
    acceptor.promised = ballot
    acceptor.accepted = { ballot, value }
    this.#proposals.onAccepted(node, view, ballot, value)
  }

  /** A copy says what the acceptor had accepted last: a start may know of nothing else. */
  #copied(node: string, view: PositionView, { ballot, value }: CopiedAcceptance): void {
    const acceptor = ensureAcceptor(view, node)
    const { accepted, lost } = acceptor
    // Of what a crash has cut off the ballot is left: a copy says so, and that its value is not known.
    if (value === undefined && lost !== undefined && equalBallots(lost, ballot)) return
    const isCarried =
      value !== undefined &&
      ballot.epoch < this.#epochs.epochOf(node) &&
      !isAtLeast(accepted?.ballot, ballot)
    if (isCarried) return this.#carried(node, view, { ballot, value })
    this.#referee.check(
      accepted !== undefined && (value === undefined || isSameValue(accepted, { ballot, value })),
      'LOG-7',
      'A copy of an acceptance is of another one than the last.',
      () => ({ ...describePlace(view, node, ballot), accepted: accepted?.ballot }),
    )
  }

  /** It took up what a voter of the epoch before had accepted: its own answers tell of that from now on. */
  #carried(node: string, view: PositionView, { ballot, value }: BallotValue): void {
    const proposed = view.proposed.get(describeBallot(ballot))
    this.#referee.check(
      proposed !== undefined && isSameValue(proposed, { ballot, value }),
      'MOVE-5',
      'An acceptance is carried that nobody proposed.',
      () => describePlace(view, node, ballot),
    )
    const acceptor = ensureAcceptor(view, node)
    acceptor.accepted = { ballot, value }
    if (!isAtLeast(acceptor.promised, ballot)) acceptor.promised = ballot
  }

  /** A message leaves `node`: its claims must be on the disk by now. */
  onSent(node: string, message: Message): void {
    switch (message.kind) {
      case 'promised':
        return this.#promiseLeaves(node, message)
      case 'accepted':
        return this.#acceptanceLeaves(node, message)
      case 'refused':
        return this.#refusalLeaves(node, message)
      default:
        return undefined
    }
  }

  #promiseLeaves(node: string, message: Promised): void {
    const view = this.#book.of(message.group, message.position)
    const acceptor = ensureAcceptor(view, node)
    const { ballot, accepted } = message
    this.#referee.check(
      isAtLeast(acceptor.promised, ballot),
      'PAX-4',
      'A promise left before it was durable.',
      () => ({ ...describePlace(view, node, ballot), durable: acceptor.promised }),
    )
    const answer = acceptor.answerByBallot.get(describeBallot(ballot))
    this.#referee.check(
      isAtLeast(accepted?.ballot, answer?.ballot) ||
        (accepted !== undefined && isSameValue(accepted, answer)),
      'PAX-4',
      'A promise left out what its acceptor had accepted.',
      () => ({
        ...describePlace(view, node, ballot),
        told: accepted?.ballot,
        durable: answer?.ballot,
      }),
    )
  }

  #acceptanceLeaves(node: string, message: Accepted): void {
    const view = this.#book.of(message.group, message.position)
    const { accepted } = ensureAcceptor(view, node)
    const { ballot } = message
    this.#referee.check(
      isAtLeast(accepted?.ballot, ballot),
      'PAX-4',
      'An acceptance left before it was durable.',
      () => ({ ...describePlace(view, node, ballot), durable: accepted?.ballot }),
    )
  }

  #refusalLeaves(node: string, message: Refused): void {
    const view = this.#book.of(message.group, message.position)
    const { promised } = ensureAcceptor(view, node)
    this.#referee.check(
      isAtLeast(promised, message.promised),
      'PAX-4',
      'A refusal told of a promise before it was durable.',
      () => ({ ...describePlace(view, node, message.promised), durable: promised }),
    )
  }
}
