/**
 * The data that `bench scale` fills a node with: accounts, each the root of an entity group, and a number of
 * entries in each. Keys of accounts are spread over all there are, as those of users would be, and come in no
 * order; the n-th one is the same in every run.
 */
import { defineSchema } from '../../schema/define.ts'
import { t } from '../../schema/property.ts'
import { table } from '../../schema/table.ts'
import type { Client } from '../../src/client/client.ts'
import { rootKey, type RootKey, type Tables } from '../../src/tables/tables.ts'
import { forEachBelow, randomText } from '../common.ts'

const account = table('Account', { account_id: t.integer() }).key('account_id').root()
const entry = table('Entry', { account_id: t.integer(), entry_id: t.integer(), body: t.string() })
  .key('account_id', 'entry_id')
  .in(account)
const schema = defineSchema('Scale', [account, entry])

/** Characters of the body, which no other row has, unless a bench asks for others. */
export const bodyChars = 100

/** Keys are numbers of 32 bits: no more than this are different. */
export const accountsMax: number = 2 ** 32

/** Entries that one account is filled with, in one transaction. */
export const entriesMax = 1_000

/** How long it took to fill the groups. */
export interface Filling {
  readonly seconds: number
  readonly perSecond: number
}

const fillsUnderWay = 256
const sayEvery = 10_000

/** An odd number: multiplied by it, all numbers of 32 bits change places, and neighbours part. */
const scatter = 0x9e3779b1

function scatterId(n: number): number {
  return Math.imul(n, scatter) >>> 0
}

/** Accounts and their entries by their numbers, which begin at 0. */
export class Accounts {
  readonly #tables: Tables<readonly [typeof account, typeof entry]>

  readonly #chars: number

  private constructor(tables: Tables<readonly [typeof account, typeof entry]>, chars: number) {
    this.#tables = tables
    this.#chars = chars
  }

  /** Gives the cluster the schema when it does not have it. `chars`: of a body, a multiple of 4. */
  static async open(client: Client, chars: number = bodyChars): Promise<Accounts> {
    await client.applySchema(schema.model)
    return new Accounts(await client.tables(schema), chars)
  }

  /** Puts one entry into each of the first accounts, many at once, and says now and then how far it is. */
  async fill(groups: number, signal: AbortSignal, say: (text: string) => void): Promise<Filling> {
    const began = performance.now()
    let done = 0
    await forEachBelow(groups, fillsUnderWay, signal, async (n) => {
      await this.put(n, 0, 1)
      done += 1
      if (done % sayEvery === 0) say(`${done} of ${groups} groups`)
    })
    signal.throwIfAborted()
    const seconds = (performance.now() - began) / 1_000
    return { seconds, perSecond: groups / seconds }
  }

  /** Commits `count` entries of the account from entry `from` on, whether or not they were there. */
  async put(n: number, from: number, count: number): Promise<void> {
    const account_id = scatterId(n)
    await this.#tables.transaction(buildKey(n), async (tx) => {
      for (let entry_id = from; entry_id < from + count; entry_id++) {
        await tx.put(entry, { account_id, entry_id, body: randomText(this.#chars) })
      }
    })
  }

  /** Reads an entry as it is now. Rejects when it is not there. */
  async read(n: number, entry_id: number): Promise<void> {
    const { value } = await this.#tables.read(buildKey(n), 'current', (rows) =>
      rows.get(entry, { account_id: scatterId(n), entry_id }),
    )
    if (value === undefined) throw new Error(`entry ${entry_id} of account ${n} is not there`)
  }
}

function buildKey(n: number): RootKey {
  return rootKey(account, { account_id: scatterId(n) })
}
