/** Groups that send one another messages: nodes with replicas in memory, each delivering, and clients. */
import { groupOfBytes, type GroupId } from '../../src/base/ids.ts'
import { findTopicText } from '../../src/group/worklist-key.ts'
import { latin1 } from '../../src/base/bytes.ts'
import type { Client } from '../../src/client/client.ts'
import type { Clock } from '../../src/ports/clock.ts'
import { deliveryBounds, type DeliveryBounds } from '../../src/queues/limits.ts'
import { Delivery } from '../../src/queues/delivery.ts'
import type { HandleCall, QueueHandling } from '../../src/queues/handle-call.ts'
import { Sender, type SendOptions } from '../../src/queues/send.ts'
import type { Taken } from '../../src/queues/take.ts'
import type { RawTransaction } from '../../src/txn/raw-transaction.ts'
import { runTransaction, type Committed } from '../../src/txn/run.ts'
import { Sessions } from '../../src/txn/session.ts'
import { settled } from '../cells/kit.ts'
import { createCluster, type FakeCluster } from '../client/cluster.ts'

export const group = (name: string | number): GroupId => groupOfBytes(Buffer.from(`g${name}`))
export const bytes = (text: string): Uint8Array => new Uint8Array(Buffer.from(text))
export const textOf = ({ message }: Taken): string => Buffer.from(message.body).toString()

export interface Letter {
  readonly to: GroupId
  readonly body: string
  readonly queue?: string
  readonly options?: SendOptions
}

export class Post {
  readonly cluster: FakeCluster
  readonly client: Client
  readonly clock: Clock
  readonly deliveries: readonly Delivery[]
  readonly bugs: unknown[] = []
  readonly #intents: Sessions

  /** Every node takes all groups for its own: all of them deliver. */
  constructor(bounds: Partial<DeliveryBounds> = {}, seed = 1) {
    this.cluster = createCluster({ seed })
    const { bench } = this.cluster
    this.client = this.cluster.client()
    this.clock = bench.clockOf('post')
    this.#intents = new Sessions(this.clock, bench.random)
    this.deliveries = [...this.cluster.nodes].map(([name, { replica }]) => {
      const ports = { replica, clock: bench.clockOf(name), random: bench.random.fork(name) }
      const delivery = new Delivery(ports, { ...deliveryBounds, ...bounds }, (error) => {
        if (!(error instanceof Error && error.name === 'StoreError')) this.bugs.push(error)
      })
      delivery.start()
      return delivery
    })
  }

  transact<Value>(
    of: GroupId,
    run: (transaction: RawTransaction) => Promise<Value>,
  ): Promise<Committed<Value>> {
    const { random } = this.cluster.bench
    const options = { clock: this.clock, random, intents: this.#intents }
    return this.settle(runTransaction(this.client.groups, of, options, run))
  }

  async send(from: GroupId, letters: readonly Letter[]): Promise<void> {
    await this.transact(from, async (transaction) => {
      const sender = new Sender(transaction)
      for (const { to, body, queue = 'work', options } of letters) {
        sender.send(queue, to, bytes(body), options)
      }
    })
  }

  handle(
    call: Partial<HandleCall> & Pick<HandleCall, 'handle'>,
    by: Client = this.client,
  ): QueueHandling {
    return by.queues.consume({ queue: 'work', ...call })
  }

  settle<Value>(promise: Promise<Value>): Promise<Value> {
    return settled(this.cluster.bench.world, promise)
  }

  sleep(ms: number): Promise<void> {
    return this.cluster.bench.world.sleep(ms * 1000)
  }

  pass(ms: number): Promise<void> {
    return this.settle(this.sleep(ms))
  }

  /** Until `isSo`, at most a minute. */
  async until(isSo: () => boolean): Promise<void> {
    for (let i = 0; i < 600 && !isSo(); i++) await this.pass(100)
    if (!isSo()) throw new Error('what was waited for never came')
  }

  /** How many rows a group has on its worklist. */
  async worklistRows(of: GroupId): Promise<number> {
    const [node] = this.cluster.nodes.values()
    const rows = (await this.settle(node?.replica.scan(of, {}) ?? Promise.resolve([]))) ?? []
    return rows.filter(({ key }) => findTopicText(latin1(key)) !== undefined).length
  }
}
