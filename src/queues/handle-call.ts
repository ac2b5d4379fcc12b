/** How a client library, or a test, starts a handler: either knows nodes to ask. */
import type { GroupId } from '../base/ids.ts'
import type { RawTransaction } from '../txn/raw-transaction.ts'
import type { ConsumeOptions } from './limits.ts'
import type { HandledCounts } from './handler.ts'
import type { Taken } from './take.ts'

export interface HandleCall extends ConsumeOptions {
  readonly queue: string
  /** Awaited before each taking of messages; when it fails, none of them has. */
  prepare?(): Promise<void> | undefined
  /** In the transaction that takes the messages; it may be called again for the same ones. */
  handle(transaction: RawTransaction, messages: readonly Taken[]): Promise<void>
  /** They were handled: what handled them is committed. Told in the process that did it. */
  onHandled?(group: GroupId, messages: readonly Taken[]): void
  onFailed?(group: GroupId, error: unknown): void
  /** Stops the handler, as `stop` does. */
  readonly signal?: AbortSignal
}

/** A handler at work. */
export interface QueueHandling {
  readonly counts: Readonly<HandledCounts>
  /** Takes nothing more, and resolves when what is under way has ended. */
  stop(): Promise<void>
}

export interface QueueSource {
  /** Begins to handle a queue's messages in all groups, until it is stopped. */
  consume(call: HandleCall): QueueHandling
}
