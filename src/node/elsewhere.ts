/**
 * What another replica set holds, as this node passes it on: over links to the nodes there, as a
 * client of theirs, under the intents that came with a request.
 */
import { assert } from '../base/assert.ts'
import { problem } from '../base/problem.ts'
import type { Answered, CallOptions, CellOperation, CellService } from '../cells/operation.ts'
import { Forwarder } from '../client/forwarder.ts'
import type { ClientPorts } from '../client/caller.ts'
import { isGroupOperation, type GroupAnswer, type GroupOperation } from '../txn/group-operation.ts'
import { Sessions } from '../txn/session.ts'
import type { Reply } from '../wire/client-message.ts'

export class Elsewhere implements CellService {
  readonly #forwarder: Forwarder
  /** For puts that came without intents: this node stands for whoever asks. */
  readonly #sessions: Sessions

  constructor(ports: ClientPorts) {
    this.#forwarder = new Forwarder(ports)
    this.#sessions = new Sessions(ports.clock, ports.random)
  }

  async execute(operation: CellOperation, options: CallOptions): Promise<Answered> {
    if (operation.kind !== 'put' || options.intents !== undefined) {
      return this.#forward(operation, options)
    }
    const open = this.#sessions.openMany(operation.items.length)
    const intents = open.intents(open.sequences)
    const answered = await this.#forward(operation, { ...options, intents })
    const { answer } = answered
    const isKnown = answer.kind === 'put' && !answer.items.some(isUnknown)
    open.settle(isKnown)
    return answered
  }

  async #forward(operation: CellOperation, options: CallOptions): Promise<Answered> {
    const { timeoutMs, intents } = options
    const { answer, ...rest } = await this.#forwarder.carryOut(operation, timeoutMs, intents)
    if (answer.kind !== 'problem' && answer.kind !== operation.kind) return notAnswered
    assert(isOfCells(answer), 'node: an answer is of the kind of its operation')
    return { answer, ...rest }
  }

  async askGroup(operation: GroupOperation, timeoutMs: number): Promise<GroupAnswer> {
    const { answer } = await this.#forwarder.carryOut(operation, timeoutMs)
    if (answer.kind === 'problem' || isGroupOperation(answer)) return answer
    return { kind: 'problem', problem: notAnAnswer }
  }

  close(): Promise<void> {
    return this.#forwarder.close()
  }
}

const notAnAnswer = problem('corrupt', 'a node of another replica set answered something else')

const notAnswered: Answered = { answer: { kind: 'problem', problem: notAnAnswer }, positions: [] }

function isOfCells(answer: Reply): answer is Answered['answer'] {
  return answer.kind === 'problem' || (answer.kind !== 'status' && !isGroupOperation(answer))
}

function isUnknown(outcome: {
  readonly kind: string
  readonly problem?: { readonly code: string }
}): boolean {
  return outcome.problem?.code === 'unknown-outcome'
}
