/**
 * The client process of a comparison: `clients` loops through one client library, of puts of a small
 * row under one of a million keys, which rest on nothing that is there, or of current reads of rows
 * that are. The rows lie in a given number of entity groups. Talks as `../load-client.ts` does.
 */
import { defineSchema } from '../../schema/define.ts'
import { t } from '../../schema/property.ts'
import { table } from '../../schema/table.ts'
import { connect } from '../../src/client/connect.ts'
import { rootKey } from '../../src/tables/tables.ts'
import { runLoops } from '../load.ts'
import { loads, say } from '../load-messages.ts'
import type { Load } from '../load-process.ts'
import { bytesValues } from '../values.ts'

const place = table('Place', { place_id: t.integer() }).key('place_id').root()
const item = table('Item', { place_id: t.integer(), item_id: t.integer(), value: t.bytes() })
  .key('place_id', 'item_id')
  .in(place)
const schema = defineSchema('Bench', [place, item])

const [urls = '', groupCount = '4096', valueBytes = '100'] = process.argv.slice(2)
const groups = Number(groupCount)
const keyCount = 1_000_000
/** Rows that are read. */
const rowCount = 1_000
const nextValue = bytesValues(Number(valueBytes))

const client = await connect({ endpoints: urls.split(',') })
await client.applySchema(schema.model)
const tables = await client.tables(schema)

function buildKey(n: number): { readonly place_id: number; readonly item_id: number } {
  return { place_id: n % groups, item_id: Math.floor(n / groups) }
}

function put(n: number): Promise<unknown> {
  const key = buildKey(n)
  const group = rootKey(place, { place_id: key.place_id })
  // Drawn once: a transaction may run again.
  const value = nextValue()
  return tables.transaction(group, (tx) => tx.put(item, { ...key, value }))
}

async function read(n: number): Promise<void> {
  const key = buildKey(n)
  const group = rootKey(place, { place_id: key.place_id })
  const found = await tables.read(group, 'current', (rows) => rows.get(item, key))
  // A read that finds nothing costs less than one that does.
  if (found.value === undefined) throw new Error('a row that was written is not there')
}

let next = 0
const operations: Readonly<Record<Load['operation'], () => Promise<unknown>>> = {
  commits: () => put(Math.floor(Math.random() * keyCount)),
  reads: () => read(next++ % rowCount),
}

await Promise.all(Array.from({ length: rowCount }, (_, n) => put(n)))
say({ kind: 'ready' })
for await (const { clients, seconds, warmUpSeconds, operation } of loads()) {
  const run = operations[operation]
  await runLoops(clients, warmUpSeconds, run)
  say({ kind: 'warm' })
  say({ kind: 'result', ...(await runLoops(clients, seconds, run)) })
}
await client.close()
