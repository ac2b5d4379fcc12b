/**
 * Do the replicas agree? The demonstration reads each one alone, without the others (`read=snapshot`), for
 * every cell that was written and for the log of every shard.
 */
import { asBuffer, sha256 } from '../base/bytes.ts'
import { splitIntoChunks, mapConcurrently } from '../base/concurrency.ts'
import { canonicalJson, type Json } from '../cells/body.ts'
import { allShardsOf } from '../cells/shard.ts'
import type { Cells } from '../client/cells.ts'
import type { CellSink, LoadCell } from './cells-load-run.ts'
import { presentCells } from './cells-tail.ts'

/** The cells that are to be found, by row key: a hash of each body. */
export type Expected = Map<string, string>

/** The sink, with a note of every cell that is there after it. */
export function recording(sink: CellSink, expected: Expected): CellSink {
  return {
    put: async (batch) => {
      const answers = await sink.put(batch)
      for (const [i, { rowKey, body }] of batch.entries()) {
        const kind = answers[i]?.kind
        if (kind === 'created' || kind === 'already-there') expected.set(rowKey, bodyHash(body))
      }
      return answers
    },
  }
}

function bodyHash(body: Json): string {
  const canonical = canonicalJson(body)
  return canonical.kind === 'ok' ? sha256(canonical.text).toString('hex', 0, 16) : ''
}

/** Each of another shard, mostly: few enough for a slow machine to do in a call's time. */
const cellsPerRequest = 50
const requestsInFlight = 4

/** How many of the expected cells this replica has, with the body they were written with. */
export async function countFound(
  cells: Cells,
  column: string,
  expected: Expected,
): Promise<number> {
  const rowKeys = [...expected.keys()]
  let found = 0
  await mapConcurrently(
    splitIntoChunks(rowKeys, cellsPerRequest),
    requestsInFlight,
    async (some) => {
      const items = some.map((rowKey) => ({ rowKey, column, refKey: 0 }))
      for (const outcome of await cells.getMany(items, { read: 'snapshot' })) {
        const cell = outcome.kind === 'ok' ? outcome.value : undefined
        if (cell !== undefined && bodyHash(cell.body) === expected.get(cell.rowKey)) found += 1
      }
    },
  )
  return found
}

/** The logs of all shards at one replica, in short. */
export interface LogDigest {
  readonly cells: number
  /** Shards that hold a cell. */
  readonly shards: number
  /** Of every cell with its place, in order. */
  readonly hash: string
}

export async function digestLogs(cells: Cells): Promise<LogDigest> {
  const parts: string[] = []
  const found = new Set<number>()
  const wanted = { shards: allShardsOf(cells.datastore), after: undefined, since: undefined }
  for await (const { shard, cell } of presentCells(cells, wanted, 'snapshot')) {
    const { addedId, createdAt, rowKey, column, refKey, body } = cell
    found.add(shard)
    parts.push([shard, addedId, createdAt, rowKey, column, refKey, bodyHash(body)].join(' '))
  }
  const hash = asBuffer(sha256(parts.join('\n'))).toString('hex', 0, 8)
  return { cells: parts.length, shards: found.size, hash }
}

/** Puts cells in bounded batches; the counts of what became of them. */
export async function putAll(
  sink: CellSink,
  cells: readonly LoadCell[],
): Promise<{
  readonly created: number
  readonly alreadyThere: number
  readonly slowestMs: number
}> {
  const counts = { created: 0, alreadyThere: 0, slowestMs: 0 }
  await mapConcurrently(
    splitIntoChunks(cells, cellsPerRequest),
    requestsInFlight,
    async (batch) => {
      const startedMs = performance.now()
      for (const answer of await sink.put(batch)) {
        if (answer.kind === 'failed') throw answer.error
        if (answer.kind === 'created') counts.created += 1
        if (answer.kind === 'already-there') counts.alreadyThere += 1
      }
      counts.slowestMs = Math.max(counts.slowestMs, performance.now() - startedMs)
    },
  )
  return counts
}
