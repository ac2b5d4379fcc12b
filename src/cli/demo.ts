/**
 * `trilithon demo`, which `npm start` runs: three replicas, cells written and read back from each,
 * one replica killed and brought back, and all three compared. Every figure is measured there and
 * then; the command fails when one is not what it should be.
 */
import { resolve } from 'node:path'
import { Option, type Command } from 'commander'
import type { NodeId } from '../base/ids.ts'
import type { Cells } from '../client/cells.ts'
import type { Client } from '../client/client.ts'
import { connect } from '../client/connect.ts'
import { cellSink } from './cell-sink.ts'
import { inputFile, type InputFile } from './load-command.ts'
import { Patience } from './load-patience.ts'
import { loadCells, type CellSink } from './cells-load-run.ts'
import { parseCount } from './client.ts'
import { DemoCluster } from './demo-cluster.ts'
import {
  countFound,
  digestLogs,
  putAll,
  recording,
  type Expected,
  type LogDigest,
} from './demo-compare.ts'
import { sampleTrip, sampleTrips } from './demo-trips.ts'
import { CliError, exitFailure } from './exit.ts'
import { endBy, ignoreUserSignals, onStopSignals } from './signals.ts'
import { counted, duration, grouped, print, printJson, say, styledData } from './output.ts'
import type { Options } from './options.ts'

const datastore = 'trips'
const column = 'BASE'
/** Written while a replica is away. */
const moreTrips = 500
/** Three nodes and their client share a process, and a busy machine may leave it little. */
const callTimeoutMs = 30_000
const agreeTimeoutMs = 60_000
/** How long the cells of the demo are put again where the cluster refuses them for now. */
const patienceMs = 60_000
const agreePollMs = 100

export function addDemoCommand(program: Command): void {
  program
    .command('demo')
    .description('run three replicas in one process, show what they do, and stay up')
    .option('--data <FOLDER>', 'where the three keep their data', './data')
    .option('--port <PORT>', 'the first of three ports', '4700')
    .option('--file <FILE>', 'load this .csv or .jsonl (or .gz) instead of made-up trips')
    .addOption(new Option('--trips <N>', 'made-up trips to load').default('2000').conflicts('file'))
    .addOption(new Option('--seed <N>', 'of the made-up trips').default('1').conflicts('file'))
    .option('--exit', 'end when all is shown')
    .option('--json', 'each step as a line of JSON')
    .action(demo)
}

/** The parts that the steps share. */
interface Stage {
  readonly cluster: DemoCluster
  /** Asks any of the three. */
  readonly client: Client
  /** One that asks this replica alone. */
  readonly replicas: ReadonlyMap<NodeId, Client>
  readonly sink: CellSink
  readonly expected: Expected
  readonly tell: Tell
  readonly seed: number
  readonly trips: number
  readonly file: InputFile | undefined
}

/** A step in words, with its figures. */
type Tell = (step: string, text: string, figures: Readonly<Record<string, unknown>>) => void

async function demo(options: Options): Promise<void> {
  const data = resolve(String(options['data']))
  const port = parseCount('--port', options['port'], 1, 65_533)
  const trips = parseCount('--trips', options['trips'], 1, 1_000_000)
  const seed = parseCount('--seed', options['seed'], 0, 1_000_000)
  const file = typeof options['file'] === 'string' ? inputFile(options['file']) : undefined
  const tell = teller(options['json'] === true)
  const startedMs = performance.now()
  const interrupted = new Promise<void>((stop) => {
    onStopSignals({ stop: () => stop(), stopNow: endBy })
    ignoreUserSignals((text) => say(text))
  })
  const cluster = await DemoCluster.start(data, port)
  const stage = await openStage(cluster, { tell, seed, trips, file })
  try {
    tellStart(stage, data, performance.now() - startedMs)
    const isDone = await Promise.race([show(stage).then(() => true), interrupted.then(() => false)])
    if (isDone && options['exit'] !== true) {
      tellWhereToLook(stage)
      await interrupted
    }
  } finally {
    await closeStage(stage)
  }
}

async function openStage(
  cluster: DemoCluster,
  rest: Pick<Stage, 'tell' | 'seed' | 'trips' | 'file'>,
): Promise<Stage> {
  const ask = (nodes: readonly string[]): Promise<Client> =>
    connect({ endpoints: nodes, timeoutMs: callTimeoutMs })
  const client = await ask(cluster.nodes.map(({ url }) => url))
  const replicas = new Map<NodeId, Client>()
  for (const { id, url } of cluster.nodes) replicas.set(id, await ask([url]))
  const expected: Expected = new Map()
  const patience = new Patience({ forMs: patienceMs })
  const sink = recording(
    cellSink(client.cells(datastore), { column, refKey: 0 }, patience),
    expected,
  )
  return { cluster, client, replicas, expected, sink, ...rest }
}

async function closeStage({ cluster, client, replicas }: Stage): Promise<void> {
  await client.close()
  for (const replica of replicas.values()) await replica.close()
  await cluster.stop()
}

async function show(stage: Stage): Promise<void> {
  await load(stage)
  await readBack(stage)
  const killed = stage.cluster.nodes.at(-1)
  if (killed !== undefined) {
    await writeWithout(stage, killed.id)
    await bringBack(stage, killed.id)
  }
  await compare(stage)
}

function tellStart({ cluster, tell }: Stage, data: string, ms: number): void {
  const urls = cluster.nodes.map(({ id, url }) => `${id} ${url}`).join(' · ')
  tell('started', `Three replicas started in ${duration(ms)}: ${urls}. Their data: ${data}`, {
    milliseconds: Math.round(ms),
    nodes: cluster.nodes,
    data,
  })
}

async function load(stage: Stage): Promise<void> {
  const { tell, file, trips, seed } = stage
  const startedMs = performance.now()
  const { created, alreadyThere } =
    file === undefined
      ? await putAll(stage.sink, sampleTrips(seed, 0, trips))
      : await loadFrom(stage, file)
  const ms = performance.now() - startedMs
  const rate = grouped((created * 1000) / ms)
  const what = file === undefined ? 'trips' : `rows of ${file.path}`
  const wrote = `Wrote ${grouped(created)} ${what} in ${duration(ms)} (${rate} a second).`
  const found = `Found ${grouped(alreadyThere)} ${what} from a start before.`
  const text = [alreadyThere > 0 ? [found] : [], created > 0 ? [wrote] : []].flat().join(' ')
  tell('loaded', text, { created, alreadyThere, milliseconds: Math.round(ms) })
}

async function loadFrom(
  stage: Stage,
  file: InputFile,
): Promise<{ readonly created: number; readonly alreadyThere: number }> {
  const report = await loadCells(
    {
      ...file,
      dataset: file.baseName,
      keyField: undefined,
      batchRows: 250,
      batchesInFlight: 8,
      signal: new AbortController().signal,
      onProgress: () => undefined,
      onRejection: ({ line, reason }) =>
        stage.tell('rejected', `Line ${line}: ${reason}`, { line }),
      monotonicMs: () => performance.now(),
    },
    stage.sink,
  )
  if (report.stopped?.kind === 'failed') throw report.stopped.error
  if (report.stopped?.kind === 'damaged') throw new CliError(report.stopped.reason, exitFailure)
  return report
}

/**
 * Each replica catches up within moments; the demonstration reads it again until it has, or until the time is
 * up.
 */
async function readBack(stage: Stage): Promise<void> {
  const { expected, replicas, tell } = stage
  const figures: Record<string, number> = {}
  for (const [id, replica] of replicas) {
    const cells = replica.cells(datastore)
    const found = await agreed(
      () => countFound(cells, column, expected),
      (count) => count === expected.size,
    )
    if (found !== expected.size) {
      throw new CliError(`replica ${id} has ${found} of ${expected.size} cells`, exitFailure)
    }
    figures[id] = found
  }
  const each = [...replicas.keys()].map((id) => `${id} ${grouped(figures[id] ?? 0)}`).join(', ')
  tell('read', `Read every one back from each replica alone, all equal: ${each}.`, figures)
}

async function writeWithout(stage: Stage, id: NodeId): Promise<void> {
  const { cluster, tell, sink, seed } = stage
  await cluster.kill(id)
  const from = await firstUnwritten(stage.client.cells(datastore), seed, stage.trips)
  const startedMs = performance.now()
  const { created, slowestMs } = await putAll(sink, sampleTrips(seed, from, moreTrips))
  const ms = performance.now() - startedMs
  const text =
    `Killed replica ${id} without warning, and wrote ${grouped(created)} more trips in ` +
    `${duration(ms)}; the slowest batch took ${duration(slowestMs)}.`
  tell('killed', text, { node: id, created, milliseconds: Math.round(ms) })
  if (created !== moreTrips) throw new CliError('some trips were not written', exitFailure)
}

/** Every start writes other trips while a replica is away: the first block that is not there yet. */
async function firstUnwritten(cells: Cells, seed: number, from: number): Promise<number> {
  for (let next = from; ; next += moreTrips) {
    const last = sampleTrip(seed, next + moreTrips - 1)
    const cell = await cells.get({ rowKey: last.rowKey, column, refKey: 0 })
    if (cell === undefined) return next
  }
}

async function bringBack(stage: Stage, id: NodeId): Promise<void> {
  const { cluster, replicas, expected, tell } = stage
  const startedMs = performance.now()
  await cluster.startNode(id)
  await cluster.ready()
  const upMs = performance.now() - startedMs
  const cells = replicas.get(id)?.cells(datastore)
  if (cells === undefined) return
  const found = await agreed(
    () => countFound(cells, column, expected),
    (count) => count === expected.size,
  )
  const ms = performance.now() - startedMs
  if (found !== expected.size) {
    throw new CliError(`replica ${id} has ${found} of ${expected.size} cells`, exitFailure)
  }
  const text =
    `Brought replica ${id} back: ready after ${duration(upMs)}, and after ${duration(ms)} it had ` +
    `all ${grouped(found)} cells, those it had missed included.`
  tell('returned', text, { node: id, milliseconds: Math.round(ms), cells: found })
}

async function compare(stage: Stage): Promise<void> {
  const { replicas, tell } = stage
  const digests = await agreed(
    () => Promise.all([...replicas.values()].map((one) => digestLogs(one.cells(datastore)))),
    areEqual,
  )
  if (!areEqual(digests)) {
    throw new CliError(`the replicas differ: ${JSON.stringify(digests)}`, exitFailure)
  }
  const [first] = digests
  if (first === undefined) return
  const text =
    `Compared the logs of all shards: ${counted(first.cells, 'cell')} in ` +
    `${counted(first.shards, 'shard')}, the same cells in the same order at the same time on all ` +
    `three (digest ${first.hash}).`
  tell('agree', text, { ...first })
}

function areEqual(digests: readonly LogDigest[]): boolean {
  return digests.every(({ hash, cells }) => hash === digests[0]?.hash && cells === digests[0].cells)
}

/** Asks until the answer is good, or time is up; the last answer. */
async function agreed<T>(ask: () => Promise<T>, isGood: (value: T) => boolean): Promise<T> {
  const deadline = performance.now() + agreeTimeoutMs
  for (;;) {
    const value = await ask()
    if (isGood(value) || performance.now() > deadline) return value
    await new Promise((done) => setTimeout(done, agreePollMs))
  }
}

function tellWhereToLook({ cluster, expected, tell }: Stage): void {
  const url = cluster.nodes[0]?.url ?? ''
  const other = cluster.nodes[1]?.url ?? ''
  const [rowKey = ''] = expected.keys()
  const place = `/v1/datastores/${datastore}`
  const newRow = crypto.randomUUID()
  const lines = [
    `curl ${url}${place}/cells/${rowKey}/${column}`,
    `curl -X PUT ${url}${place}/cells/${newRow}/NOTE/0 -H 'content-type: application/json' -d '{"text":"hello"}'`,
    `curl ${other}${place}/cells/${newRow}/NOTE`,
    `curl '${url}${place}/shards/7/cells?limit=3'`,
    `curl ${url}/status`,
  ]
  const text = `They stay up until Ctrl-C. Try:\n${lines.map((line) => `     ${line}`).join('\n')}`
  tell('ready', text, { curl: lines })
}

function teller(isJson: boolean): Tell {
  let number = 0
  return (step, text, figures) => {
    if (isJson) return printJson({ step, ...figures })
    number += 1
    print(`${styledData('bold', `${number}.`)} ${text}`)
  }
}
