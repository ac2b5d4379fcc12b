/** Accounts of real processes, each the root of an entity group, and writes that count: each adds one to an account. */
import { rootKey, StoreError, type Client } from '../../src/index.ts'
import { defineSchema } from '../../schema/define.ts'
import { t } from '../../schema/property.ts'
import { table } from '../../schema/table.ts'
import { patienceMs } from './harness.ts'

const account = table('Account', { name: t.string(), amount: t.integer() }).key('name').root()
const accounts = defineSchema('Accounts', [account])

export async function applyAccounts(client: Client): Promise<void> {
  await client.applySchema(accounts)
}

/** The replica set that has the account's group. */
export async function setOf(client: Client, name: string): Promise<string> {
  const db = await client.tables(accounts)
  return client.groups.locate(db.group(rootKey(account, { name })), patienceMs)
}

async function addOne(client: Client, name: string): Promise<void> {
  const db = await client.tables(accounts)
  await db.transaction(rootKey(account, { name }), async (tx) => {
    const before = await tx.get(account, { name })
    await tx.put(account, { name, amount: (before?.amount ?? 0) + 1 })
  })
}

async function amountAt(client: Client, name: string): Promise<number | undefined> {
  const db = await client.tables(accounts)
  const { value } = await db.read(rootKey(account, { name }), 'current', (rows) =>
    rows.get(account, { name }),
  )
  return value?.amount
}

/** Writes of a test, and those whose outcome is not known: on a busy machine a call may end before that. */
export class CountedWrites {
  /** Acknowledged, by the name of the account. */
  readonly written: Map<string, number> = new Map()
  readonly #unsure = new Map<string, number>()

  async write(client: Client, name: string): Promise<void> {
    try {
      await addOne(client, name)
      count(this.written, name)
    } catch (error) {
      if (!(error instanceof StoreError) || error.code !== 'unknown-outcome') throw error
      count(this.#unsure, name)
    }
  }

  /** The accounts in which a write took effect less or more often than once, as the client sees them. */
  async listWrong(client: Client): Promise<readonly string[]> {
    const wrong: string[] = []
    for (const [name, least] of this.written) {
      const amount = (await amountAt(client, name)) ?? 0
      const most = least + (this.#unsure.get(name) ?? 0)
      if (amount < least || amount > most) wrong.push(`${name}: ${amount}, and not ${least}`)
    }
    return wrong
  }
}

function count(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1)
}
