/**
 * Passes operations on as they came, with the intents that came with them, to nodes that can carry
 * them out: to one after another until there is an answer or the time is up.
 */
import type { Replied, Operation } from '../wire/client-message.ts'
import type { Intents } from '../txn/intents.ts'
import type { OpenIntents } from '../txn/session.ts'
import { PutCall, ReadCall, type Call } from './call.ts'
import { Caller, defaultClientLimits, type ClientLimits, type ClientPorts } from './caller.ts'
import { CommitCall } from './commit-call.ts'

export class Forwarder {
  readonly #caller: Caller

  constructor(ports: ClientPorts, limits: Partial<ClientLimits> = {}) {
    this.#caller = new Caller(ports, { ...defaultClientLimits, ...limits })
  }

  /** Resolves with the answer, at the latest when the time is up; a put comes with its intents. */
  carryOut(operation: Operation, timeoutMs: number, intents?: Intents): Promise<Replied> {
    return this.#caller.carryOut(operation, callOf(operation, intents), timeoutMs)
  }

  /** Ends all calls and gives the connections back. Idempotent. */
  close(): Promise<void> {
    return this.#caller.close()
  }
}

function callOf(operation: Operation, intents: Intents | undefined): Call {
  switch (operation.kind) {
    case 'put':
      return new PutCall(operation, given(intents))
    case 'commit-group':
      return new CommitCall(operation)
    default:
      return new ReadCall(operation)
  }
}

/** Whoever opened them settles them. */
function given(intents: Intents | undefined): OpenIntents {
  const { sequences = [] } = intents ?? {}
  return {
    sequences,
    intents: (some) => ({ ...emptyIntents, ...intents, sequences: some }),
    settle: () => undefined,
  }
}

const emptyIntents: Intents = { session: '', sequences: [], floor: 0, expiresAt: 0 }
