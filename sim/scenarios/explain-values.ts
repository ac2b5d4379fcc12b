/**
 * Values of entries as an explanation tells them: a letter each, and what the letter stands for.
 */
import { present } from '../../src/base/assert.ts'
import { fromLatin1 } from '../../src/base/bytes.ts'
import { groupOfBytes } from '../../src/base/ids.ts'
import { decodeTuple } from '../../src/base/tuple.ts'
import { cellVersion, shardOfGroup } from '../../src/cells/cell-table.ts'
import { decodeEntry } from '../../src/replication/entry.ts'
import type { Mutation, Transaction } from '../../src/group/transaction.ts'
import { compileSchema } from '../../src/tables/compile.ts'
import { groupContext } from '../../src/tables/group-context.ts'
import { decodeRowKey } from '../../src/tables/row-key.ts'
import { digestValue } from '../cluster/narrator.ts'

const cellTable = 'Cell'
const schema = compileSchema(cellVersion)
const shardTable = present(schema.tables.get('Shard'), 'explain: shards are a table')
/** A group as its owner names it: a shard by its key, others by the parts of theirs. */
export function describeGroup(group: string): string {
  const bytes = fromLatin1(group)
  const parts = decodeTuple(bytes)
  if (parts !== undefined) return parts.join('/')
  const shard = shardOfGroup(groupOfBytes(bytes))
  return shard === undefined ? group : `shard ${shard.datastore}/${shard.shard}`
}

/** Keys are alike in all of them. */
const anyShard = groupContext(schema, shardTable, { datastore: '', shard: 0 })

const lettersInAlphabet = 26
/** The transactions of an entry that the text shows. */
const transactionsToldMax = 4
const rowCharactersTold = 8

/** Values by letters, in the order in which they appear. */
export class Letters {
  readonly #letterByMark = new Map<string, string>()
  readonly #bytesByLetter = new Map<string, Uint8Array>()

  of(value: Uint8Array): string {
    const mark = digestValue(value)
    const known = this.#letterByMark.get(mark)
    if (known !== undefined) return known
    const count = this.#letterByMark.size
    const round = Math.floor(count / lettersInAlphabet)
    const letter = String.fromCharCode(65 + (count % lettersInAlphabet))
    const name = round === 0 ? letter : `${letter}${round}`
    this.#letterByMark.set(mark, name)
    this.#bytesByLetter.set(name, value)
    return name
  }

  /** The entry that each letter stands for. */
  legend(): readonly string[] {
    return [...this.#bytesByLetter].map(([letter, bytes]) => `${letter}  ${describeEntry(bytes)}`)
  }
}

function describeEntry(bytes: Uint8Array): string {
  const entry = decodeEntry(bytes)
  if (entry === undefined) return `${bytes.length} bytes that are no entry`
  const { position, nextLeader, transactions } = entry
  const next = `#${position + 1} is led by ${nextLeader.node} in incarnation ${nextLeader.incarnation}`
  if (transactions.length === 0) return `#${position}: a no-op; ${next}`
  const told = transactions.slice(0, transactionsToldMax).map(describeTransaction)
  const more = transactions.length - told.length
  return `#${position}: ${told.join('; ')}${more > 0 ? `; and ${more} more` : ''}; ${next}`
}

function describeTransaction({ session, sequence, mutations }: Transaction): string {
  const writes = mutations.flatMap((mutation) => describeMutation(mutation) ?? [])
  const intent = `intent ${session.slice(0, rowCharactersTold)}/${sequence}`
  return `${writes.length === 0 ? `${mutations.length} rows` : writes.join(', ')} (${intent})`
}

/** Of a cell its name; its place in the shard's log goes without saying. */
function describeMutation({ key }: Mutation): string | undefined {
  const row = decodeRowKey(anyShard, key)
  if (row?.table.name !== cellTable) return printable(key)
  const [, , rowKey, column, refKey] = row.values
  return `put of row ${String(rowKey).slice(0, rowCharactersTold)} ${String(column)}/${String(refKey)}`
}

/** Rows that are no cells have keys that begin with text; those of tables do not. */
function printable(key: Uint8Array): string | undefined {
  const text = /^[!-~]+/.exec(Buffer.from(key).toString('latin1'))?.[0]
  return text === undefined ? undefined : `row ${JSON.stringify(text)}`
}
