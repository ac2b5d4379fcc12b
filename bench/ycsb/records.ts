/**
 * The records of YCSB as tables of an application: users, each the root of a group, and their posts
 * inside it. A record is a key and ten fields of 100 characters. Workloads that ask for single records
 * ask for users; scans, which run over neighbours, ask for the posts of one user. All reads are current.
 */
import { defineSchema } from '../../schema/define.ts'
import { t } from '../../schema/property.ts'
import { table } from '../../schema/table.ts'
import type { Client } from '../../src/client/client.ts'
import { rootKey, type RootKey, type Tables } from '../../src/tables/tables.ts'
import { randomText } from '../common.ts'
import { hash64 } from './generators.ts'

const fields = {
  field0: t.string(),
  field1: t.string(),
  field2: t.string(),
  field3: t.string(),
  field4: t.string(),
  field5: t.string(),
  field6: t.string(),
  field7: t.string(),
  field8: t.string(),
  field9: t.string(),
}

const fieldCount = 10
const fieldChars = 100

const user = table('User', { user_id: t.string(), ...fields })
  .key('user_id')
  .root()
const post = table('Post', { user_id: t.string(), post_id: t.integer(), ...fields })
  .key('user_id', 'post_id')
  .in(user)
const schema = defineSchema('Ycsb', [user, post])

/** Posts of one user, on average: several scans long. */
const postsPerUser = 1_000

/** The key of YCSB's record `n`: its number hashed, so that keys come in no order. */
export function userId(n: number): string {
  return `user${hash64(n)}`
}

function userKey(user_id: string): RootKey {
  return rootKey(user, { user_id })
}

/** How many users, from number 0 on, `posts` posts belong to. */
export function authorCount(posts: number): number {
  return Math.max(1, Math.round(posts / postsPerUser))
}

export interface PostName {
  /** The number of the user whose it is. */
  readonly author: number
  /** 53 bits of a hash. */
  readonly postId: number
}

/** Record `n` as a post, where there are `authors` authors. */
export function postName(n: number, authors: number): PostName {
  const hash = hash64(n)
  return { author: Number(hash % BigInt(authors)), postId: Number(hash >> 10n) }
}

/** Users and posts in a cluster. Calls reject with StoreErrors, and when a record is not there. */
export class Records {
  readonly #tables: Tables<readonly [typeof user, typeof post]>

  private constructor(tables: Tables<readonly [typeof user, typeof post]>) {
    this.#tables = tables
  }

  /** Gives the cluster the schema when it does not have it. */
  static async open(client: Client): Promise<Records> {
    await client.applySchema(schema.model)
    return new Records(await client.tables(schema))
  }

  async putUser(n: number): Promise<void> {
    const user_id = userId(n)
    await this.#tables.transaction(userKey(user_id), (tx) =>
      tx.put(user, { user_id, ...newFields() }),
    )
  }

  /** Posts of one author, in one transaction. */
  async putPosts(author: number, postIds: readonly number[]): Promise<void> {
    const user_id = userId(author)
    await this.#tables.transaction(userKey(user_id), async (tx) => {
      for (const post_id of postIds) await tx.put(post, { user_id, post_id, ...newFields() })
    })
  }

  async readUser(n: number): Promise<void> {
    const user_id = userId(n)
    const { value } = await this.#tables.read(userKey(user_id), 'current', (rows) =>
      rows.get(user, { user_id }),
    )
    if (value === undefined) throw new Error(`user ${n} is not there`)
  }

  /** Changes one field, drawn from all. Gives how often the transaction was run. */
  async updateUser(n: number): Promise<number> {
    const user_id = userId(n)
    const patch = { [`field${Math.floor(Math.random() * fieldCount)}`]: randomText(fieldChars) }
    const { runs } = await this.#tables.transaction(userKey(user_id), (tx) =>
      tx.update(user, { user_id }, patch),
    )
    return runs
  }

  /** Gives how often the transaction was run. */
  async insertPost({ author, postId: post_id }: PostName): Promise<number> {
    const user_id = userId(author)
    const row = { user_id, post_id, ...newFields() }
    const { runs } = await this.#tables.transaction(userKey(user_id), (tx) => tx.insert(post, row))
    return runs
  }

  /** The post and those after it, at most `limit`; gives how many there were. */
  async scanPosts({ author, postId }: PostName, limit: number): Promise<number> {
    const user_id = userId(author)
    const range = { user_id, post_id: { gte: postId } }
    const { value } = await this.#tables.read(userKey(user_id), 'current', async (rows) => {
      let page = await rows.scan(post, range, { limit })
      let count = page.items.length
      while (page.cursor !== undefined && count < limit) {
        page = await rows.scan(post, range, { limit: limit - count, cursor: page.cursor })
        count += page.items.length
      }
      return count
    })
    if (value === 0) throw new Error(`post ${postId} of user ${author} is not there`)
    return value
  }
}

type Fields = { readonly [Name in keyof typeof fields]: string }

/** Values of all ten fields, which no other record has. */
function newFields(): Fields {
  const text = randomText(fieldCount * fieldChars)
  const value = (n: number): string => text.slice(n * fieldChars, (n + 1) * fieldChars)
  return {
    field0: value(0),
    field1: value(1),
    field2: value(2),
    field3: value(3),
    field4: value(4),
    field5: value(5),
    field6: value(6),
    field7: value(7),
    field8: value(8),
    field9: value(9),
  }
}
