/**
 * `bench schemaless`: cells through three daemons on loopback, with all that is built on them.
 *
 * - `put`, `indexed put`: a new cell a call, in a datastore without and in one with an index, in
 *   alternating rounds.
 * - `lag`: one indexed put at a time; from its answer until a query of the index shows it.
 * - `triggers`: one worker in this process and a handler that does nothing, on a backlog of cells in some shards.
 */
import { randomUUID } from 'node:crypto'
import { shardOf } from '../../src/client/row-shard.ts'
import type { Client } from '../../src/client/client.ts'
import { defineTriggers } from '../../src/triggers/definition.ts'
import { runTriggers, triggerAdmin } from '../../src/triggers/run.ts'
import { BenchError, machine, openClient, type Machine } from '../common.ts'
import { countingSeconds } from '../commits.ts'
import { summarizeLoad, runLoops, type LoadResult } from '../load.ts'
import { clusterCpuSeconds, pause, startCluster, type BenchCluster } from '../processes.ts'
import { allShardsOf } from '../../src/cells/shard.ts'

export interface SchemalessOptions {
  readonly clients: number
  /** Of each round. */
  readonly seconds: number
  readonly rounds: number
  /** Cells that the triggers find, and in how many shards. */
  readonly backlog: number
  readonly shards: number
}

export interface PutRun extends Omit<LoadResult, 'elapsedMs'> {
  readonly work: 'put' | 'indexed put'
  readonly round: number
  readonly perSecond: number
  /** CPU seconds of all nodes per 1,000 puts; what follows in the index is in it as far as it is done. */
  readonly cpuPer1000: number
}

export interface SchemalessReport {
  readonly bench: 'schemaless'
  readonly date: string
  readonly machine: Machine
  readonly options: SchemalessOptions
  readonly isQuick: boolean
  readonly puts: readonly PutRun[]
  readonly lag: Omit<LoadResult, 'elapsedMs'>
  readonly triggers: {
    readonly cells: number
    readonly seconds: number
    readonly perSecond: number
  }
}

const index = 'by_rider'
/** The datastore has had no writer, so no node goes by earlier definitions of its indexes. */
const graceMs = 0
const lagPauseMs = 20
const lagMsMax = 10_000
const batch = 500
/** Until a worker has heard that its trigger is paused. */
const heartbeatsMs = 3_000
const handledMsMax = 600_000
const body = { city: 'Berlin', kilometres: 4.2, note: 'x'.repeat(40) }

export async function benchSchemaless(
  options: SchemalessOptions,
  signal: AbortSignal,
  say: (text: string) => void,
): Promise<SchemalessReport> {
  const cluster = await startCluster()
  try {
    const client = await openClient(cluster.urls, signal)
    await declare(client)
    const puts = await measurePuts(cluster, client, options, signal, say)
    const lag = await measureLag(client, options.seconds, signal)
    say(`lag of the index: p50 ${lag.p50Ms.toFixed(1)}, p99 ${lag.p99Ms.toFixed(1)} ms`)
    const triggers = await measureTriggers(client, options, signal)
    await client.close()
    const isQuick = options.seconds * options.rounds < countingSeconds
    const date = new Date().toISOString()
    return {
      ...{ bench: 'schemaless', date, machine: machine(), options, isQuick },
      ...{ puts, lag, triggers },
    }
  } finally {
    await cluster.stop()
  }
}

async function declare(client: Client): Promise<void> {
  const indexes = client.cells('indexed').indexes
  const fields = [
    { field: 'rider', type: 'uuid' },
    { field: 'kilometres', type: 'double' },
  ]
  await indexes.apply({
    ...{ table: index, datastore: 'indexed' },
    column_defs: [{ column_key: 'BASE', fields }],
  })
  await indexes.build(index, { graceMs })
}

async function measurePuts(
  cluster: BenchCluster,
  client: Client,
  { clients, seconds, rounds }: SchemalessOptions,
  signal: AbortSignal,
  say: (text: string) => void,
): Promise<PutRun[]> {
  const runs: PutRun[] = []
  // The first round compiles what is hot, and is thrown away.
  for (let round = 0; round <= rounds; round++) {
    for (const work of ['put', 'indexed put'] as const) {
      const datastore = work === 'put' ? 'plain' : 'indexed'
      const used = await clusterCpuSeconds(cluster)
      const { elapsedMs, ...result } = await runLoops(
        clients,
        seconds,
        () => put(client, datastore, randomUUID()),
        signal,
      )
      signal.throwIfAborted()
      const perSecond = result.operations / (elapsedMs / 1000)
      const cpuPer1000 = (((await clusterCpuSeconds(cluster)) - used) / result.operations) * 1000
      if (round > 0) runs.push({ work, round, ...result, perSecond, cpuPer1000 })
      say(`${work}, round ${round}: ${perSecond.toFixed(0)}/s`)
    }
  }
  return runs
}

async function put(client: Client, datastore: string, rowKey: string): Promise<void> {
  const cell = { rowKey, column: 'BASE', refKey: 0, body: { ...body, rider: rowKey } }
  await client.cells(datastore).put(cell)
}

async function measureLag(
  client: Client,
  seconds: number,
  signal: AbortSignal,
): Promise<Omit<LoadResult, 'elapsedMs'>> {
  const query = client.cells('indexed').index(index)
  const latenciesMs: number[] = []
  let failures = 0
  const began = performance.now()
  while (performance.now() - began < seconds * 1000) {
    const rider = randomUUID()
    await put(client, 'indexed', rider)
    const answered = performance.now()
    let isShown = false
    while (!isShown && performance.now() - answered < lagMsMax) {
      isShown = (await query.query({ rider })).items.length > 0
    }
    if (isShown) latenciesMs.push(performance.now() - answered)
    else failures += 1
    await pause(lagPauseMs)
    signal.throwIfAborted()
  }
  const { elapsedMs: _, ...result } = summarizeLoad(
    latenciesMs,
    failures,
    performance.now() - began,
  )
  return result
}

async function measureTriggers(
  client: Client,
  { backlog, shards: count }: SchemalessOptions,
  signal: AbortSignal,
): Promise<SchemalessReport['triggers']> {
  const handled = new Set<string>()
  const service = defineTriggers({
    ...{ service: 'bench', datastore: 'triggered' },
    triggers: [
      {
        ...{ name: 'count', column: 'BASE' },
        handle: async ({ rowKey }) => void handled.add(rowKey),
      },
    ],
  })
  const shards = new Set(allShardsOf('triggered').slice(0, count))
  await load(client, oneOfEach(shards))
  const running = runTriggers(client, service, { shards: [...shards] })
  try {
    // Each shard is claimed once; only the time after that counts.
    await until(() => handled.size >= count, signal)
    const admin = triggerAdmin(client, service.service)
    await admin.pause('count')
    await pause(heartbeatsMs)
    await load(
      client,
      Array.from({ length: backlog }, () => rowIn(shards)),
    )
    await admin.resume('count')
    await until(() => handled.size > count, signal)
    const began = performance.now()
    await until(() => handled.size >= count + backlog, signal)
    const seconds = (performance.now() - began) / 1000
    return { cells: backlog, seconds, perSecond: backlog / seconds }
  } finally {
    await running.stop()
  }
}

function rowIn(shards: ReadonlySet<number>): string {
  for (;;) {
    const rowKey = randomUUID()
    if (shards.has(shardOf(rowKey))) return rowKey
  }
}

function oneOfEach(shards: ReadonlySet<number>): readonly string[] {
  const rows = new Map<number, string>()
  while (rows.size < shards.size) {
    const rowKey = rowIn(shards)
    rows.set(shardOf(rowKey), rowKey)
  }
  return [...rows.values()]
}

async function load(client: Client, rows: readonly string[]): Promise<void> {
  for (let from = 0; from < rows.length; from += batch) {
    const some = rows.slice(from, from + batch)
    const cells = some.map((rowKey) => ({ rowKey, column: 'BASE', refKey: 0, body }))
    const outcomes = await client.cells('triggered').putMany(cells)
    if (outcomes.some(({ kind }) => kind !== 'ok')) throw new BenchError('a put failed')
  }
}

async function until(isDone: () => boolean, signal: AbortSignal): Promise<void> {
  const end = performance.now() + handledMsMax
  while (!isDone()) {
    signal.throwIfAborted()
    if (performance.now() > end) throw new BenchError('the triggers do not come to their end')
    await pause(5)
  }
}
