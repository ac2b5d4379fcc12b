/**
 * `bench lifetime`: three processes under load for as long as it takes to see what grows. Their logs have a budget. On the
 * way a node is killed and started at once, twice; one is away for a minute, and fetches entries; then it is away until
 * the others' logs have given up what it lacks, and takes snapshots.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { present } from '../../src/base/assert.ts'
import { machine, type Machine } from '../common.ts'
import { LoadProcess } from '../load-process.ts'
import {
  pause,
  placeNodes,
  startNode,
  stopProcess,
  waitReady,
  type NodePlace,
  type NodeProcess,
} from '../processes.ts'
import { lookAt, readStatus, type NodeLook } from './node-look.ts'

export interface LifetimeOptions {
  readonly clients: number
  readonly minutes: number
  /** `log_retain_bytes`, in MiB. */
  readonly retain: number
  /** Seconds of the short absence. */
  readonly away: number
  readonly logStore: 'leveldb' | 'files'
}

/** One piece of the load, and the nodes as it ended. */
export interface Piece {
  /** Since the load began. */
  readonly second: number
  readonly commits: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly failures: number
  readonly nodes: readonly NodeLook[]
}

/** A node that went and came back, in seconds since the load began. */
export interface Absence {
  readonly kind: 'killed' | 'away' | 'behind'
  readonly node: string
  readonly killed: number
  readonly started: number
  readonly ready: number
  /** It lacked nothing any more, as far as it knew. Absent: not before the end. */
  readonly caughtUp?: number
  /** Groups that snapshots brought. */
  readonly snapshots: number
  /** The worst of the pieces of the load until then. */
  readonly p99Ms: number
}

export interface LifetimeReport {
  readonly bench: 'lifetime'
  readonly machine: Machine
  readonly options: LifetimeOptions
  readonly pieces: readonly Piece[]
  readonly absences: readonly Absence[]
}

const pieceSeconds = 10
const pollMs = 200
const valueBytes = '100'
const mib = 1024 * 1024
const clientPath = fileURLToPath(new URL('../load-client.js', import.meta.url))

export type LifetimeWatcher = (text: string) => void

export async function benchLifetime(
  options: LifetimeOptions,
  signal: AbortSignal,
  say: LifetimeWatcher,
): Promise<LifetimeReport> {
  const folder = await mkdtemp(join(tmpdir(), 'trilithon-bench-'))
  const more = [
    `log_store: ${options.logStore}`,
    `limits: { log_retain_bytes: ${options.retain * mib} }`,
  ]
  const life = new Lifetime(folder, await placeNodes(folder, 3, more), options, signal, say)
  try {
    return await life.run()
  } finally {
    await life.stop()
    await rm(folder, { recursive: true, force: true })
  }
}

class Lifetime {
  readonly #folder: string
  readonly #places: readonly NodePlace[]
  readonly #options: LifetimeOptions
  readonly #signal: AbortSignal
  readonly #say: LifetimeWatcher
  readonly #nodes = new Map<string, NodeProcess>()
  readonly #pieces: Piece[] = []
  readonly #absences: Absence[] = []
  #client: LoadProcess | undefined
  #startMs = 0

  constructor(
    folder: string,
    places: readonly NodePlace[],
    options: LifetimeOptions,
    signal: AbortSignal,
    say: LifetimeWatcher,
  ) {
    this.#folder = folder
    this.#places = places
    this.#options = options
    this.#signal = signal
    this.#say = say
  }

  async run(): Promise<LifetimeReport> {
    for (const place of this.#places) this.#start(place)
    for (const node of this.#nodes.values()) await waitReady(node)
    const urls = this.#places.map(({ url }) => url).join(',')
    this.#client = await LoadProcess.start(clientPath, [urls, valueBytes], this.#signal)
    this.#startMs = performance.now()
    await Promise.all([this.#load(this.#client), this.#absent()])
    return {
      ...{ bench: 'lifetime', machine: machine(), options: this.#options },
      ...{ pieces: this.#pieces, absences: this.#absences },
    }
  }

  #start(place: NodePlace): NodeProcess {
    const node = startNode(place)
    this.#nodes.set(place.id, node)
    return node
  }

  get #second(): number {
    return (performance.now() - this.#startMs) / 1_000
  }

  get #endSecond(): number {
    return this.#options.minutes * 60
  }

  async #load(client: LoadProcess): Promise<void> {
    const { clients } = this.#options
    const load = { clients, seconds: pieceSeconds, warmUpSeconds: 0, operation: 'commits' } as const
    while (this.#second + pieceSeconds <= this.#endSecond) {
      const loaded = await client.run(load, { onWarm: () => Promise.resolve() })
      const { operations: commits, p50Ms, p99Ms, failures } = loaded
      const second = Math.round(this.#second)
      const nodes = await this.#look()
      this.#pieces.push({ second, commits, p50Ms, p99Ms, failures, nodes })
      this.#say(describePiece(present(this.#pieces.at(-1), 'bench: a piece')))
    }
  }

  #look(): Promise<NodeLook[]> {
    return Promise.all(
      this.#places.map((place) => {
        const child = this.#nodes.get(place.id)?.child
        return lookAt(place, join(this.#folder, place.id), child?.pid)
      }),
    )
  }

  /** At sixths of the run. */
  async #absent(): Promise<void> {
    const [first, second, third] = this.#places
    const at = (sixth: number): Promise<void> => this.#until((this.#endSecond * sixth) / 6)
    const { away } = this.#options
    await at(1)
    await this.#leave('killed', present(second, 'bench: there are nodes'), () => Promise.resolve())
    await at(2)
    await this.#leave('killed', present(third, 'bench: there are nodes'), () => Promise.resolve())
    await at(2.5)
    const last = present(third, 'bench: there are nodes')
    await this.#leave('away', last, () => pause(away * 1_000))
    await at(3.2)
    await this.#leave('behind', last, () => this.#untilBehind(present(first, 'bench: a node')))
  }

  async #until(second: number): Promise<void> {
    await pause(Math.max(0, second - this.#second) * 1_000)
    this.#signal.throwIfAborted()
  }

  /** The log of a node that stays has given up flushes since the call, or most of the run is over. */
  async #untilBehind(place: NodePlace): Promise<void> {
    const before = (await readStatus(place)).firstFlush
    const isAsBefore = async (): Promise<boolean> => (await readStatus(place)).firstFlush === before
    while (this.#second < (this.#endSecond * 5) / 6 && (await isAsBefore())) {
      await pause(pollMs * 5)
      this.#signal.throwIfAborted()
    }
  }

  async #leave(
    kind: Absence['kind'],
    place: NodePlace,
    whileAway: () => Promise<void>,
  ): Promise<void> {
    const child = present(this.#nodes.get(place.id), 'bench: the node runs').child
    const killed = this.#second
    await stopProcess(child, 'SIGKILL')
    this.#nodes.delete(place.id)
    await whileAway()
    const started = this.#second
    await waitReady(this.#start(place), { pollMs: 20, waitMs: 300_000, signal: this.#signal })
    const ready = this.#second
    const told = await this.#untilCaughtUp(place)
    const after = this.#pieces.filter(
      ({ second }) => second >= started && second <= (told.caughtUp ?? this.#second) + pieceSeconds,
    )
    const p99Ms = Math.max(0, ...after.map((piece) => piece.p99Ms))
    this.#absences.push({ kind, node: place.id, killed, started, ready, ...told, p99Ms })
    this.#say(describeAbsence(present(this.#absences.at(-1), 'bench: an absence')))
  }

  /** Lacks nothing for a while: before the first digest it knows of nothing that it lacks. */
  async #untilCaughtUp(place: NodePlace): Promise<{ caughtUp?: number; snapshots: number }> {
    let since: number | undefined
    let snapshots = 0
    while (this.#second < this.#endSecond) {
      await pause(pollMs)
      this.#signal.throwIfAborted()
      const look = await readStatus(place)
      snapshots = Math.max(snapshots, look.snapshotsTaken ?? 0)
      since = look.lackingGroups === 0 ? (since ?? this.#second) : undefined
      if (since !== undefined && this.#second - since > 3) return { caughtUp: since, snapshots }
    }
    return { snapshots }
  }

  async stop(): Promise<void> {
    await this.#client?.stop()
    await Promise.all([...this.#nodes.values()].map(({ child }) => stopProcess(child, 'SIGKILL')))
  }
}

function describePiece({ second, commits, p99Ms, nodes }: Piece): string {
  const sizes = nodes.map(({ logBytes, dataBytes, memory }) =>
    [logBytes, dataBytes, memory].map((bytes) => Math.round(bytes / mib)).join('/'),
  )
  return `${second} s: ${Math.round(commits / pieceSeconds)} commits/s, p99 ${p99Ms.toFixed(0)} ms; MiB of log/data/memory: ${sizes.join(', ')}`
}

function describeAbsence(absence: Absence): string {
  const { kind, node, killed, started, ready, caughtUp, snapshots, p99Ms } = absence
  const after = caughtUp === undefined ? 'not in time' : `${(caughtUp - started).toFixed(1)} s`
  return (
    `${node} ${kind} at ${killed.toFixed(0)} s for ${(started - killed).toFixed(0)} s: ready after ` +
    `${(ready - started).toFixed(1)} s, lacked nothing after ${after}, ${snapshots} snapshots, p99 up to ${p99Ms.toFixed(0)} ms`
  )
}

export function describeLifetime({ options, pieces, absences }: LifetimeReport): string {
  const commits = pieces.reduce((sum, piece) => sum + piece.commits, 0)
  const most = (of: (look: NodeLook) => number): number =>
    Math.max(0, ...pieces.flatMap(({ nodes }) => nodes.map(of)))
  const last = pieces.at(-1)?.nodes[0]
  const rates = pieces.map((piece) => piece.commits / pieceSeconds).toSorted((a, b) => a - b)
  const failures = pieces.reduce((sum, piece) => sum + piece.failures, 0)
  return [
    `${options.clients} clients for ${options.minutes} min, log_retain_bytes ${options.retain} MiB, log_store ${options.logStore}`,
    `${commits} commits, median ${Math.round(rates[Math.floor(rates.length / 2)] ?? 0)}/s; failures ${failures}`,
    `log/ at most ${Math.round(most(({ logBytes }) => logBytes) / mib)} MiB; memory at most ${Math.round(most(({ memory }) => memory) / mib)} MiB`,
    `data/ in the end ${Math.round((last?.dataBytes ?? 0) / mib)} MiB, ${Math.round((last?.dataBytes ?? 0) / Math.max(1, commits))} bytes a commit`,
    ...absences.map(describeAbsence),
    '',
  ].join('\n')
}
