/**
 * The knowledge of an omniscient observer of each (group, position): every acceptor's durable record as its
 * disk holds it, every value proposed, and the value chosen. Knows nothing of the code under test but its
 * messages and its log records.
 */
import { equalBytes } from '../../src/base/bytes.ts'
import { compareBallots, describeBallot, type Ballot } from '../../src/paxos/ballot.ts'
import type { BallotValue } from '../../src/paxos/acceptor.ts'
import type { Placement } from '../../src/placement/placement.ts'
import { VoterBook } from './voter-book.ts'

export interface AcceptorView {
  promised: Ballot | undefined
  accepted: BallotValue | undefined
  /** Of an acceptance whose value a crash has cut off. */
  lost: Ballot | undefined
  /** Its log says which value is chosen here. */
  hasChosen: boolean
  /** The accepted value at its promise of a ballot, by the ballot: its answer to a prepare. */
  readonly answerByBallot: Map<string, BallotValue | undefined>
}

export interface ProposedView {
  readonly ballot: Ballot
  readonly value: Uint8Array
  /** Voters whose durable record has held it. */
  readonly acceptedBy: Set<string>
}

export interface PositionView {
  readonly group: string
  readonly position: number
  readonly acceptors: Map<string, AcceptorView>
  readonly proposed: Map<string, ProposedView>
  /** Promises that reached the proposer of a ballot, by ballot and sender. */
  readonly heardByBallot: Map<string, Map<string, BallotValue | undefined>>
  /** At the lowest ballot known to be chosen. */
  chosen: BallotValue | undefined
}

export class PositionBook {
  readonly #views = new Map<string, Map<number, PositionView>>()
  readonly voters: VoterBook

  constructor(placement: Placement) {
    this.voters = new VoterBook(placement)
  }

  get groups(): readonly string[] {
    return [...this.#views.keys()]
  }

  of(group: string, position: number): PositionView {
    let positions = this.#views.get(group)
    if (positions === undefined) {
      positions = new Map<number, PositionView>()
      this.#views.set(group, positions)
    }
    let view = positions.get(position)
    if (view === undefined) {
      view = {
        group,
        position,
        acceptors: new Map<string, AcceptorView>(),
        proposed: new Map<string, ProposedView>(),
        heardByBallot: new Map(),
        chosen: undefined,
      }
      positions.set(position, view)
    }
    return view
  }

  /** The node's disks are lost: nothing is known any more of what they held. */
  forget(node: string): void {
    for (const positions of this.#views.values()) {
      for (const { acceptors } of positions.values()) acceptors.delete(node)
    }
  }

  /** All positions of a group that anything is known of, in order. */
  listPositions(group: string): readonly PositionView[] {
    const views = [...(this.#views.get(group)?.values() ?? [])]
    return views.sort((a, b) => a.position - b.position)
  }
}

export function ensureAcceptor(view: PositionView, node: string): AcceptorView {
  let acceptor = view.acceptors.get(node)
  if (acceptor === undefined) {
    acceptor = {
      promised: undefined,
      accepted: undefined,
      lost: undefined,
      hasChosen: false,
      answerByBallot: new Map(),
    }
    view.acceptors.set(node, acceptor)
  }
  return acceptor
}

/** Whether `ballot` is at least `other`; an absent one is below all. */
export function isAtLeast(ballot: Ballot | undefined, other: Ballot | undefined): boolean {
  if (other === undefined) return true
  return ballot !== undefined && compareBallots(ballot, other) >= 0
}

export function isSameValue(a: BallotValue | undefined, b: BallotValue | undefined): boolean {
  return a === undefined || b === undefined ? a === b : equalBytes(a.value, b.value)
}

/** Where and who, for a report. */
export function describePlace(
  view: PositionView,
  node: string,
  ballot?: Ballot,
): Readonly<Record<string, unknown>> {
  return {
    group: Buffer.from(view.group, 'latin1').toString('hex'),
    position: view.position,
    node,
    ...(ballot === undefined ? {} : { ballot: describeBallot(ballot) }),
  }
}
