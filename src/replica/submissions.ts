/** Takes transactions of this node's edge: those of one turn and group come to the core together. */
import { assert } from '../base/assert.ts'
import type { GroupId } from '../base/ids.ts'
import type { Limits } from '../base/limits.ts'
import type { Outcome, Submission } from '../group/replica-port.ts'
import { encodeTransaction, formatIntent } from '../group/transaction.ts'
import type { GroupEvent } from '../replication/group.ts'
import type { Requests } from './requests.ts'
import { findExcess, toTransaction } from './submission-size.ts'
import { SubmitBatcher } from './submit-batcher.ts'

export interface SubmissionPorts {
  step(group: GroupId, event: GroupEvent): void
  /** Runs work whose failure ends the node. */
  guarded(work: () => void): void
}

export class Submissions {
  readonly #requests: Requests
  readonly #limits: Limits
  readonly #ports: SubmissionPorts
  readonly #batcher: SubmitBatcher

  constructor(requests: Requests, limits: Limits, ports: SubmissionPorts) {
    this.#requests = requests
    this.#limits = limits
    this.#ports = ports
    this.#batcher = new SubmitBatcher((group, arrived) =>
      ports.guarded(() => ports.step(group, { kind: 'submit', arrived })),
    )
  }

  /** Rejects with `too-large` where it is larger than a transaction may be. */
  submit(submission: Submission, timeoutMs: number): Promise<Outcome> {
    const { group, readPosition, reads, ranges } = submission
    if (this.#requests.count >= this.#limits.nodeQueueMax) {
      return Promise.resolve({ kind: 'overloaded', isOfNode: true })
    }
    const transaction = toTransaction(submission)
    const bytes = encodeTransaction(transaction)
    const excess = findExcess(submission, bytes, this.#limits)
    if (excess !== undefined) return Promise.reject(excess)
    assert(bytes.length > 0, 'LOG-3: a transaction without bytes')
    assert(readPosition >= 0, 'TXN-1: a transaction was read before the first position')
    const submitted = { transaction, bytes, readPosition, reads, ranges }
    return this.#requests.submission(
      timeoutMs,
      (request) => this.#batcher.add(group, { request, submitted }),
      (request) =>
        this.#ports.step(group, {
          kind: 'cancel-submit',
          intent: formatIntent(transaction),
          request,
        }),
    )
  }
}
