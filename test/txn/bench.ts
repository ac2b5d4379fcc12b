/** Transactions of one group in memory. */
import { groupOfBytes, type GroupId } from '../../src/base/ids.ts'
import type { Random } from '../../src/ports/random.ts'
import type { RawTransaction } from '../../src/txn/raw-transaction.ts'
import { runTransaction, type Committed, type TransactionOptions } from '../../src/txn/run.ts'
import { Sessions } from '../../src/txn/session.ts'
import { MemoryPort } from './memory-port.ts'
import { TestClock, testRandom } from './test-ports.ts'

export const group: GroupId = groupOfBytes(Buffer.from('g'))
export const b = (text: string): Uint8Array => new Uint8Array(Buffer.from(text))
export const text = (bytes: Uint8Array | undefined): string => Buffer.from(bytes ?? []).toString()

export class Bench {
  readonly port: MemoryPort = new MemoryPort()
  readonly clock: TestClock = new TestClock()
  readonly random: Random = testRandom()
  readonly intents: Sessions = new Sessions(this.clock, this.random)

  run<Value>(
    run: (tx: RawTransaction) => Promise<Value>,
    options: Partial<TransactionOptions> = {},
  ): Promise<Committed<Value>> {
    const { clock, random, intents } = this
    return runTransaction(this.port, group, { clock, random, intents, ...options }, run)
  }

  async put(...keys: readonly string[]): Promise<void> {
    await this.run(async (tx) => {
      for (const key of keys) tx.put(b(key), b(`${key}0`))
    })
  }

  /** Runs `other` once, just before the next commit that is not its own. */
  interrupt(other: () => Promise<unknown>): void {
    this.port.beforeCommit = async () => {
      this.port.beforeCommit = async () => undefined
      await other()
      return undefined
    }
  }

  rows(): readonly string[] {
    return this.port.rowsOf(group).map(({ key, value }) => `${text(key)}=${text(value)}`)
  }
}
