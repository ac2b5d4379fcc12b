/**
 * Delivers what groups have sent, at a node: reads a page of a group's outbox, runs a transaction on
 * each group that something is for, and deletes what these have acknowledged. Another node may do the
 * same at the same time; a group receives each message once (`receive.ts`).
 */
import { assert } from '../base/assert.ts'
import { afterWorklist, worklistPrefix } from '../group/worklist-key.ts'
import type { GroupId } from '../base/ids.ts'
import type { Clock } from '../ports/clock.ts'
import type { Random } from '../ports/random.ts'
import type { LocalReplica, Row } from '../group/replica-port.ts'
import { WorklistWorker, type Served } from '../worklist/worklist-worker.ts'
import type { GroupPort, View } from '../group/group-port.ts'
import { keyAfter } from '../txn/key-range.ts'
import { LocalGroups } from '../txn/local-groups.ts'
import type { RawTransaction } from '../txn/raw-transaction.ts'
import { runTransaction } from '../txn/run.ts'
import { Sessions } from '../txn/session.ts'
import type { DeliveryBounds } from './limits.ts'
import { decodeOutbox } from './message.ts'
import { outboxTopic } from './names.ts'
import { receive, type Delivered } from './receive.ts'

export interface DeliveryPorts {
  readonly replica: LocalReplica
  /** All that may be sent to; the groups of this node, when it is absent. */
  readonly groups?: GroupPort
  readonly clock: Clock
  readonly random: Random
}

/** Counts of a node's deliveries since it started. */
export interface DeliveryCounts {
  /** Messages received that had not been received before. */
  delivered: number
  /** Messages that had been received already. */
  repeated: number
  /** Looks at an outbox after which something had to be tried again. */
  failures: number
}

/** A message in an outbox, and the key of its row there. */
interface Pending extends Delivered {
  readonly key: Uint8Array
}

export class Delivery {
  readonly counts: DeliveryCounts = { delivered: 0, repeated: 0, failures: 0 }
  readonly #ports: DeliveryPorts
  readonly #bounds: DeliveryBounds
  readonly #groups: GroupPort
  readonly #intents: Sessions
  readonly #worker: WorklistWorker
  #isStopping = false

  /** `onFailed`: told of what is no StoreError, and so a bug. */
  constructor(ports: DeliveryPorts, bounds: DeliveryBounds, onFailed: (error: unknown) => void) {
    const { replica, clock, random } = ports
    this.#ports = ports
    this.#bounds = bounds
    this.#groups = ports.groups ?? new LocalGroups(replica)
    this.#intents = new Sessions(clock, random)
    this.#worker = new WorklistWorker({
      topic: outboxTopic,
      worklist: replica.worklist,
      clock,
      random,
      bounds: bounds.worklist,
      serve: (group) => this.#serve(group),
      onFailed: (_group, error) => {
        this.counts.failures += 1
        onFailed(error)
      },
    })
  }

  /** Groups whose outbox waits to be looked at, or is. */
  get busyGroups(): number {
    return this.#worker.busyGroups
  }

  start(): void {
    this.#worker.start()
  }

  /** Begins nothing more; resolves when what is under way has ended. */
  stop(): Promise<void> {
    this.#isStopping = true
    return this.#worker.stop()
  }

  /** All of the outbox as of now, page by page. */
  async #serve(sender: GroupId): Promise<Served> {
    const view = await this.#groups.view(sender, { kind: 'snapshot' }, this.#bounds.timeoutMs)
    const failed = new Map<GroupId, unknown>()
    let from = worklistPrefix(outboxTopic)
    let count = 0
    let delivered = 0
    for (let isEnd = false; !isEnd && !this.#isStopping;) {
      const { rows, isWhole } = await this.#page(sender, view, from)
      const last = rows.at(-1)
      if (last !== undefined) from = keyAfter(last.key)
      count += rows.length
      isEnd = isWhole && rows.length < this.#bounds.pageRows
      delivered += await this.#deliverAll(sender, rows.map(decodePending), failed)
    }
    const [error] = failed.values()
    if (failed.size > 0 && delivered === 0) throw error
    if (failed.size > 0) return { kind: 'partly', error }
    // The part that it did not look at may be full of messages.
    if (this.#isStopping) return { kind: 'again' }
    return count === 0 ? { kind: 'empty', position: view.position } : { kind: 'again' }
  }

  #page(
    sender: GroupId,
    view: View,
    gte: Uint8Array,
  ): Promise<{ readonly rows: readonly Row[]; readonly isWhole: boolean }> {
    const range = { gte, lt: afterWorklist(outboxTopic), limit: this.#bounds.pageRows }
    return this.#groups.scan(sender, view, range, this.#bounds.timeoutMs)
  }

  /** How many were delivered. What could not be delivered to a group holds up all that is for it. */
  async #deliverAll(
    sender: GroupId,
    messages: readonly Pending[],
    failed: Map<GroupId, unknown>,
  ): Promise<number> {
    const byReceiver = new Map<GroupId, Pending[]>()
    for (const message of messages) {
      const own = byReceiver.get(message.receiver) ?? []
      own.push(message)
      byReceiver.set(message.receiver, own)
    }
    const done: Uint8Array[] = []
    const work = [...byReceiver].filter(([receiver]) => !failed.has(receiver)).values()
    const deliverNext = async (): Promise<void> => {
      for (const [receiver, own] of work) {
        await this.#deliver(sender, receiver, own, done).catch((error: unknown) => {
          failed.set(receiver, error)
        })
      }
    }
    await Promise.all(Array.from({ length: this.#bounds.receiversAtOnce }, deliverNext))
    if (done.length > 0) await this.#delete(sender, done)
    return done.length
  }

  /** The keys of what was acknowledged go to `done`, also when something behind it fails. */
  async #deliver(
    sender: GroupId,
    receiver: GroupId,
    messages: readonly Pending[],
    done: Uint8Array[],
  ): Promise<void> {
    for (const some of splitIntoPortions(messages, this.#bounds)) {
      const count = await this.#transact(receiver, (transaction) =>
        receive(transaction, sender, some),
      )
      this.counts.delivered += count
      this.counts.repeated += some.length - count
      for (const { key } of some) done.push(key)
    }
  }

  async #delete(sender: GroupId, keys: readonly Uint8Array[]): Promise<void> {
    await this.#transact(sender, async (transaction) => {
      for (const key of keys) transaction.delete(key)
    })
  }

  async #transact<Value>(
    group: GroupId,
    run: (transaction: RawTransaction) => Promise<Value>,
  ): Promise<Value> {
    const { clock, random } = this.#ports
    const { timeoutMs } = this.#bounds
    const options = { clock, random, intents: this.#intents, timeoutMs, from: 'snapshot' } as const
    return (await runTransaction(this.#groups, group, options, run)).value
  }
}

function decodePending(row: Row): Pending {
  return { sentAt: row.timestamp, key: row.key, ...decodeOutbox(row) }
}

/** In their order, each as much as one transaction may receive. */
function* splitIntoPortions(
  messages: readonly Pending[],
  { receivedMax, receivedBytesMax }: DeliveryBounds,
): Generator<readonly Pending[], void> {
  let some: Pending[] = []
  let bytes = 0
  for (const message of messages) {
    const isFull = some.length >= receivedMax || bytes + message.body.length > receivedBytesMax
    if (isFull && some.length > 0) {
      yield some
      some = []
      bytes = 0
    }
    assert(message.number > (some.at(-1)?.number ?? 0), 'QUE-3: an outbox is read in its order')
    some.push(message)
    bytes += message.body.length
  }
  if (some.length > 0) yield some
}
