/**
 * Load with a record of every promise: writers put cells with keys of their own through one client.
 * The ledger keeps the acknowledged writes, and those that may have happened, for the reckoning.
 */
import { randomUUID } from 'node:crypto'
import { StoreError } from '../../src/base/errors.ts'
import { toStoreError } from '../../src/base/problem.ts'
import { connect } from '../../src/client/connect.ts'
import { shardOf } from '../../src/client/row-shard.ts'
import { patienceMs } from './harness.ts'
import { allShardsOf } from '../../src/cells/shard.ts'

export const datastore = 'ledger'

export interface Entry {
  readonly rowKey: string
  readonly body: { readonly writer: number; readonly number: number }
}

export interface Ledger {
  readonly acknowledged: Entry[]
  /** Told neither yes nor no: they may be there or not. */
  readonly unknown: Entry[]
  readonly failures: Map<string, number>
}

/** Between two puts of a writer: hundreds of puts a second, and time for others on the machine. */
const restMs = 15

/** Puts cells until `isOver`, with `writers` of them at work at once. */
export async function writeUntil(
  urls: readonly string[],
  isOver: (ledger: Ledger) => boolean,
  writers = 16,
): Promise<Ledger> {
  const ledger: Ledger = { acknowledged: [], unknown: [], failures: new Map() }
  const client = await connect({ endpoints: urls, timeoutMs: patienceMs })
  const cells = client.cells(datastore)
  const write = async (writer: number): Promise<void> => {
    for (let number = 0; !isOver(ledger); number++) {
      const entry: Entry = { rowKey: randomUUID(), body: { writer, number } }
      try {
        await cells.put({
          rowKey: entry.rowKey,
          column: 'BASE',
          refKey: 0,
          body: { ...entry.body },
        })
        ledger.acknowledged.push(entry)
      } catch (error) {
        if (!(error instanceof StoreError)) throw error
        ledger.failures.set(error.code, (ledger.failures.get(error.code) ?? 0) + 1)
        if (error.retry === 'check-first') ledger.unknown.push(entry)
      }
      await pause(restMs)
    }
  }
  try {
    await Promise.all(Array.from({ length: writers }, (_, writer) => write(writer)))
  } finally {
    await client.close()
  }
  return ledger
}

/**
 * Puts once more those that may have happened: a put that equals one before repeats it. All of them are acknowledged
 * then. Throws where a put failed for another reason than that its outcome stayed unknown.
 */
export async function settleUnknown(urls: readonly string[], ledger: Ledger): Promise<void> {
  const others = [...ledger.failures].filter(([code]) => code !== 'unknown-outcome')
  if (others.length > 0) throw new Error(`puts failed: ${others.join('; ')}`)
  const client = await connect({ endpoints: urls, timeoutMs: patienceMs })
  try {
    for (const entry of ledger.unknown.splice(0)) {
      const { rowKey, body } = entry
      await client.cells(datastore).put({ rowKey, column: 'BASE', refKey: 0, body: { ...body } })
      ledger.acknowledged.push(entry)
    }
  } finally {
    await client.close()
  }
}

/** Every cell of the datastore at one replica alone, by row key; and the log of each shard. */
export interface Contents {
  readonly bodies: Map<string, unknown>
  /** Row keys in the order of added ids, which are checked to be dense, by shard. */
  readonly logs: Map<number, readonly string[]>
}

export interface ContentsOptions {
  /** The datastore; absent: the ledger's. */
  readonly name?: string
  /** Of the shards of these rows alone, which takes far less time; absent: of all shards. */
  readonly rows?: readonly { readonly rowKey: string }[]
}

function shardsOf(rows: readonly { readonly rowKey: string }[]): readonly number[] {
  return [...new Set(rows.map(({ rowKey }) => shardOf(rowKey)))]
}

/** Shards whose logs one request asks for. */
const shardsAtOnce = 128
/** How long the reader asks again for those that a busy node has not come to. */
const readMsMax = patienceMs

export async function contentsAt(
  url: string,
  { name = datastore, rows }: ContentsOptions = {},
): Promise<Contents> {
  const client = await connect({ endpoints: [url], follow: false, timeoutMs: patienceMs })
  const cells = client.cells(name)
  const contents: Contents = { bodies: new Map(), logs: new Map() }
  const untilMs = performance.now() + readMsMax
  try {
    const shards = rows === undefined ? allShardsOf(name) : shardsOf(rows)
    let places = shards.map((shard) => ({ shard, addedId: 0 }))
    while (places.length > 0) {
      const next: typeof places = []
      for (let from = 0; from < places.length; from += shardsAtOnce) {
        const some = places.slice(from, from + shardsAtOnce)
        next.push(...(await readPages(cells, some, contents, untilMs)))
      }
      places = next
    }
    return contents
  } finally {
    await client.close()
  }
}

type ShardReader = Pick<ReturnType<Awaited<ReturnType<typeof connect>>['cells']>, 'shardLogs'>

interface Place {
  readonly shard: number
  readonly addedId: number
}

/** A page of each of these logs; gives the places of those that may have more. */
async function readPages(
  cells: ShardReader,
  places: readonly Place[],
  { bodies, logs }: Contents,
  untilMs: number,
): Promise<Place[]> {
  const asked = places.map((place) => ({ kind: 'after', ...place }) as const)
  const pages = await cells.shardLogs(asked, { limit: 1000, read: 'snapshot' })
  return pages.flatMap((outcome, i) => {
    const { shard = -1 } = places[i] ?? {}
    if (outcome.kind === 'problem') {
      const error = toStoreError(outcome.problem)
      if (error.retry === 'never' || performance.now() > untilMs) throw error
      return places.slice(i, i + 1)
    }
    const { items: page, cursor: next, asOf } = outcome.value
    const log = [...(logs.get(shard) ?? [])]
    for (const cell of page) {
      if (cell.addedId !== log.length + 1) throw new Error(`shard ${shard}: added ids have a gap`)
      log.push(cell.rowKey)
      bodies.set(`${cell.rowKey}/${cell.column}/${cell.refKey}`, cell.body)
    }
    if (log.length > 0) logs.set(shard, log)
    return asOf === undefined ? [{ shard, addedId: next }] : []
  })
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
