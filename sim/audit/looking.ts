/**
 * The state at the end, read for the reckoning: logs, entries of the index, offsets of triggers.
 */
import { splitIntoChunks, mapConcurrently } from '../../src/base/concurrency.ts'
import { toStoreError } from '../../src/base/problem.ts'

import type { Client } from '../../src/client/client.ts'
import { connect } from '../../src/client/connect.ts'
import type { IndexWhere } from '../../src/client/cell-indexes.ts'
import type { ReplicaReadLevel } from '../../src/group/replica-port.ts'
import { triggerAdmin } from '../../src/triggers/run.ts'
import type { Logs, SeenCell, SeenEntry, Span } from './reckoning.ts'
import { datastore, indexName, tripColumn } from './trips.ts'
import { allShardsOf } from '../../src/cells/shard.ts'

const readTimeoutMs = 30_000
const shardsAtOnce = 64
const batchesAtOnce = 4
const zonesAtOnce = 8

/** The logs of these shards through one node; with `snapshot`, as it alone has them. */
export async function logsAt(
  url: string,
  read: ReplicaReadLevel,
  shards: readonly number[] = allShardsOf(datastore),
): Promise<Logs> {
  const client = await connect({ endpoints: [url], follow: false, timeoutMs: readTimeoutMs })
  try {
    const logs: Map<number, readonly SeenCell[]> = new Map()
    let places: readonly Place[] = shards.map((shard) => ({ shard, addedId: 0 }))
    while (places.length > 0) {
      const next = await mapConcurrently(
        splitIntoChunks(places, shardsAtOnce),
        batchesAtOnce,
        (some) => readPages(client, some, read, logs),
      )
      places = next.flat()
    }
    return logs
  } finally {
    await client.close()
  }
}

interface Place {
  readonly shard: number
  readonly addedId: number
}

/** Adds a page of each of these logs; gives the places of those that may have more. */
async function readPages(
  client: Client,
  places: readonly Place[],
  read: ReplicaReadLevel,
  logs: Map<number, readonly SeenCell[]>,
): Promise<Place[]> {
  const asked = places.map((place) => ({ kind: 'after', ...place }) as const)
  const pages = await client.cells(datastore).shardLogs(asked, { read })
  return pages.flatMap((outcome, i) => {
    const { shard = -1 } = places[i] ?? {}
    if (outcome.kind === 'problem') throw toStoreError(outcome.problem)
    const { items: cells, cursor: next, asOf } = outcome.value
    if (cells.length > 0) {
      logs.set(shard, [...(logs.get(shard) ?? []), ...cells.map((cell) => ({ ...cell, shard }))])
    }
    return asOf === undefined ? [{ shard, addedId: next }] : []
  })
}

/** All entries of these zones. */
export async function readEntries(
  client: Client,
  zones: readonly number[],
): Promise<ReadonlyMap<number, readonly SeenEntry[]>> {
  const found = await mapConcurrently(zones, zonesAtOnce, (zone) => query(client, { zone }))
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
    for (const { rowKey, fields } of page.items) {
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
