/** Ballots under small numbers, 0, 1, 2 …: the log names the same few of them over and over. */
import { present } from '../base/assert.ts'
import type { NodeId } from '../base/ids.ts'
import { describeBallot, equalBallots, type Ballot } from '../paxos/ballot.ts'

export class BallotTable {
  readonly #ballots: Ballot[] = []
  readonly #numberByText = new Map<string, number>()
  /** The last number that was looked up, by node: nearly always the next one, too. */
  readonly #lastByNode = new Map<NodeId, number>()

  /** The ballot asked for last, which mostly comes again as the same object, and its number. */
  #latest: Ballot | undefined
  #latestNumber = 0

  get ballots(): readonly Ballot[] {
    return this.#ballots
  }

  /** The ballot's number; a new one when it was never seen. */
  findNumber(ballot: Ballot): number {
    if (ballot !== this.#latest) {
      this.#latestNumber = this.#find(ballot)
      this.#latest = ballot
    }
    return this.#latestNumber
  }

  #find(ballot: Ballot): number {
    const last = this.#lastByNode.get(ballot.node)
    if (last !== undefined && equalBallots(this.at(last), ballot)) return last
    const text = describeBallot(ballot)
    let number = this.#numberByText.get(text)
    if (number === undefined) {
      number = this.#ballots.push(ballot) - 1
      this.#numberByText.set(text, number)
    }
    this.#lastByNode.set(ballot.node, number)
    return number
  }

  at(number: number): Ballot {
    return present(this.#ballots[number], 'replica: a ballot number that was never given')
  }
}
