/**
 * What `bench scale` fills a node with: root rows, each an entity group of its own. Their keys are
 * spread over all there are, as those of users would be, and come in no order; the n-th one is the
 * same in every run.
 */
import { defineSchema } from '../../schema/define.ts'
import { t } from '../../schema/property.ts'
import { table } from '../../schema/table.ts'
import type { Client } from '../../src/client/client.ts'
import { rootKey, type RootKey, type Tables } from '../../src/tables/open.ts'
import { randomText } from '../common.ts'

const account = table('Account', { account_id: t.integer(), body: t.string() })
  .key('account_id')
  .root()
const schema = defineSchema('Scale', [account])

/** Characters of the body, which no other row has. */
export const bodyChars = 100

/** Keys are numbers of 32 bits: no more than this are different. */
export const accountsMax: number = 2 ** 32

/** An odd number: multiplied by it, all numbers of 32 bits change places, and neighbours part. */
const scatter = 0x9e3779b1

function idOf(n: number): number {
  return Math.imul(n, scatter) >>> 0
}

/** Accounts by their numbers, which begin at 0. */
export class Accounts {
  readonly #tables: Tables<readonly [typeof account]>

  private constructor(tables: Tables<readonly [typeof account]>) {
    this.#tables = tables
  }

  /** Gives the cluster the schema when it does not have it. */
  static async open(client: Client): Promise<Accounts> {
    await client.applySchema(schema.model)
    return new Accounts(await client.tables(schema))
  }

  /** Commits the row, whether or not it was there. */
  async put(n: number): Promise<void> {
    await this.#tables.transaction(keyOf(n), (tx) =>
      tx.put(account, { account_id: idOf(n), body: randomText(bodyChars) }),
    )
  }

  /** Reads the row as it is now. Rejects when it is not there. */
  async read(n: number): Promise<void> {
    const { value } = await this.#tables.read(keyOf(n), 'current', (rows) =>
      rows.get(account, { account_id: idOf(n) }),
    )
    if (value === undefined) throw new Error(`account ${n} is not there`)
  }
}

function keyOf(n: number): RootKey {
  return rootKey(account, { account_id: idOf(n) })
}
