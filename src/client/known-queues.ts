/**
 * Whether there is a queue of some name. Queues are declared in programs, so nothing lists their names; but a
 * queue's full name begins with its schema, and a queue that has a message is there.
 */
import { StoreError } from '../base/errors.ts'
import { nearest } from '../base/suggest.ts'
import type { QueueSum } from '../queues/queue-sum.ts'
import type { SignalOptions } from '../txn/signalled.ts'

export interface KnownQueuesParts {
  /** Whether the cluster has a schema of this name. */
  hasSchema(name: string, options: SignalOptions): Promise<boolean>
  /** The queues that have something now. */
  list(options: SignalOptions): Promise<readonly QueueSum[]>
}

/** Names in a message. */
const shownMax = 10

export class KnownQueues {
  readonly #parts: KnownQueuesParts
  /** Queues that this client handles or has found. */
  readonly #queues = new Set<string>()
  /** Schemas that the cluster has; none goes away. */
  readonly #schemas = new Set<string>()

  constructor(parts: KnownQueuesParts) {
    this.#parts = parts
  }

  add(queue: string): void {
    this.#queues.add(queue)
  }

  /** Throws `not-found` for a queue that has nothing, and of which neither a schema nor this client knows. */
  async check(queue: string, options: SignalOptions): Promise<void> {
    const schema = queue.slice(0, Math.max(0, queue.indexOf('.')))
    const isNamed = schema !== '' && !queue.endsWith('.')
    if (this.#queues.has(queue) || (isNamed && this.#schemas.has(schema))) return
    if (isNamed && (await this.#parts.hasSchema(schema, options))) {
      this.#schemas.add(schema)
      return
    }
    const names = (await this.#parts.list(options)).flatMap((sum) => sum.queue ?? [])
    if (names.includes(queue)) return this.add(queue)
    const why = isNamed ? `the cluster has no schema ${schema}` : 'its name begins with no schema'
    const message = `there is no queue ${queue}: ${why}, and it has no message; ${adviceOf(queue, names)}`
    throw new StoreError('not-found', message)
  }
}

function adviceOf(queue: string, names: readonly string[]): string {
  const guess = nearest(queue, names)
  if (guess !== undefined) return `did you mean ${guess}?`
  if (names.length === 0) return 'a queue is called by both names, such as Bank.deposits'
  const more = names.length > shownMax ? ', …' : ''
  return `queues that have messages: ${names.slice(0, shownMax).join(', ')}${more}`
}
