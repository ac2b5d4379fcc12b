/** What is there at the end, read for the reckoning: logs, entries of the index, offsets of triggers. */
import { shardCount } from '../../src/cells/shard.ts'
import { mapBounded } from '../../src/cells/pool.ts'
import type { Client } from '../../src/client/client.ts'
import { connect } from '../../src/client/connect.ts'
import type { IndexWhere } from '../../src/client/cell-indexes.ts'
import type { ReadLevel } from '../../src/replica/local-replica.ts'
import { triggerAdmin } from '../../src/triggers/run.ts'
import type { Logs, SeenCell, SeenEntry, Span } from './reckoning.ts'
import { datastore, indexName, tripColumn } from './trips.ts'

const readTimeoutMs = 30_000
const shardsAtOnce = 64
const zonesAtOnce = 8

/** The logs of all shards through one node; with `any`, as it alone has them. */
export async function logsAt(url: string, read: ReadLevel): Promise<Logs> {
  const client = await connect({ nodes: [url], timeoutMs: readTimeoutMs })
  try {
    const shards = Array.from({ length: shardCount }, (_, shard) => shard)
    const logs = await mapBounded(shards, shardsAtOnce, (shard) => logOf(client, shard, read))
    return new Map(logs.flatMap((log, shard) => (log.length === 0 ? [] : [[shard, log]])))
  } finally {
    await client.close()
  }
}

async function logOf(client: Client, shard: number, read: ReadLevel): Promise<readonly SeenCell[]> {
  const log: SeenCell[] = []
  for (let after = 0; ;) {
    const page = await client.cells(datastore).shardLog(shard, { after, read })
    if (page.cells.length === 0) return log
    log.push(...page.cells.map((cell) => ({ ...cell, shard })))
    after = page.next
  }
}

/** All entries of these zones. */
export async function entriesOf(
  client: Client,
  zones: readonly number[],
): Promise<ReadonlyMap<number, readonly SeenEntry[]>> {
  const found = await mapBounded(zones, zonesAtOnce, (zone) => query(client, { zone }))
  return new Map(zones.map((zone, i) => [zone, found[i] ?? []]))
}

export function entriesIn(client: Client, { zone, from, to }: Span): Promise<readonly SeenEntry[]> {
  return query(client, { zone, at: { gte: from, lt: to } })
}

async function query(client: Client, where: IndexWhere): Promise<readonly SeenEntry[]> {
  const index = client.cells(datastore).index(indexName)
  const entries: SeenEntry[] = []
  for (let cursor: string | undefined; ;) {
    const page = await index.query(where, cursor === undefined ? {} : { cursor })
    for (const { rowKey, fields } of page.entries) {
      entries.push({ rowKey, at: Number(fields['at']), total: Number(fields['total']) })
    }
    cursor = page.cursor
    if (cursor === undefined) return entries
  }
}

/** How many trips these logs have that the trigger has not passed. */
export async function unhandled(
  client: Client,
  { service, trigger }: { readonly service: string; readonly trigger: string },
  logs: Logs,
): Promise<number> {
  const shards = await triggerAdmin(client, service, readTimeoutMs).shards(trigger)
  const afters = new Map(shards.map(({ shard, after }) => [shard, after]))
  return [...logs].reduce((sum, [shard, cells]) => {
    const after = afters.get(shard) ?? 0
    const left = cells.filter((one) => one.column === tripColumn && one.addedId > after)
    return sum + left.length
  }, 0)
}
