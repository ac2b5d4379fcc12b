/**
 * A transaction's commit over its tries: sent again under the same intent until its outcome is known. A try
 * that was lost, or whose node does not know, leaves it unsure: then the outcome is `unknown` if no later try
 * learns what became of it, and nothing else (LOG-3).
 */
import type { Problem } from '../base/problem.ts'
import type { Outcome } from '../group/replica-port.ts'
import type { CommitGroup, PassGroup } from '../txn/group-operation.ts'
import type { Replied } from '../wire/client/client-message.ts'
import { isClosed, isDamageOf, isOwnError, mayBeRetried, notAnAnswer } from './call.ts'
import type { Call, Sending, Try } from './call.ts'

const unknown: Replied = {
  answer: { kind: 'commit-group', outcome: { kind: 'unknown' } },
  positions: [],
}

export class CommitCall implements Call {
  readonly #operation: CommitGroup | PassGroup
  /** Some try of it may have been, or may yet be, carried out. */
  #isUnsure = false
  #last: Replied | undefined

  /** A commit, or one that is passed on. */
  constructor(operation: CommitGroup | PassGroup) {
    this.#operation = operation
  }

  next(): Sending {
    return { operation: this.#operation }
  }

  take(result: Try): boolean {
    if (result.kind === 'unsent') return false
    if (result.kind === 'lost') {
      this.#isUnsure = true
      return false
    }
    const { answer } = result.answered
    switch (answer.kind) {
      case 'commit-group':
        return this.#onOutcome(result.answered, answer.outcome)
      case 'problem':
        return this.#onProblem(result.answered, answer.problem)
      default:
        this.#isUnsure = true
        this.#last = { answer: { kind: 'problem', problem: notAnAnswer }, positions: [] }
        return true
    }
  }

  #onOutcome(answered: Replied, outcome: Outcome): boolean {
    if (outcome.kind === 'unknown') {
      this.#isUnsure = true
      return false
    }
    this.#last = answered
    // There was no room, this time at this node. An earlier copy may still find some.
    if (outcome.kind === 'overloaded') return false
    return outcome.kind === 'expired' || this.#isFinal(outcome)
  }

  #onProblem(answered: Replied, refused: Problem): boolean {
    this.#last = answered
    if (isOwnError(refused)) {
      this.#isUnsure = true
      return true
    }
    if (!mayBeRetried(refused)) return !this.#isUnsure
    const { code } = refused
    if (code === 'unknown-outcome' || code === 'timeout' || isDamageOf(refused)) {
      this.#isUnsure = true
    }
    return false
  }

  finish(why: Problem): Replied {
    const last = this.#last
    const { answer } = last ?? {}
    if (last !== undefined && answer?.kind === 'commit-group' && this.#isFinal(answer.outcome)) {
      return last
    }
    if (this.#isUnsure) return unknown
    if (last !== undefined && !isClosed(last.answer)) return last
    return { answer: { kind: 'problem', problem: why }, positions: [] }
  }

  /**
   * Whether the outcome is that of every copy. A conflict with a write that is named is: each node that
   * validates another copy has applied that write. One with a read that is too old for this node is not:
   * another node may remember more. Nor is `expired`: a copy may have taken effect in time, and where a clock
   * has run ahead it is forgotten with its session, while its client still asks.
   */
  #isFinal(outcome: Outcome): boolean {
    switch (outcome.kind) {
      case 'committed':
        return true
      case 'expired':
        return !this.#isUnsure
      case 'conflict':
        return outcome.key !== undefined || !this.#isUnsure
      default:
        return false
    }
  }
}
